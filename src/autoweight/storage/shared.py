"""A checkpoint of a job that several ranks do: the first writes and reads it, and tells the others."""

from pathlib import Path
from typing import Any

from autoweight.ranks import Ranks
from autoweight.storage.checkpoint import CheckpointFile


class SharedCheckpointFile(CheckpointFile):
    """One file for all ranks; all of them call what is called."""

    def __init__(self, path: Path, ranks: Ranks) -> None:
        super().__init__(path)
        self.ranks = ranks

    def save(self, state: dict[str, Any]) -> None:
        """Write it, on the first rank."""
        if self.ranks.first:
            super().save(state)

    def load(self) -> dict[str, Any] | None:
        """What the first rank reads, on every rank."""
        return self.ranks.share(super().load() if self.ranks.first else None)

    def remove(self) -> None:
        """Delete it, on the first rank."""
        if self.ranks.first:
            super().remove()
