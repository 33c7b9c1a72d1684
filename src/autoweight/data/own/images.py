"""Folders of class folders of images: decoded into memory, or read as they come."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autoweight.config import DataConfig
from autoweight.data.decoding import decode, pillow, shorter_side
from autoweight.data.image_folder import class_files
from autoweight.data.own.rows import Content, Encoded, Encoder, Parts, Rows
from autoweight.errors import UserError, require

_SIZES_LOOKED_AT = 64
_SMALLEST, _LARGEST = 8, 64
_THREADS = 4
_PARTS = {"train": ("train",), "test": ("test", "val", "valid", "validation"), "trusted": ("trusted",)}


def read_images(path: Path, config: DataConfig) -> Parts:
    """The images of a folder of class folders, or of its parts train/, test/ (or val/) and trusted/."""
    pillow()
    found = {
        part: next((path / name for name in names if _has_folders(path / name)), None) for part, names in _PARTS.items()
    }
    folders = {own.name for own in path.iterdir() if own.is_dir()}
    if found["train"] is None or not folders <= {name for names in _PARTS.values() for name in names}:
        return Parts(_marked(_rows(path), path, config))
    rows = {part: None if folder is None else _rows(folder) for part, folder in found.items()}
    assert rows["train"] is not None
    return Parts(_marked(rows["train"], found["train"], config), rows["test"], rows["trusted"])


def encode_images(content: Content, config: DataConfig) -> Encoder:
    """All images of one size: what was asked for, else the middle of the training images' sizes, 64 pixels at most."""
    size = config.image_size or _usual_size(np.asarray(content).tolist())

    def encode(part: Content) -> Encoded:
        files = ImageFiles(np.asarray(part).tolist(), size)
        return Encoded(files) if config.stream else _decoded(files, config)

    return encode


class ImageFiles:
    """A map-style data set of image files, without labels."""

    def __init__(self, paths: list[Path], size: int) -> None:
        self.paths, self.size = paths, size

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        return decode(self.paths[position], self.size, self.size), 0


def _decoded(files: ImageFiles, config: DataConfig) -> Encoded:
    def one(position: int) -> Tensor | None:
        try:
            return files[position][0]
        except UserError:
            if config.bad_samples == "refuse":
                raise
            return None

    with ThreadPoolExecutor(_THREADS) as threads:
        images = list(threads.map(one, range(len(files))))
    kept = np.array([place for place, image in enumerate(images) if image is not None], dtype=int)
    bad = [files.paths[place] for place, image in enumerate(images) if image is None]
    if bad:
        shown = ", ".join(str(path) for path in bad[:5])
        warnings.warn(f"{len(bad)} images cannot be read and were skipped: {shown}.", stacklevel=5)
    require(len(kept) > 0, "not one of the images can be read.")
    return Encoded(torch.stack([image for image in images if image is not None]), kept if bad else None)


def _rows(folder: Path) -> Rows:
    files = class_files(folder)
    paths = np.array([path for images in files.values() for path in images] + [None], dtype=object)[:-1]
    labels = [name for name, images in files.items() for _ in images]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return Rows.of(paths, labels, names)


def _marked(rows: Rows, folder: Path | None, config: DataConfig) -> Rows:
    """Marks on the images that a list of file names trusts."""
    listed = Path(config.trusted)
    if not config.trusted or listed.suffix.lower() != ".txt" or not listed.is_file():
        return rows
    wanted = {line.strip().removeprefix("./") for line in listed.read_text().splitlines() if line.strip()}
    known = set(rows.names.tolist())
    strangers = sorted(wanted - known)
    require(
        not strangers,
        f"{listed} trusts '{''.join(strangers[:1])}', but {folder} has no such image: write CLASS/FILE on each line.",
    )
    return replace(rows, marked=np.isin(rows.names, list(wanted)))


def _usual_size(paths: list[Path]) -> int:
    step = max(len(paths) // _SIZES_LOOKED_AT, 1)
    sides = [side for path in paths[::step] if (side := shorter_side(path)) is not None]
    return int(np.clip(np.median(sides) if sides else _LARGEST, _SMALLEST, _LARGEST))


def _has_folders(path: Path) -> bool:
    return path.is_dir() and any(own.is_dir() for own in path.iterdir())


def count_images(path: Path) -> int:
    """How many files there are in class folders, images or not."""
    train = path / "train"
    folder: Any = train if _has_folders(train) else path
    return sum(1 for own in folder.rglob("*") if own.is_file())
