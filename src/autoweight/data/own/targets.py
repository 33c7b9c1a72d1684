"""Labels of the user's own as numbers: classes by their names, or targets on a common scale."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import TaskName
from autoweight.data.own.rows import Rows
from autoweight.errors import UserError, require

_MOST_CLASSES = 50
"""More different labels than that need at least four samples each to be classes."""


class Targets(NamedTuple):
    """How labels become numbers."""

    encode: Callable[[Rows], Tensor]
    num_classes: int
    class_names: tuple[str, ...] = ()


def learn_targets(train: Rows, task: TaskName) -> Targets:
    """Learn from the training samples what labels there are."""
    if task not in _LEARNERS:
        known = " or ".join(_LEARNERS)
        raise UserError(f"files of one's own are for {known}; for {task}, call aw.fit from Python.")
    return _LEARNERS[task](train)


def _classes(train: Rows) -> Targets:
    names = _sorted(np.unique(train.labels).tolist())
    require(len(names) > 1, f"there is one class only ('{''.join(names[:1])}'): there is nothing to tell apart.")
    require(
        len(names) <= _MOST_CLASSES or 4 * len(names) <= len(train),
        f"there are {len(names)} different labels in {len(train)} samples, too many for classes: name another "
        "--label, or, for numbers, add --training.task regression.",
    )
    places = {name: place for place, name in enumerate(names)}

    def encode(rows: Rows) -> Tensor:
        strange = next((place for place, label in enumerate(rows.labels) if label not in places), None)
        if strange is not None:
            raise UserError(
                f"{rows.names[strange]} has the label '{rows.labels[strange]}', which the training data do not have: "
                f"they have {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}."
            )
        return torch.tensor([places[label] for label in rows.labels.tolist()], dtype=torch.long)

    return Targets(encode, len(names), tuple(names))


def _numbers(train: Rows) -> Targets:
    values = _floats(train)
    mean, deviation = float(values.mean()), float(values.std())
    require(deviation > 0, "all targets are the same number: there is nothing to learn.")
    # On a common scale, since networks begin with outputs around 0; R2 does not mind.
    return Targets(lambda rows: torch.from_numpy(((_floats(rows) - mean) / deviation).astype(np.float32)), 1)


def _floats(rows: Rows) -> NDArray[np.float64]:
    for label, name in zip(rows.labels.tolist(), rows.names.tolist(), strict=True):
        try:
            fine = np.isfinite(float(label))
        except ValueError:
            fine = False
        require(bool(fine), f"{name} has the target '{label}', which is no number.")
    return rows.labels.astype(np.float64)


def _sorted(names: list[str]) -> list[str]:
    """Numbers by their size, all else by the alphabet."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


_LEARNERS: dict[TaskName, Callable[[Rows], Targets]] = {
    "classification": _classes,
    "regression": _numbers,
    "huber": _numbers,
}
