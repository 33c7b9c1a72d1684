"""Samples from what users hold: tensors, arrays, or a map-style PyTorch `Dataset`."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from autoweight.config import TaskName
from autoweight.data.dataset import Samples
from autoweight.data.indexed import Indexed
from autoweight.data.inputs import Inputs, each, parts, together
from autoweight.data.labelled import Labelled
from autoweight.data.labels import no_text
from autoweight.data.reading import Reading, is_random, random_numbers_kept, row_at, single, split_row
from autoweight.data.streamed import Streamed, check_map_style
from autoweight.errors import UserError, first_line, require

P = ParamSpec("P")
Set = TypeVar("Set", bound=Labelled)

DataLike = Labelled | tuple[Any, Any] | Dataset[Any]

_LARGEST_IN_MEMORY = 2**32
"""Bytes of a data set that is read into memory without being asked to."""


def as_samples(data: DataLike, *, task: TaskName = "classification", label_key: str = "") -> Samples:
    """Samples from `Samples`, a pair of inputs and labels, or a map-style PyTorch `Dataset` of such pairs or dicts.

    Inputs may be one tensor, or a dict or tuple of tensors. A data set is read once: what is random about it is frozen.
    """
    if isinstance(data, Samples):
        return data
    if isinstance(data, Streamed):
        return data.in_memory()
    data = _unwrapped(data)
    is_pair = _is_pair(data)
    if not is_pair:
        check_map_style(data)
        _warn_of_random(data)
    try:
        inputs, labels = data if is_pair else _columns(data, label_key)  # type: ignore[misc]
        samples = _inputs(inputs), _labels(labels)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            "data are a pair of tensors, inputs and labels, or a Dataset of such pairs, all inputs of one shape and "
            f"labels integers; these are not: {first_line(error)}."
        ) from error
    return Samples.of(*samples, task=task)


def as_data(
    data: DataLike, task: TaskName = "classification", reading: Reading | None = None, stream: bool | None = None
) -> Labelled:
    """Samples in memory where they fit, else a stream.

    Without a word on `stream`, a data set is streamed where it has to be: where a `collate_fn` makes its batches, where
    its samples differ from visit to visit, where it would take more than 4 GB, and where those that cannot be read are
    to be skipped, which a stream names and counts.
    """
    reading = reading or Reading()
    require(stream in (None, True, False), f"stream is True, False or None, but is {stream!r}.")
    if isinstance(data, Labelled):
        return data
    data = _unwrapped(data)
    if _is_pair(data):
        require(
            not stream and reading.collate_fn is None, "tensors lie in memory: there is nothing to stream or collate."
        )
        return as_samples(data, task=task)
    check_map_style(data)
    require(
        stream is not False or reading.collate_fn is None,
        "a collate_fn makes batches as they come: leave out stream=False.",
    )
    require(
        stream is not False or reading.bad_samples != "skip",
        "samples are skipped where they are read as they come: leave out stream=False.",
    )
    needed = reading.collate_fn is not None or (reading.bad_samples == "skip" and task != "tokens")
    if stream or (stream is None and (needed or _is_large(data, reading) or is_random(data))):
        return Streamed.of(data, reading, task=task)
    return as_samples(data, task=task, label_key=reading.label_key)


def convert_part(name: str, convert: Callable[P, Set], *data: P.args, **how: P.kwargs) -> Set:
    """Convert a part of the data; an error names the part."""
    try:
        return convert(*data, **how)
    except UserError as error:
        raise UserError(f"the {name} data cannot be used: {error}") from error


def _unwrapped(data: Any) -> Any:
    """What `aw.Indexed` wraps: a training of the package counts its samples itself."""
    return data.dataset if isinstance(data, Indexed) else data


def _is_pair(data: Any) -> bool:
    return isinstance(data, tuple) or (
        isinstance(data, list) and len(data) == 2 and isinstance(data[0], Tensor | np.ndarray | dict | tuple)
    )


def _is_large(data: Any, reading: Reading) -> bool:
    with random_numbers_kept():
        try:
            one = _inputs(split_row(data[0], reading.label_key)[0])
        except Exception:  # the reading itself will say what is wrong
            return False
    return len(data) * sum(part.numel() * part.element_size() for part in parts(one)) > _LARGEST_IN_MEMORY


def _warn_of_random(data: Any) -> None:
    if is_random(data):
        warnings.warn(
            "the data set differs from visit to visit, but is read once here: its random transforms are frozen. "
            "aw.fit draws them anew at every visit; a search takes augmentation='crop_flip' for images.",
            stacklevel=4,
        )


def _columns(data: Any, label_key: str) -> tuple[Inputs, Any]:
    """Inputs and labels of a map-style data set."""
    pairs = [split_row(row_at(data, position), label_key) for position in range(len(data))]
    inputs = together([_inputs(sample) for sample, _ in pairs], torch.stack)
    labels = [label.item() if isinstance(label, Tensor) and label.numel() == 1 else label for _, label in pairs]
    return inputs, np.stack([np.asarray(label) for label in labels])


def _inputs(inputs: Any) -> Inputs:
    if isinstance(inputs, Mapping | tuple):
        return each(inputs, lambda part: single(_dense(part)))
    return single(_dense(inputs))


def _labels(labels: Any) -> Tensor:
    if not isinstance(labels, Tensor):
        no_text(labels)
    return _dense(labels)


def _dense(values: Any) -> Tensor:
    if hasattr(values, "toarray"):  # scipy's sparse matrices
        values = values.toarray()
    if hasattr(values, "to_numpy"):  # pandas' frames and series, copied since they may be read-only
        values = np.array(values)
    if isinstance(values, Tensor):
        return values.to_dense() if values.layout != torch.strided else values
    if isinstance(values, Sequence) and values and isinstance(values[0], np.ndarray):
        values = np.stack(values)
    return torch.as_tensor(values)
