"""Files that are never half-written."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from autoweight.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file's content in one move, so that a kill at any moment leaves the old or the new."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # not a mistake, and the command line says how to go on
        raise UserError(f"cannot write {path}: {error.strerror}.") from error


def make_folder(folder: Path) -> None:
    """Make a folder for output, with those around it, where it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot use the output folder {folder}: {error.strerror}.") from error
