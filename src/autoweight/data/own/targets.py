"""Labels of the user's own as numbers: classes by their names, several names a sample, or targets on a common scale."""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import IGNORED, TaskName
from autoweight.data.own.rows import MISSING, Rows
from autoweight.errors import UserError, require

SEPARATOR = ";"
"""Stands between the names of a sample that has several."""
_MOST_CLASSES = 50
"""More different labels than that need at least four samples each to be classes."""
_FEW = 10
"""A set of at least as many samples needs fewer different labels than samples."""


class Targets(NamedTuple):
    """How labels become numbers."""

    encode: Callable[[Rows], Tensor]
    num_classes: int
    class_names: tuple[str, ...] = ()


def learn_targets(train: Rows, task: TaskName) -> Targets:
    """Learn from the training samples what labels there are."""
    return _LEARNERS[task](train)


def labels_of(rows: Rows, task: TaskName) -> list[set[Any]]:
    """The labels of each sample: those that its cell names, its tokens' classes, or the places of its ones."""
    if rows.labels.ndim == 1:
        return [{name for part in cell.split(SEPARATOR) if (name := part.strip())} for cell in rows.labels.tolist()]
    if task == "tokens":
        return [set(np.unique(row[row != IGNORED]).tolist()) for row in rows.labels]
    return [set(np.flatnonzero(row).tolist()) for row in rows.labels]


def _classes(train: Rows) -> Targets:
    require(
        train.labels.ndim == 1,
        f"labels of shape {train.labels.shape} are several a sample: add --training.task multilabel (zeros and ones), "
        "tokens (a class a token) or regression (numbers).",
    )
    spelt = _spelling(np.unique(train.labels).tolist())
    names = _sorted(list({spelt(label) for label in train.labels.tolist()}))
    require(len(names) > 1, f"there is one class only ('{''.join(names[:1])}'): there is nothing to tell apart.")
    _check_not_too_many(names, train, "name another --label, or, for numbers, add --training.task regression")
    several = next((name for name in names if SEPARATOR in name), None)
    if several is not None:
        warnings.warn(
            f"'{several}' is taken for one class: for several labels a sample, add --training.task multilabel.",
            stacklevel=5,
        )
    odd = next((name for name in names if name.lower() in MISSING), None)
    if odd is not None:
        missing = "if it means that a label is missing, empty the cell or leave the sample out"
        warnings.warn(f"'{odd}' is taken for a class: {missing}.", stacklevel=5)
    places = {name: place for place, name in enumerate(names)}

    def encode(rows: Rows) -> Tensor:
        labels = [spelt(label) for label in rows.labels.tolist()]
        _check_known(rows, [{label} for label in labels], names)
        return torch.tensor([places[label] for label in labels], dtype=torch.long)

    return Targets(encode, len(names), tuple(names))


def _spelling(labels: list[str]) -> Callable[[str], str]:
    """One spelling for each label: where all are numbers, the shortest of equal ones, such as 1 and 1.0."""
    spellings: dict[Any, str] = {}
    for label in sorted(labels, key=len):
        spellings.setdefault(_number(label), label)
    return (lambda label: label) if None in spellings else lambda label: spellings.get(_number(label), label)


def _number(label: str) -> int | float | None:
    """The number that a label is, if it is one; whole ones are exact, however large."""
    if "_" in label:  # Python reads 1_0 as 10
        return None
    try:
        return int(label)
    except ValueError:
        pass
    try:
        return float(label) if math.isfinite(float(label)) else None
    except ValueError:
        return None


def _several(train: Rows) -> Targets:
    if train.labels.ndim == 2:
        _zeros_and_ones(train)
        return Targets(_zeros_and_ones, train.labels.shape[1], tuple(map(str, range(train.labels.shape[1]))))
    names = _sorted(list(set[str]().union(*labels_of(train, "multilabel"))))
    _check_not_too_many(names, train, f"name another --label, whose cells name labels, such as a{SEPARATOR}b")
    if not any(SEPARATOR in cell for cell in train.labels.tolist()):
        warnings.warn(f"no sample has more than one label: '{SEPARATOR}' stands between several.", stacklevel=5)

    def encode(rows: Rows) -> Tensor:
        named = labels_of(rows, "multilabel")
        _check_known(rows, named, names)
        return torch.tensor([[float(name in own) for name in names] for own in named])

    return Targets(encode, len(names), tuple(names))


def _zeros_and_ones(rows: Rows) -> Tensor:
    odd = rows.labels[(rows.labels != 0) & (rows.labels != 1)]
    require(len(odd) == 0, f"several labels a sample are zeros and ones, but one is {''.join(map(str, odd[:1]))}.")
    return torch.from_numpy(rows.labels.astype(np.float32))


def _tokens(train: Rows) -> Targets:
    _check_tokens(train)
    known = np.unique(train.labels[train.labels != IGNORED])
    require(
        len(known) > 1, f"tokens have {len(known)} class{'es' * (len(known) == 0)}: there is nothing to tell apart."
    )

    def encode(rows: Rows) -> Tensor:
        _check_tokens(rows)
        _check_known(rows, labels_of(rows, "tokens"), known.tolist())
        places = np.where(rows.labels == IGNORED, IGNORED, np.searchsorted(known, rows.labels))
        return torch.from_numpy(places.astype(np.int64))

    return Targets(encode, len(known), tuple(map(str, known)))


def _check_tokens(rows: Rows) -> None:
    ids = np.asarray(rows.content) if not isinstance(rows.content, dict) else np.zeros(0)
    whole = np.issubdtype(rows.labels.dtype, np.integer) and np.issubdtype(ids.dtype, np.integer)
    require(
        whole and ids.shape == rows.labels.shape,
        "tokens are read from an .npz: x holds their ids and y their classes, both whole numbers [samples, tokens], "
        f"with {IGNORED} in y where a token does not count.",
    )
    require(int(ids.min()) >= 0, f"ids of tokens count from 0, but one is {int(ids.min())}.")


def _numbers(train: Rows) -> Targets:
    values = _floats(train)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    of = " of a column" if values.ndim == 2 else ""
    require(bool((deviation > 0).all()), f"all targets{of} are the same number: there is nothing to learn.")

    def scaled(rows: Rows) -> Tensor:
        """On a common scale, since networks begin with outputs around 0; R2 does not mind."""
        return torch.from_numpy(((_floats(rows) - mean) / deviation).astype(np.float32))

    return Targets(scaled, 1 if values.ndim == 1 else values.shape[1])


def _floats(rows: Rows) -> NDArray[np.float64]:
    for label, name in zip(rows.labels.tolist(), rows.names.tolist(), strict=True):
        try:
            fine = bool(np.isfinite(np.asarray(label, dtype=np.float64)).all())
        except ValueError:
            fine = False
        require(fine, f"{name} has the target '{label}', which is no number.")
    return rows.labels.astype(np.float64)


def _check_not_too_many(names: list[str], train: Rows, remedy: str) -> None:
    require(
        len(names) < min(_MOST_CLASSES + 1, max(len(train), _FEW)) or 4 * len(names) <= len(train),
        f"there are {len(names)} different labels in {len(train)} samples, too many for classes: {remedy}.",
    )


def _check_known(rows: Rows, labels: list[set[Any]], names: list[Any]) -> None:
    known = set(names)
    for name, own in zip(rows.names.tolist(), labels, strict=True):
        if not own <= known:
            raise UserError(
                f"{name} has the label '{min(own - known)}', which the training data do not have: they have "
                f"{', '.join(map(str, names[:10]))}{', ...' if len(names) > 10 else ''}."
            )


def _sorted(names: list[str]) -> list[str]:
    """Numbers by their size, all else by the alphabet."""
    try:
        return sorted(sorted(names), key=float)  # large whole numbers may be the same as floats
    except ValueError:
        return sorted(names)


_LEARNERS: dict[TaskName, Callable[[Rows], Targets]] = {
    "classification": _classes,
    "multilabel": _several,
    "tokens": _tokens,
    "regression": _numbers,
    "huber": _numbers,
}
