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

_NOTHING = 0.1  # weights below this say nothing about who counts more


def describe(strategy: Strategy) -> list[str]:
    """Sentences on the strategy at its start, middle and end, if these differ: who counts more, who less, how much."""
    # Normalised weights are all 1 at a theta of 0, whatever the bias.
    if not (strategy.table[:, :-1] if strategy.normalised else strategy.table).any():
        return ["All samples count the same: nothing better was found than not to weigh."]
    sentences = []
    if strategy.warmup_stages:
        sentences.append(
            f"Until {_percent(strategy.warmup_stages, strategy)} of the training, all samples count the same."
        )
    weighted = strategy.table[strategy.warmup_stages :]
    if torch.equal(weighted, weighted[:1].expand_as(weighted)):
        when = "From then on" if sentences else "All along"
        return [*sentences, f"{when}: {_describe_stage(strategy, strategy.warmup_stages)}."]
    parts = torch.linspace(strategy.warmup_stages, strategy.num_stages - 1, 3).round().int().unique().tolist()
    for stage in parts:
        sentences.append(f"At {_percent(stage, strategy)}: {_describe_stage(strategy, stage)}.")
    return sentences


def _describe_stage(strategy: Strategy, stage: int) -> str:
    weights = [_weights(strategy, stage, column) for column in range(len(strategy.features))]
    if max(map(max, weights)) < _NOTHING:
        return (
            f"hardly any sample counts; only those far from average in several respects have weights above {_NOTHING}"
        )
    named = zip(strategy.features, weights, strict=True)
    above = _ABOVE | ({"label": "samples of the last classes"} if strategy.label_feature == "raw" else {})
    return "; ".join(_describe_feature(above[name], *feature) for name, feature in named)


def _percent(stage: int, strategy: Strategy) -> str:
    return f"{100 * stage / strategy.num_stages:.0f} %"


def _weights(strategy: Strategy, stage: int, column: int) -> list[float]:
    """Weights one deviation below, at, and one above a feature's batch average, the other features at average.

    If they are normalised, then among these three.
    """
    features = torch.zeros(3, len(strategy.features))
    features[:, column] = torch.tensor([-1.0, 0.0, 1.0])
    weights: list[float] = weigh(features, strategy.table[stage].cpu(), strategy.normalised).tolist()
    return weights


def _describe_feature(who: str, below: float, average: float, above: float) -> str:
    little = 0.05 * max(below, average, above)
    change = "less" if above < below - little else "more" if above > below + little else "the same"
    return f"{who} count {change} (weight {below:.2f} below, {average:.2f} at, {above:.2f} above average)"
