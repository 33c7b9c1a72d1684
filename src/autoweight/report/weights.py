"""Figures of what the weights did along trainings, the paper's two figures among these."""

from statistics import median
from typing import Any, NamedTuple

from autoweight.report.curves import Line, by_method, by_stage, number_of, series_of
from autoweight.report.lines import Series
from autoweight.report.svg import Figure
from autoweight.report.verdict import chosen_method
from autoweight.runs.reading import RunView

_MOST_CLASSES = 8  # lines that can still be told apart
_OUTLYING = 4.0  # times the usual distance from the median, and at least
_APART = 0.02  # so far
_WELL_BELOW = 0.9  # a smaller fall is a wobble


class _Pair(NamedTuple):
    """A figure of two groups of samples, where both are known."""

    title: str
    names: dict[str, str]
    """The groups, and what they are called."""
    what: str
    """weight or loss, of which the means are shown."""
    look_for: str


_WEIGHT_OF_WRONG = _Pair(
    "Mean weight of right and wrong labels",
    {"right": "right labels", "wrong": "wrong labels"},
    "weight",
    "The further wrong labels lie below right ones, the better they are told apart.",
)
_LOSS_OF_WRONG = _Pair(
    "Loss of right and wrong labels",
    _WEIGHT_OF_WRONG.names,
    "loss",
    "Right labels should fall; wrong ones stay high as long as the network does not memorise them.",
)
_LOSS_OF_LOW = _Pair(
    "Loss by the weights' own split",
    {"high": "other weights", "low": "low weights"},
    "loss",
    "Which samples are wrong is not known here. This is the split that the weights themselves make, below and above "
    "half of the mean weight: what they look past keeps a high loss.",
)
_WEIGHT_OF_RARE = _Pair(
    "Mean weight of rare and other classes",
    {"rare": "rare classes", "other": "other classes"},
    "weight",
    "Where rare classes lie above the others, their samples count more. In the paper they part late in the training.",
)


def weight_figures(run: RunView) -> list[Figure]:
    """What the weights did, all methods beside each other: the loss gap, and how many samples counted."""
    figures = [_loss_gap(run), _memorised(run), _effective(run)]
    return [figure for figure in figures if figure is not None]


def method_figures(run: RunView) -> dict[str, list[Figure]]:
    """What the weights of each method did: right and wrong samples, rare classes, classes, and their spread.

    The method that the page is about comes first.
    """
    methods = dict.fromkeys([_shown_method(run), *(name for name, _ in run.stages)])
    found = {}
    for method in methods:
        if method not in (None, "uniform"):
            figures = [*_groups(run, method), _classes(run, method), _spread(run, method)]
            found[method] = [figure for figure in figures if figure is not None]
    return {method: figures for method, figures in found.items() if figures}


def _shown_method(run: RunView) -> str | None:
    """The method that the page is about, also before its training has ended."""
    return chosen_method(run) or next((name for name, _ in run.stages if name != "uniform"), None)


def _loss_gap(run: RunView) -> Figure | None:
    """Mean batch loss of weighted networks less that of uniform on the same data."""
    uniform = {
        (seed, line.get("stage")): line.get("train_loss")
        for (method, seed), lines in run.stages.items()
        if method == "uniform"
        for line in lines
    }

    def gap(line: Line) -> float | None:
        own, plain = line.get("train_loss"), uniform.get((int(line.get("seed") or 0), line.get("stage")))
        return own - plain if isinstance(own, int | float) and isinstance(plain, int | float) else None

    methods = [method for method in dict.fromkeys(name for name, _ in run.stages) if method != "uniform"]
    return by_method(
        run,
        "Loss gap to training without weights",
        "Mean batch loss of the weighted network less that of uniform. Where labels are wrong, look for lines above "
        "zero: samples stay unlearned that uniform memorises. The paper's own fall below zero on noisy data and stay "
        "near zero on clean data.",
        gap,
        "loss gap",
        zero=True,
        methods=methods,
    )


def _groups_of(run: RunView, method: str) -> set[str]:
    """Which groups of samples a method's trainings tell apart."""
    return {
        group
        for (name, _), lines in run.stages.items()
        if name == method
        for line in lines
        for group in _of(line, "groups")
    }


def _memorised(run: RunView) -> Figure | None:
    """What becomes of wrong labels without weights, for comparison."""
    if not _LOSS_OF_WRONG.names.keys() <= _groups_of(run, "uniform"):
        return None
    look_for = "For comparison: without weights, wrong labels are memorised as far as their loss falls."
    if _falls(run):
        look_for = "For comparison: without weights, the wrong labels' loss falls too, and that is memorising."
    return _pair_figure(run, "uniform", _LOSS_OF_WRONG._replace(look_for=look_for))


def _groups(run: RunView, method: str) -> list[Figure | None]:
    """Two lines each: right and wrong, rare and other, or, where no truth is known, low and high weights."""
    found = _groups_of(run, method)
    truth_known = _WEIGHT_OF_WRONG.names.keys() <= found
    pairs = [_WEIGHT_OF_WRONG, _LOSS_OF_WRONG, _WEIGHT_OF_RARE]
    if not truth_known:
        pairs = [_LOSS_OF_LOW, _WEIGHT_OF_RARE]
    return [_pair_figure(run, method, pair) for pair in pairs if pair.names.keys() <= found]


def _falls(run: RunView) -> bool:
    """Whether the loss of wrong labels ends well below its height without weights."""
    found, _ = series_of(run, lambda line: number_of(_of(line, "groups").get("wrong"), "loss"), ["uniform"])
    values = [value for one in found for value in one.values if value is not None]
    return bool(values) and values[-1] < _WELL_BELOW * max(values)


def _pair_figure(run: RunView, method: str, pair: _Pair) -> Figure | None:
    series: list[Series] = []
    xs: list[float] = []
    for group, name in pair.names.items():

        def mean(line: Line, group: str = group) -> float | None:
            return number_of(_of(line, "groups").get(group), pair.what)

        found, xs = series_of(run, mean, [method])
        series += [Series(name, one.values, one.band) for one in found]
    if not series or len({len(one.values) for one in series}) > 1:
        return None
    title = f"{pair.title}, {method}"
    return by_stage(run, title, pair.look_for, xs, series, f"mean {pair.what}", zero=True)


def _effective(run: RunView) -> Figure | None:
    return by_method(
        run,
        "Effective sample size",
        "How many equally weighted samples would count as much, in percent of the set. Far below the share of good "
        "samples, a method throws some of them away.",
        lambda line: number_of(line.get("weights"), "effective", 100),
        "% of the samples",
    )


def _classes(run: RunView, method: str) -> Figure | None:
    """Mean weight of single classes; of many, those that lie apart, and how the others spread."""
    rows = _rows(run, method, "by_class")
    if not rows:
        return None
    last = rows[-1][1]
    seen = [k for k in range(len(last)) if last[k] is not None]
    many = len(seen) > _MOST_CLASSES
    chosen = _outlying(last, seen) if many else sorted(seen, key=lambda k: last[k])
    names = _class_names(run, method, len(last))
    series = [_all_classes(rows, len(seen))] if many else []
    series += [Series(names[k], [values[k] if k < len(values) else None for _, values in rows]) for k in chosen]
    which = "all classes"
    if many:
        apart = ", with those that end far from the others" if chosen else "; none ends far from the others"
        which = f"shaded from the least to the most class{apart}"
    look_for = f"One seed, {which}. A class far below the others is being forgotten, or has the most wrong labels."
    return by_stage(run, f"Mean weight by class, {method}", look_for, [x for x, _ in rows], series, "mean weight")


def _outlying(last: list[Any], seen: list[int]) -> list[int]:
    """The classes whose mean weight ends far from the median, the furthest if they are many."""
    middle = median(last[k] for k in seen)
    far = {k: abs(last[k] - middle) for k in seen}
    least = max(_OUTLYING * median(far.values()), _APART)
    chosen = [k for k in sorted(seen, key=lambda k: -far[k]) if far[k] > least][: _MOST_CLASSES - 1]
    return sorted(chosen, key=lambda k: last[k])


def _all_classes(rows: list[tuple[float, list[Any]]], count: int) -> Series:
    """The median class along a training, with a band from the least to the most."""
    known = [[value for value in values if value is not None] for _, values in rows]
    middle, least, most = ([make(values) if values else None for values in known] for make in (median, min, max))
    return Series(f"median of {count:,} classes", middle, (least, most))


def _class_names(run: RunView, method: str | None, count: int) -> list[str]:
    """What the classes are called; by number where they have no names, or the training has not ended."""
    seed = next((seed for name, seed in run.stages if name == method), 0)
    names = [str(name) for name in (run.samples(str(method), seed) or {}).get("class_names", ())]
    return names if len(names) == count else [f"class {k}" for k in range(count)]


def _spread(run: RunView, method: str) -> Figure | None:
    """Quantiles of the weights."""
    rows = [(x, values) for x, values in _rows(run, method, "quantiles") if len(values) == 5]
    if not rows:
        return None
    columns = list(zip(*(values for _, values in rows), strict=True))
    series = [
        Series("median", columns[2], (columns[1], columns[3])),
        Series("5 %", columns[0]),
        Series("95 %", columns[4]),
    ]
    look_for = (
        "One seed; shaded is the middle half of the samples. Two groups drift apart where samples are taken for right "
        "or wrong; lines that stay together weigh nothing."
    )
    xs = [x for x, _ in rows]
    return by_stage(run, f"Spread of the weights, {method}", look_for, xs, series, "weight", zero=True)


def _rows(run: RunView, method: str | None, what: str) -> list[tuple[float, list[Any]]]:
    """The stages of a method's first training at which its log has a list of this name, and that list."""
    lines = next((lines for (name, _), lines in run.stages.items() if name == method), [])
    rows = [(float(line.get("stage") or 0) + 1, _of(line, what)) for line in lines]
    return [(x, values) for x, values in rows if isinstance(values, list) and values]


def _of(line: Line, name: str) -> Any:
    """What a line says of the weights under this name; an empty dict where it says nothing."""
    weights = line.get("weights")
    found = weights.get(name) if isinstance(weights, dict) else None
    return {} if found is None else found
