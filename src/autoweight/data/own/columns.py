"""Columns of a table as numbers: standardised values, and one column for each frequent category.

Everything is learned from the training rows alone. A missing number becomes their mean, and a column of its own tells
that it was missing; a missing category is a category; one that was never seen is none of those known. A few words
among numbers count as missing.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.data.own.rows import MISSING, Content, Encoded, Encoder
from autoweight.data.own.tables import words
from autoweight.errors import UserError, require

_MOST_CATEGORIES = 100
_FEW_ROWS = 20
_INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")  # what pandas makes of an index without a name

Numbers = NDArray[np.float64]
Column = Callable[[NDArray[Any]], list[Numbers]]  # a column of any part, as some columns of numbers
_Reader = Callable[[NDArray[Any]], Numbers]


def encode_columns(content: Content, rows: NDArray[np.str_]) -> Encoder:
    """Learn from the training rows, of these names, how columns become numbers."""
    assert isinstance(content, dict)
    makers = {name: maker for name, column in content.items() if (maker := _maker(name, column, rows)) is not None}
    require(
        len(makers) > 0, f"no column besides the label tells the rows apart: {', '.join(content) or 'none is left'}."
    )

    def encode(part: Content) -> Encoded:
        assert isinstance(part, dict)
        missing = [name for name in makers if name not in part]
        require(not missing, f"column '{''.join(missing[:1])}' of the training data is missing in the other file.")
        made = [numbers for name, maker in makers.items() for numbers in maker(part[name])]
        return Encoded(torch.from_numpy(np.stack(made, axis=1).astype(np.float32)))

    return encode


def _maker(name: str, column: NDArray[Any], rows: NDArray[np.str_]) -> Column | None:
    if name in _INDEX_NAMES and len(np.unique(words(column))) == len(column):
        warnings.warn(f"column '{name}' is an index without a name, so it is left out.", stacklevel=5)
        return None
    numbers, odd = _as_numbers(column)
    if not _mostly(numbers, odd):
        _say_if_written_otherwise(name, column, f"{_first(column, odd)} ({rows[np.argmax(odd)]})")
        return _category_maker(name, words(column))
    if odd.any():
        _say_odd(name, odd, f"{_first(column, odd)} ({rows[np.argmax(odd)]})")
    read = partial(_numbers_of, name, said=bool(odd.any()))
    known = numbers[np.isfinite(numbers)]
    if len(known) == 0 or (known == known[0]).all():
        return _presence_maker(read, numbers)
    whole = len(known) == len(numbers) >= _FEW_ROWS and (known == np.round(known)).all()
    if whole and (known[1:] > known[:-1]).all():
        warnings.warn(f"column '{name}' only counts the rows, so it is left out.", stacklevel=5)
        return None
    return _number_maker(read, numbers, known)


class _Cells(NamedTuple):
    """A column as numbers."""

    numbers: Numbers
    """NaN where one is missing or infinite, or is none."""
    odd: NDArray[np.bool_]
    """Which cells hold something else than a number."""


def _as_numbers(column: NDArray[Any]) -> _Cells:
    """A column as numbers, as far as it holds some."""
    if column.dtype != object:
        numbers, odd = column.astype(np.float64), np.zeros(len(column), dtype=bool)
    else:
        cells = [_number(value) for value in column.tolist()]
        numbers, odd = np.array(cells, dtype=np.float64), np.array([cell is None for cell in cells], dtype=bool)
    return _Cells(np.where(np.isfinite(numbers), numbers, np.nan), odd)


def _number(text: str) -> float | None:
    """A cell as a number: NaN where it is missing, None where it is no number."""
    if text.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return None


def _mostly(numbers: Numbers, odd: NDArray[np.bool_]) -> bool:
    """Whether at least nine of ten cells that hold something hold a number."""
    return 9 * int(odd.sum()) <= int(np.isfinite(numbers).sum())


def _first(column: NDArray[Any], odd: NDArray[np.bool_]) -> str:
    """The first odd cell, as an example."""
    return f"'{str(column[np.argmax(odd)]).strip()}'"


def _say_odd(name: str, odd: NDArray[np.bool_], example: str) -> None:
    """Say which cells of a column of numbers are none."""
    told = f"column '{name}' holds numbers, but not in {int(odd.sum())} rows, such as {example}"
    warnings.warn(f"{told}: there it counts as missing.", stacklevel=6)


def _say_if_written_otherwise(name: str, column: NDArray[Any], example: str) -> None:
    """Say where a column would be one of numbers, were it not for commas and %."""
    bare = [word.replace(",", "").replace("%", "") for word in words(column)]
    if _mostly(*_as_numbers(np.array(bare, dtype=object))):
        told = f"column '{name}' looks like numbers written otherwise, such as {example}, so it is not read as numbers"
        warnings.warn(f"{told}: write a decimal point, and no % or separators of thousands.", stacklevel=6)


def _numbers_of(name: str, column: NDArray[Any], said: bool) -> Numbers:
    """A column of any part as numbers; of what is none, a little counts as missing, and more is refused."""
    numbers, odd = _as_numbers(column)
    if not _mostly(numbers, odd):
        raise UserError(
            f"column '{name}' holds numbers in the training data, but {_first(column, odd)} in another part: "
            "make it one."
        )
    if odd.any() and not said:
        _say_odd(name, odd, _first(column, odd))
    return numbers


def _number_maker(read: _Reader, numbers: Numbers, known: Numbers) -> Column:
    some_missing = bool(np.isnan(numbers).any())
    # Times a power of 2, which leaves the digits alone, lest squares of very large or small numbers lose theirs.
    exponent = -int(np.frexp(np.abs(known).max())[1])
    mean, deviation = (of(np.ldexp(known, exponent)) for of in (np.mean, np.std))

    @np.errstate(over="ignore")
    def make(column: NDArray[Any]) -> list[Numbers]:
        values = np.ldexp(read(column), exponent)
        scaled = np.nan_to_num((values - mean) / deviation)  # a missing one is the mean
        return [scaled.clip(-1e3, 1e3), *([np.isnan(values) * 1.0] if some_missing else [])]

    return make


def _presence_maker(read: _Reader, numbers: Numbers) -> Column | None:
    """A column of one value only tells where it is missing, if it does."""
    if np.isnan(numbers).all() or not np.isnan(numbers).any():
        return None
    return lambda column: [np.isnan(read(column)) * 1.0]


def _category_maker(name: str, column: NDArray[np.str_]) -> Column | None:
    counts = Counter(column.tolist())
    if len(counts) < 2:
        return None
    if len(column) >= _FEW_ROWS and len(counts) > 0.5 * len(column):
        long = sum(len(word.split()) for word in counts) / len(counts) > 3
        hint = f"; if it is the text to learn from, say --text {name}" if long else ""
        warnings.warn(f"column '{name}' differs in most rows, so it is left out{hint}.", stacklevel=6)
        return None
    places = {category: place for place, (category, _) in enumerate(counts.most_common(_MOST_CATEGORIES))}

    def make(part: NDArray[Any]) -> list[Numbers]:
        found = np.array([places.get(word, -1) for word in words(part).tolist()])
        return list((found == np.arange(len(places))[:, None]).astype(np.float64))

    return make
