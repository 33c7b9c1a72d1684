"""CIFAR-10 and CIFAR-100: 60,000 colour images of 32 x 32 pixels, from the official binary or Python files."""

import hashlib
import io
import pickle
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch

from autoweight.data.dataset import Samples
from autoweight.data.inputs import parts
from autoweight.errors import UserError, require

PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"

MD5 = {
    "cifar-10-batches-bin/data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "cifar-10-batches-bin/data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "cifar-10-batches-bin/data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "cifar-10-batches-bin/data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "cifar-10-batches-bin/data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "cifar-10-batches-bin/test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    "cifar-10-batches-py/data_batch_1": "c99cafc152244af753f735de768cd75f",
    "cifar-10-batches-py/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "cifar-10-batches-py/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "cifar-10-batches-py/data_batch_4": "634d18415352ddfa80567beed471001a",
    "cifar-10-batches-py/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
    "cifar-100-binary/train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
    "cifar-100-binary/test.bin": "4499cfba6c016c1be1438163640a0898",
    "cifar-100-python/train": "16019d7e3df5f24257cddd939b257f8d",
    "cifar-100-python/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
}
"""The published checksums, by official name; those with `test` in their file's name are the test part."""


class _Format(NamedTuple):
    title: str  # also, without the dash, the name of torchvision's class
    num_classes: int
    binary: str
    python: str
    label_bytes: int  # at the start of a binary record; the last one is the label, or the fine label
    label_key: bytes


_CIFAR10 = _Format("CIFAR-10", 10, "cifar-10-batches-bin", "cifar-10-batches-py", 1, b"labels")
_CIFAR100 = _Format("CIFAR-100", 100, "cifar-100-binary", "cifar-100-python", 2, b"fine_labels")


def cifar10(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-10: 50,000 images to train on and 10,000 to test on, in 10 classes, standardised, `[n, 3, 32, 32]`."""
    return _load(_CIFAR10, _resolve(_CIFAR10, folder))


def cifar100(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-100: 50,000 images to train on and 10,000 to test on, in 100 classes, standardised, `[n, 3, 32, 32]`."""
    return _load(_CIFAR100, _resolve(_CIFAR100, folder))


class StandIn:
    """Takes the place of numpy's names in a pickle, so that reading one runs no code but this."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> np.ndarray[Any, Any]:
        """The array that the pickle describes; any exception means that it describes none."""
        _, shape, dtype, fortran, raw = self.state
        order, name = (x.decode() if isinstance(x, bytes) else x for x in (dtype.state[1], dtype.args[0]))
        return np.frombuffer(raw, np.dtype(order + name)).reshape(shape, order="F" if fortran else "C")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[StandIn]:
        if (module, name) in {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}:
            return StandIn
        raise pickle.UnpicklingError(f"{module}.{name} does not belong here")


def _resolve(form: _Format, folder: Path | None) -> Path:
    if folder is None:
        raise UserError(
            f"{form.title} is read from files: pass --data-dir DIR, a folder with {form.binary}/ or {form.python}/ "
            f"from {PAGE}; with torchvision installed they are fetched into DIR if it has neither."
        )
    return folder.expanduser().resolve()


@lru_cache(maxsize=1)  # so that every seed of a run does not read it again
def _load(form: _Format, folder: Path) -> tuple[Samples, Samples]:
    paths = _find(form, folder) or _fetch(form, folder)
    train, test = _read_part(form, paths, test=False), _read_part(form, paths, test=True)
    std, mean = torch.std_mean(parts(train.inputs)[0], (0, 2, 3), keepdim=True)
    for images in (*parts(train.inputs), *parts(test.inputs)):
        images.sub_(mean).div_(std)  # in place: 0.6 GB
    return train, test


def _names(version: str) -> list[str]:
    return [name for name in MD5 if name.startswith(f"{version}/")]


def _find(form: _Format, folder: Path) -> dict[str, Path]:
    """Where each file of the first complete version is, by official name; nothing where there is no file at all."""
    lacking: list[str] = []
    for version in (form.binary, form.python):
        for parent in (folder / version, folder):
            paths = {name: parent / Path(name).name for name in _names(version)}
            missing = [str(path) for path in paths.values() if not path.is_file()]
            if not missing:
                return paths
            lacking = lacking or (missing if len(missing) < len(paths) else [])
    require(not lacking, f"{form.title} is incomplete: {', '.join(lacking)} not found; unpack it again from {PAGE}.")
    return {}


def _fetch(form: _Format, folder: Path) -> dict[str, Path]:
    """Let torchvision fetch the Python version into a scratch folder, and move it in place only when complete."""
    try:
        sets = import_module("torchvision.datasets")
    except (ImportError, RuntimeError) as error:  # RuntimeError: a torchvision of another torch
        missing = isinstance(error, ModuleNotFoundError)
        why = "which is missing" if missing else f"whose build does not fit torch {torch.__version__}"
        wanted = " or ".join(", ".join(_names(version)) for version in (form.binary, form.python))
        raise UserError(
            f"{form.title} is not in {folder}, where one version's files were expected ({wanted}): unpack them there "
            f"from {PAGE}, or install torchvision, {why}, to have them fetched."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
            getattr(sets, form.title.replace("-", ""))(root=scratch, download=True)
            (Path(scratch) / form.python).rename(folder / form.python)
    except Exception as error:  # whatever network, server and disk can raise
        raise UserError(f"{form.title} could not be fetched ({error}): unpack it in {folder} from {PAGE}.") from error
    return _find(form, folder)


def _read_part(form: _Format, paths: dict[str, Path], *, test: bool) -> Samples:
    """The training or test files, with pixels from 0 to 255."""
    files = [_read(form, name, path) for name, path in paths.items() if ("test" in path.name) == test]
    images, labels = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*files, strict=True))
    return replace(Samples.of(images, labels, form.num_classes), inputs=images.float().view(-1, 3, 32, 32))


def _read(form: _Format, name: str, path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The images `[n, 3072]` and the labels of a file, after its checksum."""
    data = path.read_bytes()
    intact = hashlib.md5(data, usedforsecurity=False).hexdigest() == MD5[name]
    require(intact, f"{path} is cut short or damaged (not the published MD5): fetch it again from {PAGE}.")
    try:
        if name.startswith(f"{form.binary}/"):
            records = np.frombuffer(data, np.uint8).reshape(-1, form.label_bytes + 3072)
            images, labels = records[:, form.label_bytes :], records[:, form.label_bytes - 1].astype(np.int64)
        else:
            content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
            images, labels = content[b"data"].array(), np.array(content[form.label_key], np.int64)
        good = images.dtype == np.uint8 and images.shape == (len(labels), 3072)
        require(good, f"{len(labels)} labels, but {images.dtype} images of shape {images.shape}")
        require(labels.min() >= 0 and labels.max() < form.num_classes, f"labels {labels.min()} to {labels.max()}")
    except Exception as error:  # a pickle that is not what it should be can raise anything
        raise UserError(f"{path} is not {form.title} as published ({error}): fetch it again from {PAGE}.") from error
    return images, labels
