"""Charts of lines over stages, episodes or the values of a feature."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10

from autoweight.report.svg import (
    BOTTOM,
    HEIGHT,
    RIGHT,
    TOP,
    WIDTH,
    Axes,
    Figure,
    Key,
    axis_names,
    nice_ticks,
    picture,
    room_for,
    style_of,
)

_FAINTEST = 1e-5  # of the highest: what lies below would stretch a logarithmic axis for nothing
_NEAR = 0.12  # of the width: labels nearer to the last would lie on it
WARMUP = "Shaded is the warm-up, in which all samples count the same."

Values = Sequence[float | None]


@dataclass(frozen=True)
class Series:
    """A line of a chart; where `band` is given, it is shaded between these two."""

    name: str
    values: Values
    band: tuple[Values, Values] | None = None
    style: int | None = None
    """Which colour and dash, where it is one on all charts of a page; by default the next one of the chart."""


def line_figure(
    title: str,
    look_for: str,
    xs: Sequence[float],
    series: Sequence[Series],
    *,
    y_name: str,
    x_name: str = "stage",
    shade: tuple[float, float] | None = None,
    zero: bool = False,
    steps: bool = False,
    dots: Sequence[tuple[float, float]] = (),
    dots_name: str = "",
) -> Figure:
    """Lines over common xs with their legend; `shade` is a warm-up. In `steps`, a wide range has a logarithmic axis."""
    series = [replace(one, style=number) if one.style is None else one for number, one in enumerate(series)]
    svg = line_chart(xs, series, x_name=x_name, y_name=y_name, shade=shade, zero=zero, steps=steps, dots=dots)
    legend = [Key(one.name, style_of(one.style or 0)) for one in series]
    if dots:
        legend.append(Key(dots_name, "", dots=True))
    return Figure(title, f"{look_for} {WARMUP}" if shade else look_for, svg, tuple(legend))


def line_chart(
    xs: Sequence[float],
    series: Sequence[Series],
    *,
    x_name: str,
    y_name: str,
    shade: tuple[float, float] | None = None,
    zero: bool = False,
    steps: bool = False,
    dots: Sequence[tuple[float, float]] = (),
) -> str:
    """Lines over common xs, with what the page's script needs to show values; `dots` lie behind them."""
    known = [value for one in series for part in (one.values, *(one.band or ())) for value in part if _sound(value)]
    known += [y for _, y in dots]
    axes, ticks = _axes(xs, known, zero, steps)
    whole = all(x == int(x) for x in xs)  # stages and episodes have no halves
    parts = [_frame(axes, x_name, y_name, _x_ticks(axes, whole), ticks)]
    if shade is not None:
        parts.append(_shaded(axes, *shade))
    if zero:
        parts.append(f'<path class="zero" d="M{axes.left} {axes.y(0)}H{WIDTH - RIGHT}"/>')
    if dots:
        path = "".join(f"M{axes.x(x)} {axes.y(y)}h0" for x, y in dots)
        parts.append(f'<g data-series="{len(series)}"><path class="dots" d="{path}"/></g>')
    for number, one in enumerate(series):
        band = _band(axes, xs, one.band) if one.band else ""
        style = style_of(number if one.style is None else one.style)
        line = _line(axes, xs, one.values, steps)
        parts.append(f'<g class="{style}" data-series="{number}">{band}{line}</g>')
    return picture(parts, _alt(series, x_name, y_name), _chart_data(axes, xs, series, x_name))


def _axes(xs: Sequence[float], known: list[float], zero: bool, steps: bool) -> tuple[Axes, list[float]]:
    """The axes, and the ticks of y."""
    positive = [value for value in known if value > _FAINTEST * max(known)]
    log = steps and bool(positive) and max(positive) > 10 * min(positive)
    if log:
        ticks = [10.0**k for k in range(floor(log10(min(positive))), ceil(log10(max(positive))) + 1)]
        low, high = log10(ticks[0]), log10(ticks[-1])
    else:
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
        ticks = nice_ticks(low, high)
        low, high = min(low, ticks[0]), max(high, ticks[-1])
    left = room_for(f"{tick:g}" for tick in ticks)
    return Axes(min(xs, default=0), max(xs, default=1), low, high, left=left, log=log), ticks


def _x_ticks(axes: Axes, whole: bool) -> list[float]:
    """Round numbers along x; of whole ones, the last has its label."""
    ticks = [tick for tick in nice_ticks(axes.x_low, axes.x_high) if axes.x_low <= tick <= axes.x_high]
    if not whole:
        return ticks
    near = _NEAR * (axes.x_high - axes.x_low)
    return [tick for tick in ticks if tick == int(tick) and axes.x_high - tick > near] + [axes.x_high]


def _frame(axes: Axes, x_name: str, y_name: str, x_ticks: list[float], y_ticks: list[float]) -> str:
    bottom = HEIGHT - BOTTOM
    parts = []
    for tick in y_ticks:
        y = axes.y(tick)
        parts.append(f'<path class="grid" d="M{axes.left} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{axes.left - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        parts.append(f'<text x="{axes.x(tick)}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
    return "".join(parts) + axis_names(x_name, y_name, HEIGHT, axes.left)


def _shaded(axes: Axes, begin: float, end: float) -> str:
    """The warm-up's part of a chart, as far as the chart shows it."""
    left, right = (axes.x(min(max(x, axes.x_low), axes.x_high)) for x in (begin, end))
    return (
        f'<rect class="shade" x="{left}" y="{TOP}" width="{right - left:.1f}" height="{HEIGHT - BOTTOM - TOP}">'
        f"<title>{WARMUP}</title></rect>"
    )


def _chart_data(axes: Axes, xs: Sequence[float], series: Sequence[Series], x_name: str) -> str:
    """Attributes by which the page's script shows values."""
    data = {
        "x": list(xs),
        "at": [axes.x(x) for x in xs],
        "x_name": x_name,
        "series": [{"name": one.name, "y": [_short(value) for value in one.values]} for one in series],
    }
    text = json.dumps(data, separators=(",", ":"))
    for letter, escaped in (("&", "\\u0026"), ("<", "\\u003c"), ("'", "\\u0027")):
        text = text.replace(letter, escaped)
    return f" tabindex='0' data-chart='{text}'"


def _line(axes: Axes, xs: Sequence[float], values: Values, steps: bool = False) -> str:
    """A line with gaps where values are missing; in steps, it jumps halfway between two xs."""
    path, before = [], None
    for x, value in zip(xs, values, strict=True):
        if value is None or not isfinite(value) or (axes.log and value < 10**axes.y_low):
            before = None
            continue
        if before is None:
            path.append(f"M{axes.x(x)} {axes.y(value)}")
        elif steps:
            path.append(f"H{axes.x((before + x) / 2)}V{axes.y(value)}H{axes.x(x)}")
        else:
            path.append(f"L{axes.x(x)} {axes.y(value)}")
        before = x
    lone = len(path) == 1
    return f'<path class="{"dot" if lone else "line"}" d="{"".join(path)}{"h0" if lone else ""}"/>' if path else ""


def _band(axes: Axes, xs: Sequence[float], band: tuple[Values, Values]) -> str:
    rows = [(x, low, high) for x, low, high in zip(xs, *band, strict=True) if low is not None and high is not None]
    rows = [] if axes.log else rows
    there = [f"{axes.x(x)} {axes.y(high)}" for x, _, high in rows]
    back = [f"{axes.x(x)} {axes.y(low)}" for x, low, _ in reversed(rows)]
    return f'<path class="band" d="M{"L".join(there + back)}Z"/>' if rows else ""


def _alt(series: Sequence[Series], x_name: str, y_name: str) -> str:
    """Where each line starts and ends, for those who cannot see it."""
    ends = []
    for one in series:
        known = [value for value in one.values if _sound(value)]
        if known:
            ends.append(f"{one.name} goes from {known[0]:.3g} to {known[-1]:.3g}")
    return f"{y_name} by {x_name}: " + "; ".join(ends)


def _sound(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _short(value: float | None) -> float | None:
    return float(f"{value:.4g}") if value is not None and isfinite(value) else None
