"""Charts of names beside names: maps of coloured cells, and dots with their errors."""

from collections.abc import Sequence
from html import escape
from math import ceil
from typing import NamedTuple

from autoweight.report.svg import (
    BOTTOM,
    HEIGHT,
    LABEL,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Axes,
    axis_names,
    nice_ticks,
    picture,
    room_for,
    style_of,
)

_SCALE = 32  # what a map's scale of colours takes above it
_SCALE_WIDTH, _SCALE_PARTS = 150, 15
_FAINT = 0.5  # strongest colour behind a number


def heat_map(
    columns: Sequence[str],
    rows: Sequence[str],
    cells: Sequence[Sequence[tuple[float, str]]],
    *,
    x_name: str,
    y_name: str,
    alt: str,
    scale: Sequence[str] = (),
    scale_name: str = "",
    printed: Sequence[Sequence[str]] = (),
) -> str:
    """Cells coloured by a number from -1 (the low colour) over 0 (none) to 1, each with a text to show.

    `scale` says what the colours stand for: at 0 and 1, or at -1, 0 and 1. What is `printed` stands in the cells where
    there is room.
    """
    grid = _grid(columns, rows, TOP + _SCALE * bool(scale))
    longest = max((len(text) for line in printed for text in line), default=0)
    if longest * LETTER > grid.wide or grid.high < LABEL:
        printed = ()
    strongest = _FAINT if printed else 1.0
    parts = [_names(columns, rows, grid), axis_names(x_name, y_name, grid.height, grid.left, grid.top)]
    if scale:
        parts.append(_colours(scale, scale_name, grid.left, strongest))
    for row, line in enumerate(cells):
        for column, (value, text) in enumerate(line):
            kind = "hot" if value >= 0 else "cold"
            parts.append(
                f'<rect class="{kind}" x="{grid.x(column):.1f}" y="{grid.y(row):.1f}" width="{grid.wide:.1f}" '
                f'height="{grid.high:.1f}" fill-opacity="{strongest * min(abs(value), 1):.2g}">'
                f"<title>{escape(text)}</title></rect>"
            )
    for row, texts in enumerate(printed):
        for column, text in enumerate(texts):
            x, y = grid.x(column + 0.5), grid.y(row + 0.5) + 5
            parts.append(f'<text class="count" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>')
    return picture(parts, alt, f" tabindex='0' data-cells='{len(columns)}'", grid.height)


class _Grid(NamedTuple):
    """Where the cells of a map lie, and how large they are."""

    left: float
    top: float
    wide: float
    """A cell's width."""
    high: float
    """Its height."""
    height: float
    """Of the whole picture."""

    def x(self, column: float) -> float:
        """Where a column begins."""
        return self.left + column * self.wide

    def y(self, row: float) -> float:
        """Where a row begins."""
        return self.top + row * self.high


def _grid(columns: Sequence[str], rows: Sequence[str], top: float) -> _Grid:
    height = max(HEIGHT, min(LABEL * len(rows), 420) + top + BOTTOM)
    left = room_for(rows)
    wide = (WIDTH - left - RIGHT) / max(len(columns), 1)
    high = (height - top - BOTTOM) / max(len(rows), 1)
    return _Grid(left, top, wide, high, height)


def _names(columns: Sequence[str], rows: Sequence[str], grid: _Grid) -> str:
    """Names along both sides, as many as there is room for."""

    def spread(names: Sequence[str], needed: float, there: float) -> range:
        return range(0, len(names), ceil(needed / there))

    longest = max(map(len, columns), default=0)
    below, beside = grid.height - BOTTOM + 16, grid.left - 6
    parts = [
        f'<text x="{grid.x(k + 0.5):.1f}" y="{below:.0f}" text-anchor="middle">{escape(columns[k])}</text>'
        for k in spread(columns, LETTER * longest + 4, grid.wide)
    ]
    parts += [
        f'<text x="{beside}" y="{grid.y(k + 0.5) + 4:.1f}" text-anchor="end">{escape(rows[k])}</text>'
        for k in spread(rows, LABEL, grid.high)
    ]
    return "".join(parts)


def _colours(scale: Sequence[str], name: str, left: float, strongest: float) -> str:
    """A strip of the colours, what they stand for below it, and what that is beside it."""
    begin, width = (-1.0 if len(scale) > 2 else 0.0), _SCALE_WIDTH / _SCALE_PARTS
    parts = []
    for part in range(_SCALE_PARTS):
        value = begin + (1 - begin) * (part + 0.5) / _SCALE_PARTS
        kind, strength = "hot" if value >= 0 else "cold", strongest * abs(value)
        place = f"M{left + part * width:.1f} 4h{width:.1f}v10h-{width:.1f}Z"
        parts.append(f'<path class="{kind}" fill-opacity="{strength:.2f}" d="{place}"/>')
    parts.append(f'<path class="grid" d="M{left:.1f} 4h{_SCALE_WIDTH}v10h-{_SCALE_WIDTH}Z"/>')
    for number, label in enumerate(scale):
        x = left + _SCALE_WIDTH * number / (len(scale) - 1)
        parts.append(f'<text x="{x:.1f}" y="31" text-anchor="middle">{escape(label)}</text>')
    parts.append(f'<text x="{left + _SCALE_WIDTH + 10:.1f}" y="15">{escape(name)}</text>')
    return "".join(parts)


class Dot(NamedTuple):
    """A value, its standard error, and how it is drawn."""

    name: str
    value: float
    error: float | None
    style: int = 0


def dot_chart(rows: Sequence[Dot], *, x_name: str) -> str:
    """A dot for each name, with its standard error to both sides."""
    ends = [value + sign * (error or 0) for _, value, error, _ in rows for sign in (-1, 1)]
    ticks = nice_ticks(min(ends), max(ends))
    height = TOP + BOTTOM + 26 * len(rows)
    axes = Axes(min(ticks[0], *ends), max(ticks[-1], *ends), 0, 1, height)
    left = max(120, 10 + ceil(LETTER * max(len(row.name) for row in rows)))
    scale = (WIDTH - RIGHT - left) / (WIDTH - RIGHT - LEFT)

    def place(value: float) -> float:
        return round(left + (axes.x(value) - LEFT) * scale, 1)

    parts = [
        f'<path class="grid" d="M{place(tick)} {TOP}V{height - BOTTOM}"/>'
        f'<text x="{place(tick)}" y="{height - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    ]
    for number, (name, value, error, style) in enumerate(rows):
        y = TOP + 26 * number + 13
        about = f"{value:.2f}" + (f" ± {error:.2f}" if error is not None else "")
        whisker = f'<path class="line" d="M{place(value - error)} {y}H{place(value + error)}"/>' if error else ""
        parts.append(
            f'<g class="{style_of(style)}"><title>{escape(name)}: {about}</title>{whisker}'
            f'<circle cx="{place(value)}" cy="{y}" r="5"/></g>'
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 8}" text-anchor="middle">{escape(x_name)}</text>')
    return picture(parts, f"{x_name}: " + ", ".join(f"{name} {value:.1f}" for name, value, *_ in rows), "", height)
