"""Folders of class folders of images: decoded into memory, or read as they come."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from autoweight.config import DataConfig
from autoweight.data.decoding import UnreadableImageError, pillow
from autoweight.data.image_folder import class_files, folders_in
from autoweight.data.images import Images, image_set
from autoweight.data.own.rows import Content, Encoded, Encoder, Parts, Rows, read_utf8
from autoweight.data.reading import SKIP
from autoweight.errors import UserError, require

_SIZES_LOOKED_AT = 64
_SMALLEST, _LARGEST = 8, 64
_THREADS = 4
PARTS = {"train": ("train",), "test": ("test", "val", "valid", "validation"), "trusted": ("trusted",)}
"""What folders with the parts of a data set are called."""
_PART_NAMES = {name for names in PARTS.values() for name in names}


def read_images(path: Path, config: DataConfig) -> Parts:
    """The images of a folder of class folders, or of its parts train/, test/ (or val/) and trusted/."""
    pillow()
    found = part_folders(path, _has_folders)
    folders = {own.name for own in folders_in(path)}
    if found["train"] is None or not folders <= _PART_NAMES:
        parts = sorted(name for name in folders if name.lower() in _PART_NAMES and _has_folders(path / name))
        require(
            not parts,
            f"{path} holds {''.join(parts[:1])}/ with folders in it, which looks like a part and no class: leave only "
            "train/, test/ (or val/) and trusted/ there, in small letters, or name the folder of a part.",
        )
        return Parts(marked(_rows(path), path, config))
    return read_parts(found, _rows, config)


def part_folders(path: Path, holds_data: Callable[[Path], object]) -> dict[str, Path | None]:
    """The folder of each part: the first of its names under which there are data."""
    return {
        part: next((path / name for name in names if holds_data(path / name)), None) for part, names in PARTS.items()
    }


def read_parts(folders: dict[str, Path | None], read: Callable[[Path], Rows], config: DataConfig) -> Parts:
    """The rows of each part's folder, those to train on marked where a list trusts them."""
    rows = {part: None if folder is None else read(folder) for part, folder in folders.items()}
    assert rows["train"] is not None
    return Parts(marked(rows["train"], folders["train"], config), rows["test"], rows["trusted"])


def encode_images(content: Content, config: DataConfig) -> Encoder:
    """All images of one size: what was asked for, else the middle of the training images' sizes, 64 pixels at most."""
    size = config.image_size or _usual_size(image_set(content, _LARGEST))

    def encode(part: Content) -> Encoded:
        images = image_set(part, size)
        return Encoded(images) if config.stream else _decoded(images, config)

    return encode


def _decoded(images: Images, config: DataConfig) -> Encoded:
    skipped: dict[int, str] = {}

    def one(position: int) -> Tensor | None:
        try:
            return images[position][0]
        except UnreadableImageError as error:
            if config.bad_samples == "refuse":
                raise UserError(f"{error.clause}: replace or remove it, or {SKIP}.") from error
            skipped[position] = error.name
            return None

    with ThreadPoolExecutor(_THREADS) as threads:
        decoded = list(threads.map(one, range(len(images))))
    kept = np.array([place for place, image in enumerate(decoded) if image is not None], dtype=int)
    if skipped:
        shown = ", ".join(name for _, name in sorted(skipped.items())[:5])
        warnings.warn(f"{len(skipped)} images cannot be read and were skipped: {shown}.", stacklevel=5)
    require(len(kept) > 0, "not one of the images can be read.")
    return Encoded(torch.stack([image for image in decoded if image is not None]), kept if skipped else None)


def _rows(folder: Path) -> Rows:
    files = class_files(folder)
    paths = np.array([path for images in files.values() for path in images], dtype=object)
    labels = [name for name, images in files.items() for _ in images]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return Rows.of(paths, labels, names)


def marked(rows: Rows, folder: Path | None, config: DataConfig) -> Rows:
    """Marks on the images that a list of file names trusts."""
    listed = Path(config.trusted)
    if not config.trusted or listed.suffix.lower() != ".txt" or not listed.is_file():
        return rows
    wanted = {line.strip().removeprefix("./") for line in read_utf8(listed).splitlines() if line.strip()}
    known = set(rows.names.tolist())
    strangers = sorted(wanted - known)
    require(
        not strangers,
        f"{listed} trusts '{''.join(strangers[:1])}', but {folder} has no such image: write CLASS/FILE on each line.",
    )
    return replace(rows, marked=np.isin(rows.names, list(wanted)))


def _usual_size(images: Images) -> int:
    step = max(len(images) // _SIZES_LOOKED_AT, 1)
    looked_at = map(images.shorter_side, range(0, len(images), step))
    sides = [side for side in looked_at if side is not None]
    return int(np.clip(np.median(sides) if sides else _LARGEST, _SMALLEST, _LARGEST))


def _has_folders(path: Path) -> bool:
    return path.is_dir() and bool(folders_in(path))
