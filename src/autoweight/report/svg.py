"""Charts as small inline SVG, coloured by the page's style sheet, so that they are light, dark and printable."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

WIDTH, HEIGHT = 480, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 22, 12, 42
_LETTER, _LABEL = 10, 17  # how wide a letter may be, and how high a line, on a phone too
_AXIS_NAME = 20  # what the name of the y axis takes at the left edge
_COLOURS = 8
_TICKS = 5

Values = Sequence[float | None]


@dataclass(frozen=True)
class Figure:
    """A chart, what it shows, and what to look for."""

    title: str
    look_for: str
    svg: str
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """A line of a chart; where `band` is given, it is shaded between these two."""

    name: str
    values: Values
    band: tuple[Values, Values] | None = None


@dataclass(frozen=True)
class Axes:
    """From values to places in the picture."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    height: float = HEIGHT
    left: float = _LEFT

    def x(self, value: float) -> float:
        """How far right a value lies."""
        share = (value - self.x_low) / ((self.x_high - self.x_low) or 1)
        return round(self.left + share * (WIDTH - self.left - _RIGHT), 1)

    def y(self, value: float) -> float:
        """How far down a value lies."""
        share = (value - self.y_low) / ((self.y_high - self.y_low) or 1)
        return round(self.height - _BOTTOM - share * (self.height - _BOTTOM - _TOP), 1)


def line_chart(
    xs: Sequence[float],
    series: Sequence[Series],
    *,
    x_name: str,
    y_name: str,
    shade: tuple[float, float] | None = None,
    zero: bool = False,
    dots: Sequence[tuple[float, float]] = (),
) -> str:
    """Lines over common xs, with what the page's script needs to show values; `dots` lie behind them."""
    known = [value for one in series for part in (one.values, *(one.band or ())) for value in part if _sound(value)]
    known += [y for _, y in dots]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    ticks = nice_ticks(low, high)
    left = _room(f"{tick:g}" for tick in ticks)
    axes = Axes(min(xs, default=0), max(xs, default=1), min(low, ticks[0]), max(high, ticks[-1]), left=left)
    whole = all(x == int(x) for x in xs)  # stages and episodes have no halves
    x_ticks = [tick for tick in nice_ticks(axes.x_low, axes.x_high) if not whole or tick == int(tick)]
    parts = [_frame(axes, x_name, y_name, x_ticks, ticks)]
    if shade is not None:
        parts.append(_shaded(axes, *shade))
    if zero:
        parts.append(f'<path class="zero" d="M{left} {axes.y(0)}H{WIDTH - _RIGHT}"/>')
    if dots:
        parts.append(f'<path class="dots" d="{"".join(f"M{axes.x(x)} {axes.y(y)}h0" for x, y in dots)}"/>')
    for number, one in enumerate(series):
        band = _band(axes, xs, one.band) if one.band else ""
        parts.append(f'<g class="s{number % _COLOURS}" data-series="{number}">{band}{_line(axes, xs, one.values)}</g>')
    return _svg(parts, _alt(series, x_name, y_name), _chart_data(axes, xs, series, x_name))


def heat_map(
    columns: Sequence[str],
    rows: Sequence[str],
    cells: Sequence[Sequence[tuple[float, str]]],
    *,
    x_name: str,
    y_name: str,
    alt: str,
) -> str:
    """Cells coloured by a number from -1 (the low colour) over 0 (none) to 1, each with a text to show."""
    height = max(HEIGHT, min(_LABEL * len(rows), 420) + _TOP + _BOTTOM)
    left = _room(rows)
    wide = (WIDTH - left - _RIGHT) / max(len(columns), 1)
    high = (height - _TOP - _BOTTOM) / max(len(rows), 1)
    parts = [_names(columns, rows, left, wide, high, height, x_name, y_name)]
    for row, line in enumerate(cells):
        for column, (value, text) in enumerate(line):
            kind = "hot" if value >= 0 else "cold"
            parts.append(
                f'<rect class="{kind}" x="{left + column * wide:.1f}" y="{_TOP + row * high:.1f}" width="{wide:.1f}" '
                f'height="{high:.1f}" fill-opacity="{min(abs(value), 1):.2g}"><title>{escape(text)}</title></rect>'
            )
    return _svg(parts, alt, f" tabindex='0' data-cells='{len(columns)}'", height)


def dot_chart(rows: Sequence[tuple[str, float, float | None]], *, x_name: str) -> str:
    """A dot for each name, with its standard error to both sides."""
    ends = [value + sign * (error or 0) for _, value, error in rows for sign in (-1, 1)]
    ticks = nice_ticks(min(ends), max(ends))
    height = _TOP + _BOTTOM + 26 * len(rows)
    axes = Axes(min(ticks[0], *ends), max(ticks[-1], *ends), 0, 1, height)
    left = max(120, 10 + ceil(_LETTER * max(len(name) for name, _, _ in rows)))
    scale = (WIDTH - _RIGHT - left) / (WIDTH - _RIGHT - _LEFT)

    def place(value: float) -> float:
        return round(left + (axes.x(value) - _LEFT) * scale, 1)

    parts = [
        f'<path class="grid" d="M{place(tick)} {_TOP}V{height - _BOTTOM}"/>'
        f'<text x="{place(tick)}" y="{height - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    ]
    for number, (name, value, error) in enumerate(rows):
        y = _TOP + 26 * number + 13
        about = f"{value:.2f}" + (f" ± {error:.2f}" if error is not None else "")
        whisker = f'<path class="line" d="M{place(value - error)} {y}H{place(value + error)}"/>' if error else ""
        parts.append(
            f'<g class="s0"><title>{escape(name)}: {about}</title>{whisker}<circle cx="{place(value)}" cy="{y}" r="5"/>'
            f'</g><text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 8}" text-anchor="middle">{escape(x_name)}</text>')
    return _svg(parts, f"{x_name}: " + ", ".join(f"{name} {value:.1f}" for name, value, _ in rows), "", height)


def nice_ticks(low: float, high: float) -> list[float]:
    """About five round numbers that lie around or between two values."""
    if not (isfinite(low) and isfinite(high)) or high - low <= abs(high) * 1e-9:
        middle = low if isfinite(low) else 0.0
        low, high = middle - (abs(middle) or 1) * 0.1, middle + (abs(middle) or 1) * 0.1
    size = 10 ** floor(log10((high - low) / _TICKS))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= _TICKS)
    return [float(f"{k * step:.10g}") for k in range(floor(low / step), ceil(high / step) + 1)]


def _frame(axes: Axes, x_name: str, y_name: str, x_ticks: list[float], y_ticks: list[float]) -> str:
    bottom = HEIGHT - _BOTTOM
    parts = []
    for tick in y_ticks:
        y = axes.y(tick)
        parts.append(f'<path class="grid" d="M{axes.left} {y}H{WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{axes.left - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        if axes.x_low <= tick <= axes.x_high:
            parts.append(f'<text x="{axes.x(tick)}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
    return "".join(parts) + _axis_names(x_name, y_name, HEIGHT, axes.left)


def _shaded(axes: Axes, begin: float, end: float) -> str:
    """The warm-up's part of a chart, as far as the chart shows it."""
    left, right = (axes.x(min(max(x, axes.x_low), axes.x_high)) for x in (begin, end))
    return (
        f'<rect class="shade" x="{left}" y="{_TOP}" width="{right - left:.1f}" height="{HEIGHT - _BOTTOM - _TOP}">'
        "<title>warm-up: all samples count the same</title></rect>"
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


def _room(labels: Iterable[str]) -> float:
    """Where the chart begins, so that the labels of its y axis do not lie on the axis' name."""
    return max(_LEFT, _AXIS_NAME + 6 + ceil(_LETTER * max(map(len, labels), default=0)))


def _axis_names(x_name: str, y_name: str, height: float, left: float) -> str:
    middle = _TOP + (height - _TOP - _BOTTOM) / 2
    return (
        f'<text x="{(WIDTH + left) / 2}" y="{height - 8}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>'
    )


def _names(
    columns: Sequence[str],
    rows: Sequence[str],
    left: float,
    wide: float,
    high: float,
    height: float,
    x_name: str,
    y_name: str,
) -> str:
    """Names along both sides, as many as there is room for."""

    def spread(names: Sequence[str], needed: float, there: float) -> range:
        return range(0, len(names), ceil(needed / there))

    longest = max(map(len, columns), default=0)
    parts = [
        f'<text x="{left + (k + 0.5) * wide:.1f}" y="{height - _BOTTOM + 16:.0f}" text-anchor="middle">'
        f"{escape(columns[k])}</text>"
        for k in spread(columns, _LETTER * longest + 4, wide)
    ]
    parts += [
        f'<text x="{left - 6}" y="{_TOP + (k + 0.5) * high + 4:.1f}" text-anchor="end">{escape(rows[k])}</text>'
        for k in spread(rows, _LABEL, high)
    ]
    return "".join(parts) + _axis_names(x_name, y_name, height, left)


def _line(axes: Axes, xs: Sequence[float], values: Values) -> str:
    path, pen = [], "M"
    for x, value in zip(xs, values, strict=True):
        if value is None or not isfinite(value):
            pen = "M"
            continue
        path.append(f"{pen}{axes.x(x)} {axes.y(value)}")
        pen = "L"
    lone = len(path) == 1
    return f'<path class="{"dot" if lone else "line"}" d="{"".join(path)}{"h0" if lone else ""}"/>' if path else ""


def _band(axes: Axes, xs: Sequence[float], band: tuple[Values, Values]) -> str:
    rows = [(x, low, high) for x, low, high in zip(xs, *band, strict=True) if low is not None and high is not None]
    there = [f"{axes.x(x)} {axes.y(high)}" for x, _, high in rows]
    back = [f"{axes.x(x)} {axes.y(low)}" for x, low, _ in reversed(rows)]
    return f'<path class="band" d="M{"L".join(there + back)}Z"/>' if rows else ""


def _svg(parts: Sequence[str], alt: str, more: str, height: float = HEIGHT) -> str:
    """A picture, with `more` attributes, which the page's script reads."""
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(alt)}"{more}>{"".join(parts)}</svg>'


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
