"""Images in folders named after their classes, laid out as ImageNet is; decoded by Pillow."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.config import DataConfig
from autoweight.data.dataset import Samples
from autoweight.data.decoding import ENDINGS, decode, pillow
from autoweight.data.images import ImageFiles
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.errors import require

_RESIZE, _CROP = 256, 224
_LARGE = 128


def image_folder(folder: Path | None = None) -> tuple[Samples, Samples]:
    """Your own images, or a part of ImageNet: DIR/train/CLASS/*.jpg to train on and DIR/val/CLASS/*.jpg to test on.

    Each image's shorter side becomes 256 pixels and its middle 224 x 224 are kept. All images are held in memory, at
    0.6 MB each, so that this suits some ten thousand of them and not the whole of ImageNet.
    """
    return _load(_named(folder))


def image_stream(config: DataConfig) -> tuple[Streamed, Streamed]:
    """The same images, read as they come, so that there may be millions of them; of `image_size`, or 224 pixels.

    Large images are first scaled to 8/7 of that, as 256 is to 224, and lose their margin; small ones keep it.
    """
    folder = _named(config.folder)
    train, test = _parts(folder)
    size = config.image_size or _CROP
    resize = size * _RESIZE // _CROP if size >= _LARGE else size
    return _stream(train, folder, size, resize, config), _stream(test, folder, size, resize, config)


@lru_cache(maxsize=1)  # so that every seed of a run does not decode them again
def _load(folder: Path) -> tuple[Samples, Samples]:
    train, test = _parts(folder)
    return _decode_all(train), _decode_all(test)


def _named(folder: Path | str | None) -> Path:
    """The whole path of the folder that the user named."""
    require(
        bool(folder),
        "images are read from a folder: pass --data-dir DIR with DIR/train/CLASS/ and DIR/val/CLASS/.",
    )
    return Path(folder or "").expanduser().resolve()


def _parts(folder: Path) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
    train, test = class_files(folder / "train"), class_files(folder / "val")
    differing = sorted(set(train) ^ set(test))
    require(
        not differing,
        f"{folder} has a class in only one of train/ and val/: {', '.join(differing[:5])}; both need the same classes.",
    )
    check_several(train, folder / "train")
    pillow()
    return train, test


def class_files(part: Path) -> dict[str, list[Path]]:
    """The images of each class, in alphabetical order."""
    require(part.is_dir(), f"{part} is not a folder: images are expected as {part}/CLASS/*.jpg.")
    folders = folders_in(part)
    require(len(folders) > 0, f"{part} holds no class folders: images are expected as {part}/CLASS/*.jpg.")
    files = {path.name: _images(path) for path in folders}
    for name, images in files.items():
        require(len(images) > 0, f"{part / name} holds no image ({', '.join(sorted(ENDINGS))}): add some or remove it.")
    return files


def folders_in(path: Path) -> list[Path]:
    """The folders in a folder, in alphabetical order, without hidden ones and what a Mac adds."""
    return sorted(own for own in path.iterdir() if own.is_dir() and not own.name.startswith((".", "__MACOSX")))


def check_several(files: dict[str, list[Path]], part: Path) -> None:
    """Raise `UserError` where there is one class only."""
    require(len(files) > 1, f"{part} has one class only ({''.join(files)}): there is nothing to tell apart.")


def _images(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS and not p.name.startswith("."))


def _listed(files: dict[str, list[Path]]) -> tuple[list[Path], NDArray[np.int64]]:
    """All images, and the number of each one's class."""
    paths = [path for images in files.values() for path in images]
    return paths, np.repeat(np.arange(len(files)), [len(images) for images in files.values()])


def _stream(files: dict[str, list[Path]], folder: Path, size: int, resize: int, config: DataConfig) -> Streamed:
    paths, labels = _listed(files)
    reading = Reading(num_workers=config.workers, bad_samples=config.bad_samples)
    stream = Streamed.of(ImageFiles(paths, size, labels, resize), reading, labels, len(files))
    names = np.array([path.relative_to(folder).as_posix() for path in paths])
    return replace(stream, names=names, class_names=tuple(files))


def _decode_all(files: dict[str, list[Path]]) -> Samples:
    paths, numbers = _listed(files)
    labels = torch.from_numpy(numbers)
    inputs = torch.empty(len(paths), 3, _CROP, _CROP)
    for position, path in enumerate(paths):
        inputs[position] = decode(path, _RESIZE, _CROP)
    names = np.array([str(path) for path in paths])
    return Samples(inputs, labels, labels, torch.arange(len(labels)), len(files), names, tuple(files))
