"""Figures of a strategy: its parameters by stage, and the weight as a function of its features."""

import torch

from autoweight.report.lines import Series, line_figure
from autoweight.report.maps import heat_map
from autoweight.report.svg import Figure
from autoweight.report.words import scale_of, weights_at
from autoweight.strategy import Strategy
from autoweight.strategy.belief import probability_wrong

_POINTS = 25
_LINES = 4


def strategy_figures(strategy: Strategy) -> list[Figure]:
    """Theta by stage, then for each feature the weight by stage, and at a few stages."""
    figures = [_theta(strategy)]
    if not strategy.table.any():
        return figures  # all weights are 1
    for column in range(len(strategy.rule.features)):
        figures += [_map(strategy, column), _lines(strategy, column)]
    return figures


def warmup_shade(stages: int) -> tuple[float, float] | None:
    """Which part of a chart to shade for the first stages, which weigh nothing: to half a stage beyond the last."""
    return (0.0, stages + 0.5) if stages else None


def auto_figure() -> Figure:
    """How the shipped strategy reads margins."""
    margins = torch.linspace(-1, 1, 81)
    series = []
    for share in (0.02, 0.2, 0.4):
        right = 1 - probability_wrong(margins, torch.ones(()), torch.tensor(share))
        series.append(Series(f"{share:.0%} contradicted", right.tolist()))
    xs = [round(margin, 3) for margin in margins.tolist()]
    look_for = (
        "The margin is the probability of the label less that of the strongest other class. The fewer labels are "
        "contradicted, the more strongly one has to be before it loses weight. So it reads them once it has evidence "
        "that labels are wrong; until then all weights are 1, but for a few samples on trial."
    )
    title, y_name = "How auto reads a sample's margin", "probability: label right"
    return line_figure(title, look_for, xs, series, x_name="averaged margin", y_name=y_name, zero=True)


def _theta(strategy: Strategy) -> Figure:
    names = strategy.rule.param_names
    xs = [stage + 1.0 for stage in range(strategy.num_stages)]
    series = [Series(name, strategy.table[:, k].tolist()) for k, name in enumerate(names)]
    shade = warmup_shade(strategy.warmup_stages)
    look_for = (
        "Theta of each feature and the bias. Below zero, the more a sample has of that feature, the less it counts. "
        "Parameters that jump late are noise: the learning rate is tiny by then."
    )
    if "memory" in names:
        look_for += " Memory is no feature: the higher it is, the faster the memory forgets earlier visits."
    return line_figure("Theta by stage", look_for, xs, series, y_name="parameter", zero=True, shade=shade)


def _map(strategy: Strategy, column: int) -> Figure:
    name = strategy.rule.features[column]
    values, unit = _axis(strategy, column)
    rows = [weights_at(strategy, stage, column, values) for stage in range(strategy.num_stages)]
    cells = [
        [
            (weight - 1, f"stage {stage + 1}, {name} {value:.2g}: weight {weight:.2f}")
            for value, weight in zip(values, row, strict=True)
        ]
        for stage, row in enumerate(rows)
    ]
    svg = heat_map(
        [f"{value:.1f}" for value in values],
        [str(stage + 1) for stage in range(strategy.num_stages)],
        cells,
        x_name=f"{name}, {unit}",
        y_name="stage",
        alt=f"Weight by {name} and stage.{_others(strategy, column)}",
        scale=("0", "1", "2"),
        scale_name="weight",
    )
    look_for = f"Orange counts more than 1, blue less; blank is 1.{_others(strategy, column)}"
    return Figure(f"Weight by {name} and stage", look_for, svg)


def _lines(strategy: Strategy, column: int) -> Figure:
    name = strategy.rule.features[column]
    values, unit = _axis(strategy, column)
    last = strategy.num_stages - 1
    chosen = torch.linspace(min(strategy.warmup_stages, last), last, _LINES).round().int().unique().tolist()
    series = [Series(f"stage {stage + 1}", weights_at(strategy, stage, column, values)) for stage in chosen]
    look_for = "A steep line chooses sharply between samples; a flat one hardly weighs." + _others(strategy, column)
    x_name = f"{name}, {unit}"
    return line_figure(f"Weight by {name}", look_for, values, series, x_name=x_name, y_name="weight", zero=True)


def _others(strategy: Strategy, column: int) -> str:
    """Where the other features are held, each on its own scale."""
    others = [name for name in strategy.rule.features if name != strategy.rule.features[column]]
    places = [f"{name} at {scale_of(strategy.rule, name).even}" for name in others]
    return f" The other features are held: {', '.join(places)}." if places else ""


def _axis(strategy: Strategy, column: int) -> tuple[list[float], str]:
    """Values of a feature that come up, and what they are measured in."""
    name = strategy.rule.features[column]
    if name == "margin" and strategy.rule.margin_scale == "own":
        return torch.linspace(-1, 1, _POINTS).tolist(), "from -1 to 1"
    if name == "belief":
        return torch.linspace(-10, 10, _POINTS).tolist(), "log-odds of a right label"
    return torch.linspace(-2, 3, _POINTS).tolist(), f"deviations from {scale_of(strategy.rule, name).mean_of} mean"
