"""What charts are made of: inline SVG, coloured by the page's style sheet: light, dark and printable."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

WIDTH, HEIGHT = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 56, 22, 12, 42
LETTER, LABEL = 10, 17  # how wide a letter may be, and how high a line, on a phone too
_AXIS_NAME = 20  # what the name of the y axis takes at the left edge
_COLOURS, _DASHES = 8, 5  # that the style sheet has: 40 lines can be told apart
_TICKS = 5


class Key(NamedTuple):
    """What a line of a chart is called, or its dots, and how it is drawn."""

    name: str
    style: str
    dots: bool = False


@dataclass(frozen=True)
class Figure:
    """A chart, what it shows, and what to look for."""

    title: str
    look_for: str
    svg: str
    legend: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Axes:
    """From values to places in the picture."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    height: float = HEIGHT
    left: float = LEFT
    log: bool = False
    """Whether y_low and y_high are logarithms."""

    def x(self, value: float) -> float:
        """How far right a value lies."""
        share = (value - self.x_low) / ((self.x_high - self.x_low) or 1)
        return round(self.left + share * (WIDTH - self.left - RIGHT), 1)

    def y(self, value: float) -> float:
        """How far down a value lies."""
        share = ((log10(value) if self.log else value) - self.y_low) / ((self.y_high - self.y_low) or 1)
        return round(self.height - BOTTOM - share * (self.height - BOTTOM - TOP), 1)


def nice_ticks(low: float, high: float) -> list[float]:
    """About five round numbers that lie around or between two values."""
    if not (isfinite(low) and isfinite(high)) or high - low <= abs(high) * 1e-9:
        middle = low if isfinite(low) else 0.0
        low, high = middle - (abs(middle) or 1) * 0.1, middle + (abs(middle) or 1) * 0.1
    size = 10 ** floor(log10((high - low) / _TICKS))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= _TICKS)
    return [float(f"{k * step:.10g}") for k in range(floor(low / step), ceil(high / step) + 1)]


def room_for(labels: Iterable[str]) -> float:
    """Where the chart begins, so that the labels of its y axis do not lie on the axis' name."""
    return max(LEFT, _AXIS_NAME + 6 + ceil(LETTER * max(map(len, labels), default=0)))


def axis_names(x_name: str, y_name: str, height: float, left: float, top: float = TOP) -> str:
    """The names along the axes."""
    middle = top + (height - top - BOTTOM) / 2
    return (
        f'<text x="{(WIDTH + left) / 2}" y="{height - 8}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>'
    )


def picture(parts: Sequence[str], alt: str, more: str, height: float = HEIGHT) -> str:
    """A picture, with `more` attributes, which the page's script reads."""
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(alt)}"{more}>{"".join(parts)}</svg>'


def style_of(number: int) -> str:
    """Classes of the style sheet: a colour and a dash."""
    return f"s{number % _COLOURS} d{number % _DASHES}"
