"""A training's samples, one by one, in a small file: compressed columns of a few bytes a sample."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import Precision
from autoweight.data import Labelled
from autoweight.methods.method import Method, Weighted
from autoweight.runs.pictures import pictures_of
from autoweight.storage.atomic import write_bytes
from autoweight.strategy.remembering import Remembering
from autoweight.training.evaluate import predictions

Columns = dict[str, NDArray[Any]]

_PACKED = {"wrong": "label", "test_right": "test_count", "best_right": "test_count"}
"""Columns of bits, eight to a byte, and what tells how many there are: the length of another column, or a number."""


def samples_file(folder: Path, method: str, seed: int) -> Path:
    """Where a training's columns are."""
    return folder / "samples" / f"{method}-{seed}.npz"


def sample_columns(method: Method, samples: Labelled, precision: Precision = "float32") -> Columns:
    """What is known of every training sample at the end of a training.

    `index` is its position in the data set, `weight` and `loss` are those of its last visit, NaN where there was none.
    `margin` and `predicted` are what the weigher remembers, or else, with `remembered` 0, what the network now says.
    """
    columns: Columns = {"index": samples.source.cpu().numpy().astype(np.uint32)}
    if method.record is not None:
        columns |= {"weight": _half(method.record.weight), "loss": _half(method.record.loss)}
    if samples.has_classes and samples.labels.dim() == 1:
        kind = np.min_scalar_type(max(samples.num_classes - 1, 0))
        weigher = remembering_of(method)
        if weigher is not None:
            margins, predicted = weigher.judgement()
            predicted = predicted.where(predicted >= 0, samples.labels)
        else:
            predicted, margins = predictions(method.networks[0], samples, precision)
        columns |= {
            "label": samples.labels.cpu().numpy().astype(kind),
            "remembered": np.array(weigher is not None),
            "num_classes": np.array(samples.num_classes),
        }
        if len(predicted) == len(samples):  # a stream may have skipped some
            columns["predicted"] = predicted.cpu().numpy().astype(kind)
            columns["margin"] = margins.detach().float().cpu().numpy()  # whole: who is worst hangs on little
        if weigher is not None:
            columns |= pictures_of(samples, columns["margin"])
    if not bool(samples.clean.all()):
        columns["wrong"] = (~samples.clean).cpu().numpy()
    if samples.names is not None:
        columns["names"] = samples.names
    if samples.class_names:
        columns["class_names"] = np.array(samples.class_names)
    return columns


def remembering_of(method: Method) -> Remembering | None:
    """A method's weigher, where it has a memory that saw margins."""
    weigher = method.weigher if isinstance(method, Weighted) else None
    if not isinstance(weigher, Remembering) or weigher.memory is None:
        return None
    return weigher if bool((weigher.memory.columns["margin"] != 0).any()) else None


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns to a compressed file, in one move."""
    packed = {
        name: np.packbits(column) if name in _PACKED and column.dtype == np.bool_ else column
        for name, column in columns.items()
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **packed)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, buffer.getvalue())


def read_columns(path: Path) -> Columns | None:
    """What `write_columns` wrote, or None where there is no such file or it is damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        for name, teller in _PACKED.items():
            if name in columns:
                told = columns[teller]
                count = int(told) if told.ndim == 0 else len(told)
                columns[name] = np.unpackbits(columns[name], count=count).astype(bool)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return columns


def _half(values: Tensor) -> NDArray[np.float16]:
    return values.detach().float().cpu().numpy().clip(-6e4, 6e4).astype(np.float16)
