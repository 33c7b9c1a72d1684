"""Checkpoints that survive a kill at any moment: checked by a digest, replaced in one move, the last two kept."""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import torch

from autoweight.errors import RunError, UserError
from autoweight.storage.atomic import write_bytes


class CheckpointFile:
    """One checkpoint of tensors, numbers and text under a name, with the one before it as a reserve."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reserve = path.with_name(path.name + ".previous")

    def save(self, state: dict[str, Any]) -> None:
        """Write a new checkpoint; the newest becomes the reserve."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}.") from error
        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getvalue()
        if self.path.exists():
            self.path.replace(self.reserve)
        write_bytes(self.path, hashlib.sha256(content).digest() + content)

    def load(self) -> dict[str, Any] | None:
        """The newest whole checkpoint, or None where none was ever written."""
        damaged = False
        for path in (self.path, self.reserve):
            if not path.exists():
                continue
            state = _read(path)
            if state is not None:
                return state
            # Out of the way, or the next save would put it in the place of the whole one; kept, since it may be a file
            # of somebody's that never was a checkpoint.
            kept = path.replace(path.with_name(path.name + ".damaged"))
            warnings.warn(f"{path} is no whole checkpoint, and now called {kept.name}.", stacklevel=2)
            damaged = True
        if damaged:
            raise RunError(
                f"no whole checkpoint is left in {self.path.parent}: start again, and this part begins anew."
            )
        return None

    def remove(self) -> None:
        """Delete the checkpoint, its reserve included."""
        self.path.unlink(missing_ok=True)
        self.reserve.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    content = path.read_bytes()
    digest, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    state: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True)
    return state
