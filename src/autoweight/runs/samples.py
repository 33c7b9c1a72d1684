"""A training's samples, one by one, in a small file: compressed columns of a few bytes a sample."""

import io
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from autoweight.audit.find import mean_visits
from autoweight.config import Precision
from autoweight.data import Labelled
from autoweight.methods.method import Method
from autoweight.runs.pictures import pictures_of
from autoweight.storage.atomic import write_bytes
from autoweight.strategy.remembering import Remembering
from autoweight.training.evaluate import predictions
from autoweight.training.split import weigher_of

Columns = dict[str, NDArray[Any]]

_PACKED = {"wrong": "label", "test_right": "test_count", "best_right": "test_count"}
"""Columns of bits, eight to a byte, and what tells how many there are: the length of another column, or a number."""
_AUDITED = ("index", "label", "predicted", "margin")
"""Columns of one length that an audit reads, where the training remembered its samples."""


def samples_file(folder: Path, method: str, seed: int) -> Path:
    """Where a training's columns are."""
    return folder / "samples" / f"{method}-{seed}.npz"


def sample_columns(method: Method, samples: Labelled, precision: Precision = "float32") -> Columns:
    """What is known of every training sample at the end of a training.

    `index` is its position in the data set, `weight` and `loss` are those of its last visit, NaN where there was none.
    `margin` and `predicted` are what the weigher remembers, or else, with `remembered` 0, what the network now says.
    Of tokens there is a row each, with its place in `token`, unless it does not count.
    """
    columns: Columns = {"index": samples.source.cpu().numpy().astype(np.uint32)}
    if method.record is not None:
        columns |= {"weight": _half(method.record.weight), "loss": _half(method.record.loss)}
    weigher = remembering_of(method)
    if samples.has_classes and samples.labels.dim() == 1:
        columns |= _class_columns(method, weigher, samples, precision)
    if not bool(samples.clean.all()):
        columns["wrong"] = (~samples.clean).cpu().numpy()
    if samples.names is not None:
        columns["names"] = samples.names
    if samples.has_classes and samples.labels.dim() == 2:
        columns = _token_columns(columns, weigher, samples)
    if samples.class_names:
        columns["class_names"] = np.array(samples.class_names)
    return columns


def _class_columns(method: Method, weigher: Remembering | None, samples: Labelled, precision: Precision) -> Columns:
    """Labels, and what was made of them."""
    kind = np.min_scalar_type(max(samples.num_classes - 1, 0))
    if weigher is not None:
        predicted, margins = _remembered(weigher, samples.labels)
    else:
        predicted, margins = predictions(method.networks[0], samples, precision)
    columns: Columns = {
        "label": samples.labels.cpu().numpy().astype(kind),
        "remembered": np.array(weigher is not None),
        "num_classes": np.array(samples.num_classes),
    }
    if len(predicted) == len(samples):  # a stream may have skipped some
        columns["predicted"] = predicted.cpu().numpy().astype(kind)
        columns["margin"] = margins.detach().float().cpu().numpy()  # whole: who is worst hangs on little
    if weigher is not None:
        columns["visits"] = np.array(mean_visits(weigher, len(samples.labels)))
        columns |= pictures_of(samples, columns["margin"])
    return columns


def _token_columns(columns: Columns, weigher: Remembering | None, samples: Labelled) -> Columns:
    """A row for each token that counts; names are the samples' and stay out, since their positions say as much."""
    labels = samples.labels.flatten()
    counted, length = (labels >= 0).cpu().numpy(), samples.labels.shape[1]
    own: Columns = {name: columns[name][counted] for name in ("weight", "loss") if name in columns}
    own["index"] = columns["index"].repeat(length)[counted]
    own["token"] = np.tile(np.arange(length, dtype=np.uint32), len(samples))[counted]
    own |= {"label": labels.cpu().numpy()[counted], "num_classes": np.array(samples.num_classes)}
    if not bool(samples.clean.all()):
        own["wrong"] = (labels != samples.true_labels.flatten()).cpu().numpy()[counted]
    if weigher is not None:
        predicted, margins = _remembered(weigher, labels)
        own["visits"] = np.array(mean_visits(weigher, len(labels)))
        own |= {"predicted": predicted.cpu().numpy()[counted], "margin": margins.cpu().numpy()[counted]}
    return own | {"remembered": np.array(weigher is not None)}


def _remembered(weigher: Remembering, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The class that the network has come to believe in, and the margin; the label, and NaN, of what never came up."""
    margins, predicted = weigher.judgement()
    return predicted.where(predicted >= 0, labels), margins


def remembering_of(method: Method) -> Remembering | None:
    """A method's weigher, where it has a memory that saw margins."""
    weigher = weigher_of(method)  # every rank keeps the whole memory
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


def read_columns(path: Path, only: Collection[str] = ()) -> Columns | None:
    """What `write_columns` wrote, or `only` these columns of it; None where there is no such file or it is damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files if not only or name in only}
        for name, teller in _PACKED.items():
            if name in columns:
                told = columns[teller]
                count = int(told) if told.ndim == 0 else len(told)
                columns[name] = np.unpackbits(columns[name], count=count).astype(bool)
        if not only and columns.get("remembered", False) and len({columns[name].shape for name in _AUDITED}) > 1:
            return None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error):
        return None
    return columns


def _half(values: Tensor) -> NDArray[np.float16]:
    return values.detach().float().cpu().numpy().clip(-6e4, 6e4).astype(np.float16)
