"""Samples of the user's own as they stand in a file, before anything is turned into numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.errors import UserError

Content = NDArray[Any] | dict[str, NDArray[Any]]
"""Texts, paths or arrays, one a sample; or the columns of a table."""

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}
"""What stands for a missing value, in letters of any size; of labels only nothing does, as a class may be called so."""


@dataclass(frozen=True)
class Rows:
    """Samples as they were found."""

    content: Content
    labels: NDArray[Any]
    """As they are written, empty where one is missing; or, of an array, numbers `[samples, labels or tokens]`."""
    names: NDArray[np.str_]
    """What the user calls each, such as a file name or a line."""
    marked: NDArray[np.bool_] | None
    """Which are marked as trusted, where a column or array says so."""
    places: NDArray[np.int64]
    """Their positions in the file, counted from 0."""

    @classmethod
    def of(cls, content: Content, labels: Any, names: Any, marked: NDArray[np.bool_] | None = None) -> "Rows":
        """All samples of a file, in its order."""
        labels = labels if np.ndim(labels) == 2 else np.array(labels, dtype=str)
        return cls(content, labels, np.array(names, dtype=str), marked, np.arange(len(labels)))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, positions: NDArray[Any]) -> "Rows":
        """The samples at these positions."""
        content = self.content
        taken = {name: column[positions] for name, column in content.items()} if isinstance(content, dict) else None
        return replace(
            self,
            content=content[positions] if taken is None else taken,  # type: ignore[index]
            labels=self.labels[positions],
            names=self.names[positions],
            marked=None if self.marked is None else self.marked[positions],
            places=self.places[positions],
        )


def read_utf8(path: Path) -> str:
    """The text of a file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from error


class Parts(NamedTuple):
    """What a path holds: some hold a test part and trusted samples of their own."""

    train: Rows
    test: Rows | None = None
    trusted: Rows | None = None


class Encoded(NamedTuple):
    """Inputs for a network."""

    inputs: Any
    """A tensor, or a map-style data set to stream."""
    kept: NDArray[np.int_] | None = None
    """The positions of samples that could be read, where some could not."""


Encoder = Callable[[Content], Encoded]
"""Turns what was found into inputs, in the same way for every part."""
