"""What labels of each task look like."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import IGNORED, TaskName
from autoweight.errors import require


def check_labels(labels: Tensor, num_classes: int | None, task: TaskName) -> tuple[Tensor, int]:
    """Labels in the type that the task trains on, and how many classes or targets there are."""
    require(labels.numel() > 0, "the data set is empty.")
    return _CHECKS[task](labels, num_classes)


def no_text(labels: Any) -> NDArray[Any]:
    """Labels as an array; `TypeError` where they are text."""
    values = np.asarray(labels)
    first = next(values.flat, None)
    if isinstance(first, str):
        raise TypeError(
            f"labels are text, such as {str(first)!r}: number the classes from 0 on, as np.unique(labels, "
            "return_inverse=True)[1] does."
        )
    return values


def _classes(labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    require(
        _whole(labels) and labels.dim() == 1,
        f"labels must be whole numbers in one dimension, but are {labels.dtype} of shape {tuple(labels.shape)}.",
    )
    return labels.long(), _count(labels.long(), num_classes)


def _tokens(labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    require(
        _whole(labels) and labels.dim() == 2,
        f"labels of tokens must be whole numbers [samples, tokens], but are {labels.dtype} of shape "
        f"{tuple(labels.shape)}.",
    )
    labels = labels.long()
    counted = labels[labels != IGNORED]
    require(len(counted) > 0, f"all tokens are to be ignored (label {IGNORED}): there is nothing to learn.")
    return labels, _count(counted, num_classes)


def _several(labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    require(
        labels.dim() == 2 and bool(((labels == 0) | (labels == 1)).all()),
        f"several labels a sample are zeros and ones [samples, labels], but these are {labels.dtype} of shape "
        f"{tuple(labels.shape)}.",
    )
    return labels.float(), labels.shape[1]


def _targets(labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    require(
        labels.dim() in (1, 2) and labels.dtype != torch.bool and not labels.is_complex(),
        f"targets are numbers [samples] or [samples, targets], but these are {labels.dtype} of shape "
        f"{tuple(labels.shape)}.",
    )
    labels = labels.float()
    require(bool(labels.isfinite().all()), "a target is NaN or infinite: clean or drop its sample.")
    return labels, 1 if labels.dim() == 1 else labels.shape[1]


_CHECKS: dict[str, Callable[[Tensor, int | None], tuple[Tensor, int]]] = {
    "classification": _classes,
    "tokens": _tokens,
    "multilabel": _several,
    "regression": _targets,
    "huber": _targets,
}


def _whole(labels: Tensor) -> bool:
    return not (labels.is_floating_point() or labels.is_complex()) and labels.dtype != torch.bool


def _count(labels: Tensor, num_classes: int | None) -> int:
    lowest, highest = int(labels.min()), int(labels.max())
    require(lowest >= 0, f"labels count from 0, but one is {lowest}.")
    require(
        num_classes is None or highest < num_classes,
        f"label {highest} is out of range: with {num_classes} classes, labels go from 0 to {(num_classes or 0) - 1}.",
    )
    return num_classes if num_classes is not None else highest + 1
