"""What a strategy does, in words."""

import torch

from autoweight.strategy import Strategy
from autoweight.strategy.weighting import weigh

_ABOVE = {
    "loss": "samples whose loss is above average",
    "entropy": "samples that the network is unsure of",
    "density": "samples that look like many others",
    "label": "samples of frequent classes",
}


def describe(strategy: Strategy) -> list[str]:
    """Sentences on the strategy at its start, middle and end: who counts more, who less, and how much."""
    if not strategy.table.any():
        return ["All samples count the same: nothing better was found than not to weigh."]
    sentences = []
    if strategy.warmup_stages:
        sentences.append(
            f"Until {_percent(strategy.warmup_stages, strategy)} of the training, all samples count the same."
        )
    parts = torch.linspace(strategy.warmup_stages, strategy.num_stages - 1, 3).round().int().unique().tolist()
    for stage in parts:
        rows = [_describe_feature(strategy, stage, column) for column in range(len(strategy.features))]
        sentences.append(f"At {_percent(stage, strategy)}: {'; '.join(rows)}.")
    return sentences


def _percent(stage: int, strategy: Strategy) -> str:
    return f"{100 * stage / strategy.num_stages:.0f} %"


def _describe_feature(strategy: Strategy, stage: int, column: int) -> str:
    """Weights one deviation below, at, and one above a feature's batch average, the other features at average."""
    features = torch.zeros(3, len(strategy.features))
    features[:, column] = torch.tensor([-1.0, 0.0, 1.0])
    below, average, above = weigh(features, strategy.table[stage].cpu()).tolist()
    who = _ABOVE[strategy.features[column]]
    change = "less" if above < below - 0.05 else "more" if above > below + 0.05 else "the same"
    return f"{who} count {change} (weight {below:.2f} below, {average:.2f} at, {above:.2f} above average)"
