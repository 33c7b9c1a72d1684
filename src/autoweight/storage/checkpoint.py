"""Checkpoints that survive a kill at any moment: checked by a digest, replaced in one move, the last two kept."""

import hashlib
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from autoweight.errors import RunError, UserError
from autoweight.storage.atomic import write_bytes

_DIGEST = 32
_ZIP = b"PK\x03\x04"  # what torch.save begins with


class AnotherJobError(UserError):
    """The checkpoint is whole, but of another job. The command line has other words for it: a run names no file."""


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
        """The newest whole checkpoint, or None where none was ever written.

        `UserError` where somebody else's file is in its place, which stays as it is.
        """
        there = [path for path in (self.path, self.reserve) if path.exists()]
        if there and not any(map(_looks_like_ours, there)):
            raise UserError(f"{there[0]} is no checkpoint: name another file.")
        damaged: list[str] = []
        for path in there:
            state = _read(path)
            if state is not None:
                if damaged:
                    warnings.warn(f"{damaged[0]}; the one before it is taken.", stacklevel=2)
                return state
            # Rename it, or the next save would make it the reserve in place of the whole one.
            kept = path.replace(path.with_name(path.name + ".damaged"))
            damaged.append(f"{path} is no whole checkpoint, and now called {kept.name}")
        if damaged:
            raise RunError(f"{'; '.join(damaged)}: start again, and this part begins anew.")
        return None

    def peek(self) -> dict[str, Any] | None:
        """The newest whole checkpoint, to look at only: damaged files stay as they are, and nothing is raised."""
        for path in (self.path, self.reserve):
            try:
                if (state := _read(path)) is not None:
                    return state
            except (OSError, RuntimeError, pickle.UnpicklingError):
                continue
        return None

    def of_another(self, job: str) -> AnotherJobError:
        """The error where the checkpoint is of another job; it names the reserve, which is read without the newest."""
        return AnotherJobError(
            f"the checkpoint is of another {job}: use another file, or, to begin anew, delete {self.path} and "
            f"{self.reserve.name} beside it."
        )

    def remove(self) -> None:
        """Delete the checkpoint, its reserve included."""
        self.path.unlink(missing_ok=True)
        self.reserve.unlink(missing_ok=True)


def _looks_like_ours(path: Path) -> bool:
    """Whether a file may once have been a checkpoint: one that was cut short keeps its start, if anything."""
    with path.open("rb") as file:
        start = file.read(_DIGEST + len(_ZIP))
    return not start or start[_DIGEST:] == _ZIP


def _read(path: Path) -> dict[str, Any] | None:
    content = path.read_bytes()
    digest, payload = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    # Whoever takes it copies it to where they are, which need not be the GPU that it was written from.
    state: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    return state
