"""Folders of tar archives of images, or one archive."""

from functools import partial
from pathlib import Path

from autoweight.config import DataConfig
from autoweight.data.decoding import pillow
from autoweight.data.own.images import marked, part_folders, read_parts
from autoweight.data.own.rows import Parts, Rows
from autoweight.data.shards import read_archives, shards_in


def read_shards(path: Path, config: DataConfig) -> Parts:
    """The images of the archives in a folder, or of its parts train/, test/ (or val/) and trusted/."""
    pillow()
    folders = part_folders(path, shards_in)
    if shards_in(path) or folders["train"] is None:
        return Parts(marked(_rows(path, config), path, config))
    return read_parts(folders, partial(_rows, config=config), config)


def holds_shards(path: Path) -> bool:
    """Whether a path is an archive, or a folder of archives, to train on."""
    return bool(shards_in(path) or shards_in(path / "train"))


def _rows(path: Path, config: DataConfig) -> Rows:
    found = read_archives(shards_in(path), config.bad_samples)
    return Rows.of(found.places, found.labels, found.names)
