"""Samples from what users hold: tensors, arrays, or a map-style PyTorch `Dataset`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from autoweight.config import TaskName
from autoweight.data.dataset import Samples
from autoweight.data.inputs import Inputs, each, together
from autoweight.errors import UserError, first_line, require

DataLike = Samples | tuple[Any, Any] | Dataset[Any]


def as_samples(data: DataLike, num_classes: int | None = None, task: TaskName = "classification") -> Samples:
    """Samples from `Samples`, a pair of inputs and labels, or a map-style PyTorch `Dataset` of such pairs.

    Inputs may be one tensor, or a dict or tuple of tensors.
    """
    if isinstance(data, Samples):
        return data
    is_pair = isinstance(data, tuple) or (
        isinstance(data, list) and len(data) == 2 and isinstance(data[0], Tensor | np.ndarray | dict | tuple)
    )
    if not is_pair:
        _check_map_style(data)
    try:
        inputs, labels = data if is_pair else _columns(data)  # type: ignore[misc]
        samples = _inputs(inputs), _dense(labels)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            "data are a pair of tensors, inputs and labels, or a Dataset of such pairs, all inputs of one shape and "
            f"labels integers; these are not: {first_line(error)}."
        ) from error
    return Samples.of(*samples, num_classes, task)


def _check_map_style(data: Any) -> None:
    wanted = "pass tensors or a map-style Dataset, with __getitem__ and __len__"
    require(not isinstance(data, IterableDataset), f"{wanted}, not an IterableDataset: it cannot be shuffled.")
    require(hasattr(data, "__getitem__"), f"{wanted}, not a DataLoader or an iterable.")
    require(hasattr(data, "__len__"), f"{wanted}: this one has no length.")
    require(len(data) > 0, "the data set is empty.")


def _columns(data: Any) -> tuple[Inputs, Any]:
    """Inputs and labels of a map-style data set."""
    pairs = [data[position] for position in range(len(data))]
    inputs = together([_inputs(sample) for sample, _ in pairs], torch.stack)
    labels = [label.item() if isinstance(label, Tensor) and label.numel() == 1 else label for _, label in pairs]
    return inputs, np.stack([np.asarray(label) for label in labels])


def _inputs(inputs: Any) -> Inputs:
    if isinstance(inputs, dict | tuple):
        return each(inputs, _single)
    return _single(inputs)


def _single(inputs: Any) -> Tensor:
    """A dense tensor; double precision, as NumPy has it, in the single precision of networks."""
    dense = _dense(inputs)
    return dense.float() if dense.dtype == torch.float64 else dense


def _dense(values: Any) -> Tensor:
    if hasattr(values, "toarray"):  # scipy's sparse matrices
        values = values.toarray()
    if isinstance(values, Tensor):
        return values.to_dense() if values.layout != torch.strided else values
    if isinstance(values, Sequence) and values and isinstance(values[0], np.ndarray):
        values = np.stack(values)
    return torch.as_tensor(values)
