"""Figures of trainings: their curves by stage."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

from autoweight.report.lines import Series, line_figure
from autoweight.report.strategies import warmup_shade
from autoweight.report.svg import Figure
from autoweight.runs.reading import RunView

Line = dict[str, Any]


def training_curves(run: RunView) -> list[Figure]:
    """Validation score, training loss and learning rate by stage."""
    wrong, name = _wrong(run), run.score_name
    several = len({seed for _, seed in run.stages}) > 1
    figures = [
        by_method(
            run,
            f"Validation {name}",
            f"Look whether a line falls again late: then the network has begun to memorise {wrong}."
            + " Shaded bands reach from the worst to the best seed." * several,
            lambda line: number_of(line, "val_score", 100),
            f"validation {name}, %",
        ),
        by_method(
            run,
            "Training loss",
            f"The unweighted mean loss over all samples. Near zero on {wrong} means memorised; a method that looks "
            f"past {wrong} stays above.",
            lambda line: number_of(line, "train_loss"),
            "mean loss",
        ),
        _learning_rate(run),
    ]
    return [figure for figure in figures if figure is not None]


def _learning_rate(run: RunView) -> Figure | None:
    series, xs = series_of(run, lambda line: number_of(line, "learning_rate"))
    if not series:
        return None
    values = {value for one in series for value in one.values if value is not None}
    schedule = None if run.config is None else run.config.training.schedule
    look_for = "The lower it is, the more the network settles on what it believes by then."
    if len(values) == 1:
        look_for = "It stays the same, so the network never quite settles: weights count as much late as early."
    elif schedule == "stages":
        look_for = (
            "Each drop lets the network settle on what it believes by then: what the weights let through before a drop "
            "matters most."
        )
    return by_stage(run, "Learning rate", look_for, xs, _in_one(series), "learning rate", steps=True)


def _in_one(series: list[Series]) -> list[Series]:
    """A single line where all agree."""
    found = [set(values) - {None} for values in zip(*(one.values for one in series), strict=True)]
    if len(series) == 1 or any(len(values) > 1 for values in found):
        return series
    return [Series("all methods", [next(iter(values), None) for values in found])]


def _warmup(run: RunView) -> tuple[float, float] | None:
    """The first stages, in which a searched strategy weighs nothing."""
    return None if run.strategy is None else warmup_shade(run.strategy.warmup_stages)


def _wrong(run: RunView) -> str:
    """What a network should not memorise: a regression has outliers, not wrong labels."""
    return "outliers" if run.score == "test_r2" else "wrong labels"


def by_method(
    run: RunView,
    title: str,
    look_for: str,
    value: Callable[[Line], float | None],
    y_name: str,
    *,
    zero: bool = False,
    methods: list[str] | None = None,
) -> Figure | None:
    """A line for each method."""
    series, xs = series_of(run, value, methods)
    return by_stage(run, title, look_for, xs, series, y_name, zero=zero) if series else None


def by_stage(
    run: RunView,
    title: str,
    look_for: str,
    xs: list[float],
    series: list[Series],
    y_name: str,
    *,
    zero: bool = False,
    steps: bool = False,
) -> Figure:
    """Lines over stages, with the warm-up shaded."""
    return line_figure(title, look_for, xs, series, y_name=y_name, shade=_warmup(run), zero=zero, steps=steps)


def series_of(
    run: RunView, value: Callable[[Line], float | None], methods: list[str] | None = None
) -> tuple[list[Series], list[float]]:
    """A line for each method: the mean over its seeds, with a band from the least to the most."""
    by_method: dict[str, dict[int, list[float]]] = {}
    for (method, _), lines in run.stages.items():
        if methods is None or method in methods:
            for line in lines:
                number = value(line)
                if number is not None:
                    by_method.setdefault(method, {}).setdefault(int(line.get("stage") or 0), []).append(number)
    stages = sorted({stage for found in by_method.values() for stage in found})
    series = []
    for method, found in by_method.items():
        several = any(len(values) > 1 for values in found.values())
        band = ([_or_none(min, found, s) for s in stages], [_or_none(max, found, s) for s in stages])
        means = [_or_none(fmean, found, s) for s in stages]
        series.append(Series(method, means, band if several else None, run.style(method)))
    return series, [stage + 1.0 for stage in stages]


def _or_none(make: Callable[[list[float]], float], found: dict[int, list[float]], stage: int) -> float | None:
    return make(found[stage]) if stage in found else None


def number_of(line: Any, name: str, factor: float = 1.0) -> float | None:
    """A number of a line, times `factor`; None where there is none."""
    value = line.get(name) if isinstance(line, dict) else None
    return factor * value if isinstance(value, int | float) else None
