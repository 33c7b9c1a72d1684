"""NumPy's .npz: `x` and `y`, or `train_x`, `train_y`, `test_x`, `test_y`, `trusted_x`, `trusted_y`.

Vectors are standardised, and missing values (NaN) filled, as columns of a table are. Images may be grey `[n, h, w]`, or
have their channels first or last. Ids of tokens stay as they are.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.config import DataConfig, TaskName
from autoweight.data.own.columns import encode_columns
from autoweight.data.own.rows import Content, Encoded, Encoder, Parts, Rows
from autoweight.data.own.tables import label_words, marks_of
from autoweight.errors import UserError, require

_CHANNELS = (1, 3, 4)


def read_arrays(path: Path, config: DataConfig) -> Parts:
    """The parts that a file holds."""
    arrays = _load(path)
    train = _part(path, arrays, ("train_", ""))
    if train is None:
        raise UserError(f"{path} needs arrays x and y, or train_x and train_y; it has {', '.join(arrays) or 'none'}.")
    marks = arrays.get(config.trusted or "trusted")
    if marks is not None:
        require(
            marks.shape == (len(train),),
            f"'{config.trusted or 'trusted'}' of {path} marks samples, so it needs one value for each of "
            f"{len(train)}, but its shape is {marks.shape}.",
        )
        train = replace(train, marked=marks_of(marks))
    return Parts(train, _part(path, arrays, ("test_",)), _part(path, arrays, ("trusted_",)))


def encode_arrays(content: Content, task: TaskName) -> Encoder:
    """Learn from the training samples how arrays are scaled."""
    if task == "tokens":
        return lambda part: Encoded(torch.from_numpy(np.asarray(part).astype(np.int64)))
    train = _channels_first(np.asarray(content))
    shape = train.shape[1:]
    if train.ndim == 2:
        encode = encode_columns(_columns(train), np.arange(len(train)).astype(str))
        return lambda part: encode(_columns(_alike(part, shape)))
    _check_finite(train)
    axes = (0, *range(2, train.ndim))
    mean, deviation = train.mean(axes, keepdims=True), train.std(axes, keepdims=True)

    def scale(part: Content) -> Encoded:
        images = _alike(part, shape)
        _check_finite(images)
        scaled = (images - mean) / np.maximum(deviation, 1e-6)
        return Encoded(torch.from_numpy(scaled.astype(np.float32)))

    return scale


def _alike(part: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    """The inputs of a part, each of the shape that a training input has."""
    found = _channels_first(np.asarray(part))
    require(
        found.shape[1:] == shape,
        f"samples of x have the shape {shape} in training, but {found.shape[1:]} in another part: make it one.",
    )
    return found


def _check_finite(images: NDArray[Any]) -> None:
    """Images have no column that tells what is missing."""
    require(bool(np.isfinite(images).all()), "an array of images has a NaN or infinite value: clean or drop it.")


def _columns(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {str(number): column for number, column in enumerate(rows.T)}


def _channels_first(images: NDArray[Any]) -> NDArray[Any]:
    images = images.astype(np.float64)
    if images.ndim == 3:
        return images[:, None]
    last = images.ndim == 4 and images.shape[-1] in _CHANNELS and images.shape[1] not in _CHANNELS
    return np.moveaxis(images, -1, 1) if last else images


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise UserError(
            f"{path} cannot be read as .npz: save plain arrays, without objects, by numpy.savez."
        ) from error


def _part(path: Path, arrays: dict[str, NDArray[Any]], prefixes: tuple[str, ...]) -> Rows | None:
    """The samples in arrays such as train_x and train_y, or x_train and y_train; None where there are none."""
    by_name = {name.lower(): array for name, array in arrays.items()}
    for prefix in prefixes:
        after = f"_{prefix}".rstrip("_")
        x, y = (by_name.get(f"{prefix}{name}", by_name.get(f"{name}{after}")) for name in "xy")
        if x is None or y is None:
            continue
        require(x.ndim > 1, f"x of {path} needs a dimension of samples and at least one of values.")
        real = np.issubdtype(x.dtype, np.integer) or np.issubdtype(x.dtype, np.floating) or x.dtype == bool
        require(real, f"x of {path} holds {x.dtype}, not real numbers.")
        require(len(x) > 0, f"{path} is empty.")
        fits = y.ndim in (1, 2) and len(y) == len(x) and y.size > 0
        require(fits, f"{path} has {len(x)} inputs, but labels of shape {y.shape}.")
        plain = y.ndim == 1 or np.issubdtype(y.dtype, np.number) or y.dtype == bool
        require(plain, f"y of {path} has several labels a sample, which need to be numbers, not {y.dtype}.")
        return Rows.of(x, label_words(y) if y.ndim == 1 else y, [f"{prefix}{number}" for number in range(len(x))])
    return None
