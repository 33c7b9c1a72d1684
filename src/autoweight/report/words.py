"""What a strategy does, in words."""

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from autoweight.errors import require
from autoweight.report.intervals import NORMAL, half_width
from autoweight.strategy import Strategy, Weigher
from autoweight.strategy.rule import Rule, weigh
from autoweight.strategy.shipped import load

_ABOVE = {
    "loss": "samples whose loss is above average",
    "entropy": "samples that the network is unsure of",
    "density": "samples that look like many others",
    "label": "samples of frequent classes",
    "margin": "samples whose label the network has come to believe in",
    "belief": "samples whose label is probably right",
    "history": "samples whose loss has long been above average",
}

_NOTHING = 0.1  # weights below this say nothing about who counts more


class Scale(NamedTuple):
    """How a feature is described: the values at which its weights are told, and what these values are called."""

    values: tuple[float, float, float] = (-1.0, 0.0, 1.0)
    places: tuple[str, str, str] = ("below", "at", "above average")
    even: str = "average"
    """What 0 is called."""
    mean_of: str = "the batch's"
    """Whose mean deviations are from."""


def scale_of(rule: Rule, name: str) -> Scale:
    """The scale of a rule's feature: most are deviations from the batch's mean, but some have a scale of their own."""
    if name == "belief":
        return Scale((-5.0, 0.0, 5.0), ("at log-odds of -5", "at 0", "at 5"), "log-odds of 0")
    if name == "margin" and rule.margin_scale == "own":
        return Scale((-0.5, 0.0, 0.5), ("at a margin of -0.5", "at 0", "at 0.5"), "0")
    whose = {
        "history": {"class": "its class's", "set": "the whole set's"}.get(rule.history_scale),
        "label": {"class_frequency": "the classes'"}.get(rule.label_feature),
    }.get(name)
    if whose is None:
        return Scale()
    return Scale(places=("below", "at", f"above {whose} average"), even=f"{whose} average", mean_of=whose)


def describe(strategy: Weigher | str | Path) -> list[str]:
    """Sentences on the strategy at its start, middle and end, if these differ: who counts more, who less, how much.

    Of another weigher, what its card says. A file or the name of a shipped strategy is loaded first.
    """
    strategy = load(strategy) if isinstance(strategy, str | Path) else strategy
    require(isinstance(strategy, Weigher), f"aw.describe takes a weigher, a file or a name, but got {strategy!r}.")
    if not isinstance(strategy, Strategy):
        card = inspect.getmodule(type(strategy)).__doc__ or ""
        return [card.partition("\n")[0].partition(": ")[2].capitalize() or f"{type(strategy).__name__} weighs samples."]
    # Normalised weights are all 1 at a theta of 0, whatever the bias.
    theta = strategy.table[:, : len(strategy.rule.features) + (not strategy.rule.normalised)]
    if not theta.any():
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


def idea(weigher: Weigher, short: bool = False) -> list[str]:
    """What the weigher's card says of its idea; nothing where it has none.

    In `short`, its first two sentences, without formulas and names of files.
    """
    card = inspect.getmodule(type(weigher)).__doc__ or ""
    found = re.search(r"^Idea\s+(.+?)(?=^\S|\Z)", card, flags=re.MULTILINE | re.DOTALL)
    whole = "" if found is None else " ".join(found[1].split())
    if short:
        plain = re.sub(r"(?:,? `[^`]*`)|(?: \([\w/]+\.\w+\))", "", whole)
        whole = " ".join(re.split(r"(?<=\.) (?=[A-Z])", plain)[:2])
    return [whole] if whole else []


def gain_sentence(info: dict[str, Any]) -> str:
    """What a search saw of its strategy, from what it left in its file, and how far that can be trusted."""
    if chose_nothing(info):
        return "On the validation set, no candidate was better than no weighting."
    gain, error = 100 * info["validation_gain"], info.get("validation_gain_error")
    about = "" if error is None else f" (standard error {100 * error:.1f})"
    if (tasks := info.get("num_tasks", 1)) > 1:
        way = "lost against" if gain < 0 else "closed of"
        said = f"Over {tasks} tasks it {way} the gap between no weighting and an oracle {abs(gain):.1f} %{about}"
    elif info.get("reward") == "plain":
        said = f"On the validation set it was {gain:.1f}{about} % right"
    else:
        way = "behind" if gain < 0 else "ahead of"
        said = f"On the validation set it was {abs(gain):.1f}{about} points {way} no weighting"
    return f"{said}, late stages counting more.{_trust(info)}"


def chose_nothing(info: dict[str, Any]) -> bool:
    """Whether a search took no weighting, which alone is level with its reference in every round."""
    return info["validation_gain"] == 0 and not info.get("validation_gain_error") and info.get("reward") != "plain"


def _trust(info: dict[str, Any]) -> str:
    """The gain's interval, whether it could be chance, and that choosing the best flatters it."""
    gain, error = info["validation_gain"], info.get("validation_gain_error")
    if not gain or not error:
        return ""
    said, repeats = "", info.get("validation_repeats", 1)
    half = half_width(error, repeats) if repeats > 1 else NORMAL * error
    if repeats > 1:
        said = f" By {repeats} repeats, its 95 % interval is {100 * (gain - half):z.1f} to {100 * (gain + half):z.1f}."
    if abs(gain) <= half and info.get("reward") != "plain":
        said += " That could be chance: do not trust the strategy yet."
    if (candidates := info.get("candidates", 1)) > 1:
        said += (
            f" It is the best of {candidates} candidates in the very trainings that chose it: part of it may be luck."
        )
    return said


def _describe_stage(strategy: Strategy, stage: int) -> str:
    rule = strategy.rule
    scales = [scale_of(rule, name) for name in rule.features]
    weights = [
        weights_at(strategy, stage, column, scale.values, rule.normalised) for column, scale in enumerate(scales)
    ]
    if max(map(max, weights)) < _NOTHING:
        return (
            f"hardly any sample counts; only those far from average in several respects have weights above {_NOTHING}"
        )
    above = _ABOVE | ({"label": "samples of the last classes"} if rule.label_feature == "raw" else {})
    told = zip(rule.features, scales, weights, strict=True)
    return "; ".join(_describe_feature(above[name], scale, *three) for name, scale, three in told)


def _percent(stage: int, strategy: Strategy) -> str:
    return f"{100 * stage / strategy.num_stages:.0f} %"


def weights_at(
    strategy: Strategy, stage: int, column: int, values: Sequence[float], normalised: bool = False
) -> list[float]:
    """The weights at these values of one feature, with the others at 0; if `normalised`, to a mean of 1 among them."""
    features = torch.zeros(len(values), len(strategy.rule.features))
    features[:, column] = torch.tensor(values)
    strategy_params = strategy.table[stage, : features.shape[1] + 1].cpu()
    weights: list[float] = weigh(features, strategy_params, normalised).tolist()
    return weights


def _describe_feature(who: str, scale: Scale, below: float, average: float, above: float) -> str:
    little = 0.05 * max(below, average, above)
    change = "the same"
    if above < below - little:
        change = "less"
    elif above > below + little:
        change = "more"
    values = (below, average, above)
    shown = ", ".join(f"{value:.2f} {place}" for value, place in zip(values, scale.places, strict=True))
    return f"{who} count {change} (weight {shown})"
