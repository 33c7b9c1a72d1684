"""What kind of data a path holds, told without reading them."""

from pathlib import Path
from typing import Literal

from autoweight.data.own.archives import holds_shards
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
