"""Folders of tar archives of images, or one archive."""

from pathlib import Path

from autoweight.config import DataConfig
from autoweight.data.decoding import pillow
from autoweight.data.own.images import PARTS, marked
from autoweight.data.own.rows import Parts, Rows
from autoweight.data.shards import read_archives, shards_in
from autoweight.data.tars import index_of


def read_shards(path: Path, config: DataConfig) -> Parts:
    """The images of the archives in a folder, or of its parts train/, test/ (or val/) and trusted/."""
    pillow()
    found = {
        part: next((shards for name in names if (shards := shards_in(path / name))), None)
        for part, names in PARTS.items()
    }
    if shards_in(path) or found["train"] is None:
        return Parts(marked(_rows(shards_in(path), config), path, config))
    rows = {part: None if shards is None else _rows(shards, config) for part, shards in found.items()}
    assert rows["train"] is not None
    return Parts(marked(rows["train"], path / "train", config), rows["test"], rows["trusted"])


def holds_shards(path: Path) -> bool:
    """Whether a path is an archive, or a folder of archives, to train on."""
    return bool(shards_in(path) or shards_in(path / "train"))


def count_archived(path: Path) -> int:
    """How many images there are to train on."""
    return sum(len(index_of(shard).offsets) for shard in shards_in(path) or shards_in(path / "train"))


def _rows(shards: list[Path], config: DataConfig) -> Rows:
    found = read_archives(shards, config.bad_samples)
    return Rows.of(found.places, found.labels, found.names)
