"""The paper's two figures from kept runs, as pictures of docs/results.md: `make results` draws them.

The loss gap is the mean batch loss of a weighted network less that of one without weights, stage by stage. The mean
weights are those of samples with right and with wrong labels, or of rare and of other classes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autoweight.report import svg
from autoweight.report.lines import Series, line_chart
from autoweight.report.svg import HEIGHT, WIDTH

Runs = dict[str, dict[str, Any]]
Trainings = tuple[tuple[str, str, str, str], ...]

# name in the legend, the run and the method that weighs, the run that has uniform
TRAININGS = (
    ("CIFAR-10, 40 % redrawn, auto", "cifar10-today-0.4-auto", "auto", "cifar10-today-0.4-rivals"),
    ("CIFAR-10, alike classes confused, law", "cifar10-today-0-asymmetric-0.4", "law", "cifar10-today-asymmetric-0.4"),
    ("CIFAR-100, 40 % redrawn, auto", "cifar100-today-0.4-auto", "auto", "cifar100-today-0.4"),
    ("CIFAR-10, nothing wrong, law", "cifar10-today-0-clean", "law", "cifar10-today-clean"),
)
PAPERS = (
    ("CIFAR-10, 40 % redrawn", "cifar10-noise-64-1-compare-1", "law", "cifar10-noise-64-1-compare-1"),
    ("CIFAR-100, 40 % redrawn", "cifar100-noise-0-compare-1", "law", "cifar100-noise-0-compare-1"),
    ("CIFAR-10, two rare classes", "cifar10-imbalance-0-compare", "law", "cifar10-imbalance-0-compare"),
    ("CIFAR-100, long tail", "cifar100-longtail-0-compare-1", "law", "cifar100-longtail-0-compare-1"),
)
"""The same under the paper's training, law all of them."""
LONG_TAILS = {"CIFAR-10": "cifar10-longtail-auto", "CIFAR-100": "cifar100-longtail-auto"}
SEARCH, EPISODES = "cifar10-today-0", (0, 3, 7)
_LEGEND = 20  # height of a line
_STYLE = Path(svg.__file__).with_name("page.css").read_text() + "svg { background: var(--card); }"


def draw(runs: Runs, folder: Path) -> None:
    """Write the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "loss-gap": ("loss gap", _gaps(runs, TRAININGS)),
        "loss-gap-paper": ("loss gap", _gaps(runs, PAPERS)),
        "loss-gap-search": ("loss gap", _search_gaps(runs)),
        "mean-weights": ("mean weight", _weights(runs)),
        "mean-weights-rare": ("mean weight", _rare_weights(runs)),
    }
    for name, (y_name, series) in pictures.items():
        if not series:
            continue
        stages = range(1, 1 + max(len(one.values) for one in series))
        chart = line_chart(stages, series, x_name="stage", y_name=y_name, zero=True)
        (folder / f"{name}.svg").write_text(_alone(chart, series) + "\n")


def _kept(runs: Runs, trainings: Trainings) -> Trainings:
    return tuple(one for one in trainings if one[1] in runs and one[3] in runs)


def _gaps(runs: Runs, trainings: Trainings) -> list[Series]:
    series = []
    for name, run, method, plain in _kept(runs, trainings):
        own, uniform = (
            runs[where]["methods"][what]["train_loss"][0] for where, what in ((run, method), (plain, "uniform"))
        )
        series.append(Series(name, [one - other for one, other in zip(own, uniform, strict=True)]))
    return series


def _search_gaps(runs: Runs) -> list[Series]:
    episodes = runs[SEARCH]["search"]["loss_gap"] if SEARCH in runs else []
    return [Series(f"episode {number + 1}", episodes[number]) for number in EPISODES if episodes]


def _weights(runs: Runs) -> list[Series]:
    series = []
    for name, run, method, _ in _kept(runs, TRAININGS):
        stages = runs[run]["methods"][method]["mean_weights"][0]
        if "wrong" not in stages[0]:  # nothing is wrong
            continue
        series += [Series(f"{name}: {kind}", [stage[kind] for stage in stages]) for kind in ("right", "wrong")]
    return series


def _rare_weights(runs: Runs) -> list[Series]:
    series = []
    for name, run in LONG_TAILS.items():
        for values in runs[run]["methods"].values() if run in runs else ():
            kinds = {"rare": "classes below half the mean size", "other": "the others"}
            series += [
                Series(f"{name}: {what}", [one[kind] for one in values["mean_weights"][0]])
                for kind, what in kinds.items()
            ]
    return series


def _alone(chart: str, series: Sequence[Series]) -> str:
    """A chart of a page as a picture of its own, with the page's colours and the names of its lines."""
    names = "".join(
        f'<g class="s{number}"><path class="line" d="M56 {HEIGHT + 8 + number * _LEGEND}h36"/></g>'
        f'<text x="100" y="{HEIGHT + 12 + number * _LEGEND}">{one.name}</text>'
        for number, one in enumerate(series)
    )
    height = HEIGHT + len(series) * _LEGEND + 8
    chart = re.sub(r" tabindex='0' data-chart='[^']*'", "", chart)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="640"'
    chart = re.sub(r'<svg viewBox="[^"]*"', opening, chart, count=1)
    return chart.replace("</svg>", f"{names}</svg>").replace(">", f"><style>{_STYLE}</style>", 1)
