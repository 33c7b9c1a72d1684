"""Columns of a table as numbers: standardised values, and one column for each frequent category.

Everything is learned from the training rows alone. A missing number becomes their mean, and a column of its own tells
that it was missing; a missing category is a category; one that was never seen is none of those known.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.data.own.rows import MISSING, Content, Encoded, Encoder
from autoweight.data.own.tables import words
from autoweight.errors import UserError, require

_MOST_CATEGORIES = 100
_FEW_ROWS = 20

Numbers = NDArray[np.float64]
Column = Callable[[NDArray[Any]], list[Numbers]]  # a column of any part, as some columns of numbers


def encode_columns(content: Content) -> Encoder:
    """Learn from the training rows how columns become numbers."""
    assert isinstance(content, dict)
    makers = {name: maker for name, column in content.items() if (maker := _maker(name, column)) is not None}
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


def _maker(name: str, column: NDArray[Any]) -> Column | None:
    numbers = as_numbers(column)
    if numbers is None:
        return _category_maker(name, words(column))
    known = numbers[np.isfinite(numbers)]
    if len(known) == 0 or (known == known[0]).all():
        return _presence_maker(name, numbers)
    whole = len(known) == len(numbers) >= _FEW_ROWS and (known == np.round(known)).all()
    if whole and (np.diff(known) > 0).all():
        warnings.warn(f"column '{name}' only counts the rows, so it is left out.", stacklevel=5)
        return None
    return _number_maker(name, numbers, float(known.mean()), float(known.std()))


def as_numbers(column: NDArray[Any]) -> Numbers | None:
    """A column as numbers, NaN where one is missing or infinite; None where it holds something else."""
    if column.dtype != object:
        numbers = column.astype(np.float64)
    else:
        try:
            numbers = np.array([_number(value) for value in column.tolist()], dtype=np.float64)
        except ValueError:
            return None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _number(text: str) -> float:
    return float("nan") if text.strip().lower() in MISSING else float(text)


def _numbers_of(name: str, column: NDArray[Any]) -> Numbers:
    numbers = as_numbers(column)
    if numbers is None:
        odd = next(word for word in words(column) if word and as_numbers(np.array([word], dtype=object)) is None)
        raise UserError(
            f"column '{name}' holds numbers in the training data, but '{odd}' in another part: make it one."
        )
    return numbers


def _number_maker(name: str, numbers: Numbers, mean: float, deviation: float) -> Column:
    some_missing = bool(np.isnan(numbers).any())

    def make(column: NDArray[Any]) -> list[Numbers]:
        values = _numbers_of(name, column)
        scaled = np.nan_to_num((values - mean) / deviation)  # a missing one is the mean
        return [scaled.clip(-1e3, 1e3), *([np.isnan(values) * 1.0] if some_missing else [])]

    return make


def _presence_maker(name: str, numbers: Numbers) -> Column | None:
    """A column of one value only tells where it is missing, if it does."""
    if np.isnan(numbers).all() or not np.isnan(numbers).any():
        return None
    return lambda column: [np.isnan(_numbers_of(name, column)) * 1.0]


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
