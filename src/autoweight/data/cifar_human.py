"""CIFAR-N: the labels that people gave to CIFAR's training images (Wei et al., 2022); 9 % to 40 % are wrong."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autoweight.data.cifar import StandIn, cifar10, cifar100
from autoweight.data.dataset import Samples
from autoweight.errors import UserError, require

PAGE = "https://github.com/UCSC-REAL/cifar-10-100n"

# The files hold numpy arrays. numpy has moved the function that rebuilds them, so files hold either name.
_NUMPY = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype")


def cifar10n_worse(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-10 with the wrong one of three people's labels, where there is one: 40 % wrong."""
    return _relabelled(cifar10(folder), folder, "CIFAR-10_human.pt", "worse_label")


def cifar10n_aggre(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-10 with the label that most of three people gave: 9 % wrong."""
    return _relabelled(cifar10(folder), folder, "CIFAR-10_human.pt", "aggre_label")


def cifar10n_random1(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-10 with the label of the first of three people: 17 % wrong."""
    return _relabelled(cifar10(folder), folder, "CIFAR-10_human.pt", "random_label1")


def cifar100n(folder: Path | None = None) -> tuple[Samples, Samples]:
    """CIFAR-100 with the label that one person gave: 40 % wrong."""
    return _relabelled(cifar100(folder), folder, "CIFAR-100_human.pt", "noisy_label")


def _relabelled(parts: tuple[Samples, Samples], folder: Path | None, file: str, key: str) -> tuple[Samples, Samples]:
    """The pool with the human labels under `key`, its own ones being the true ones; the test part as it is."""
    pool, test = parts
    path = _find(folder or Path(), file)
    content = _read(path)
    clean, human = (_labels(content, name, pool, path) for name in ("clean_label", key))
    differ = int((clean != pool.labels).sum())
    require(
        differ == 0,
        f"{path} belongs to other images: {differ} of its {len(clean)} clean labels are not those of the set; "
        f"fetch it again from {PAGE}.",
    )
    return pool.relabel(human), test


def _find(folder: Path, file: str) -> Path:
    """The file in the folder, or beside it where the folder is the one with the official CIFAR files."""
    here = folder.expanduser().resolve()
    for parent in (here, here.parent):
        if (parent / file).is_file():
            return parent / file
    raise UserError(f"the human labels are missing: {here / file} not found; download {file} from {PAGE}.")


def _read(path: Path) -> dict[str, Any]:
    try:
        with torch.serialization.safe_globals([(StandIn, name) for name in _NUMPY]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file that is not what it should be can raise anything
        raise UserError(
            f"{path} is damaged, or holds more than labels, so it is not read: fetch it again from {PAGE}."
        ) from error
    require(isinstance(content, dict), f"{path} does not hold labels by name: fetch it again from {PAGE}.")
    return content


def _labels(content: dict[str, Any], key: str, pool: Samples, path: Path) -> Tensor:
    """The labels under a key, be they an array, a tensor or a list: one for every image of the pool."""
    require(key in content, f"{path} has no '{key}', only {', '.join(map(str, content))}: fetch it from {PAGE}.")
    value = content[key]
    try:
        labels = torch.as_tensor(value.array().tolist() if isinstance(value, StandIn) else value)
    except Exception as error:
        raise UserError(f"'{key}' of {path} is not an array of labels: fetch it again from {PAGE}.") from error
    whole = not labels.is_floating_point() and not labels.is_complex() and labels.dtype != torch.bool
    require(
        whole and labels.shape == pool.labels.shape,
        f"'{key}' of {path} should be {len(pool)} whole numbers, but is {labels.dtype} of shape {tuple(labels.shape)}.",
    )
    lowest, highest = int(labels.min()), int(labels.max())
    require(
        lowest >= 0 and highest < pool.num_classes,
        f"'{key}' of {path} goes from {lowest} to {highest}, but the set has labels 0 to {pool.num_classes - 1}.",
    )
    return labels.long()
