"""What kind of data a path holds, and about how many samples, told without reading them."""

from importlib import import_module
from pathlib import Path
from typing import Literal

import numpy as np

from autoweight.data.own.archives import count_archived, holds_shards
from autoweight.data.own.images import count_images
from autoweight.data.own.tables import TABLES
from autoweight.errors import UserError, require

KindName = Literal["images", "shards", "table", "texts", "arrays"]
ENDINGS = (*TABLES, ".npz", ".txt", ".tar")


def kind_of(path: Path, text: str) -> KindName:
    """The kind of data at a path; a table with a `text` column holds texts."""
    require(
        path.exists(), f"there is nothing at {path}: give a folder of class folders or a file ({', '.join(ENDINGS)})."
    )
    ending = path.suffix.lower()
    if path.is_dir():
        require(not text, f"--text names a column of a table, but {path} is a folder.")
        return "shards" if holds_shards(path) else "images"
    if ending in TABLES:
        return "texts" if text else "table"
    require(not text, f"--text names a column of a table, but {path.name} is none.")
    if ending == ".tar":
        return "shards"
    if ending == ".npz":
        return "arrays"
    if ending == ".txt":
        return "texts"
    raise UserError(f"{path.name} is no data that can be read: give a folder of class folders or {', '.join(ENDINGS)}.")


def count_of(path: Path) -> int:
    """About how many samples there are, from a quick look; 0 where it cannot be told."""
    try:
        if holds_shards(path):
            return count_archived(path)
        if path.is_dir():
            return count_images(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            return int(import_module("pyarrow.parquet").ParquetFile(path).metadata.num_rows)
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return max(len(file[name]) for name in file.files if name.lower().endswith("y"))
        with path.open("rb") as lines:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(2**20), b""))
    except Exception:  # whoever reads it in earnest says what is wrong
        return 0
