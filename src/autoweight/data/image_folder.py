"""Images in folders named after their classes, laid out as ImageNet is; decoded by Pillow."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from autoweight.data.dataset import Samples
from autoweight.data.decoding import ENDINGS, decode, pillow
from autoweight.errors import UserError, require

_RESIZE, _CROP = 256, 224


def image_folder(folder: Path | None = None) -> tuple[Samples, Samples]:
    """Your own images, or a part of ImageNet: DIR/train/CLASS/*.jpg to train on and DIR/val/CLASS/*.jpg to test on.

    Each image's shorter side becomes 256 pixels and its middle 224 x 224 are kept. All images are held in memory, at
    0.6 MB each, so that this suits some ten thousand of them and not the whole of ImageNet.
    """
    if folder is None:
        raise UserError("images are read from a folder: pass --data-dir DIR with DIR/train/CLASS/ and DIR/val/CLASS/.")
    return _load(folder.expanduser().resolve())


@lru_cache(maxsize=1)  # so that every seed of a run does not decode them again
def _load(folder: Path) -> tuple[Samples, Samples]:
    train, test = class_files(folder / "train"), class_files(folder / "val")
    differing = sorted(set(train) ^ set(test))
    require(
        not differing,
        f"{folder} has a class in only one of train/ and val/: {', '.join(differing[:5])}; both need the same classes.",
    )
    check_several(train, folder / "train")
    pillow()
    return _decode_all(train), _decode_all(test)


def class_files(part: Path) -> dict[str, list[Path]]:
    """The images of each class, in alphabetical order."""
    require(part.is_dir(), f"{part} is not a folder: images are expected as {part}/CLASS/*.jpg.")
    folders = sorted(path for path in part.iterdir() if path.is_dir() and not path.name.startswith("."))
    require(len(folders) > 0, f"{part} holds no class folders: images are expected as {part}/CLASS/*.jpg.")
    files = {path.name: _images(path) for path in folders}
    for name, images in files.items():
        require(len(images) > 0, f"{part / name} holds no image ({', '.join(sorted(ENDINGS))}): add some or remove it.")
    return files


def check_several(files: dict[str, list[Path]], part: Path) -> None:
    """Raise `UserError` where there is one class only."""
    require(len(files) > 1, f"{part} has one class only ({''.join(files)}): there is nothing to tell apart.")


def _images(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS and not p.name.startswith("."))


def _decode_all(files: dict[str, list[Path]]) -> Samples:
    paths = [path for images in files.values() for path in images]
    labels = torch.tensor([label for label, images in enumerate(files.values()) for _ in images])
    inputs = torch.empty(len(paths), 3, _CROP, _CROP)
    for position, path in enumerate(paths):
        inputs[position] = decode(path, _RESIZE, _CROP)
    names = np.array([str(path) for path in paths])
    return Samples(inputs, labels, labels, torch.arange(len(labels)), len(files), names, tuple(files))
