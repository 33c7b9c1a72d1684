"""Label issues as a small table: a row a sample, the worst first, in the column names of cleanlab's Datalab."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoweight.errors import UserError, look_up, require
from autoweight.storage.atomic import write_bytes

_MOST_CLASSES = 2000  # of a confusion matrix that still fits into a few megabytes
_LEARNT = 0.15  # part of the way from chance to full agreement with the labels
ENOUGH = 5  # visits of a sample that its memory looks back on


@dataclass(frozen=True)
class Issue:
    """One sample's row."""

    index: int
    is_label_issue: bool
    label_score: float
    """From 0, bad, to 1; NaN where the sample never came up."""
    given_label: Any
    predicted_label: Any
    name: str = ""
    token: int = -1
    """Which of the sample's tokens, where tokens are labelled."""


@dataclass(frozen=True)
class Mistake:
    """One class that seems to be mistaken for another."""

    given_label: Any
    predicted_label: Any
    count: int
    """Samples that look so mistaken."""


_COLUMNS = tuple(one.name for one in fields(Issue))


class LabelIssues:
    """What an audit found: `len`, rows by iterating, columns by `issues["label_score"]`, the worst label first."""

    def __init__(
        self,
        columns: dict[str, NDArray[Any]],
        wrong: NDArray[np.float64],
        num_classes: int,
        threshold: float,
        class_names: Sequence[str] = (),
        visits: float | None = None,
    ) -> None:
        order = np.argsort(columns["label_score"], kind="stable")
        self._data = {name: column[order] for name, column in columns.items()}
        self._wrong = wrong[order]  # probability of each label to be wrong; NaN, and last, where nothing is known
        self.num_classes = num_classes
        self.threshold = threshold
        self.class_names = tuple(class_names)
        self.visits = visits

    def __len__(self) -> int:
        return len(self._data["index"])

    def __getitem__(self, column: str) -> NDArray[Any]:
        require(
            isinstance(column, str), f"columns have names, not {column!r}; rows come by iterating, or by head(count)."
        )
        values = look_up("column", column, self._data)
        if column in ("given_label", "predicted_label") and self.class_names:
            return np.array(self.class_names)[values]
        return values

    def __iter__(self) -> Iterator[Issue]:
        return iter(self.head(len(self)))

    def __repr__(self) -> str:
        found = f"{self.num_issues:,} of {self.num_seen:,} labels look wrong"
        rows = "\n".join("  " + " ".join(_shown(vars(row)[name]) for name in self.columns) for row in self.head(5))
        misleads = f"{self.caution}\n" if self.caution else ""
        return f"{found}; noise rate about {self.noise_rate:.1%}\n{misleads}  {' '.join(self.columns)}\n{rows}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; `name` is there where samples have names, `token` where tokens are labelled."""
        return tuple(name for name in _COLUMNS if name in self._data)

    @property
    def num_issues(self) -> int:
        """How many labels look wrong."""
        return int(self._data["is_label_issue"].sum())

    @property
    def num_seen(self) -> int:
        """How many samples came up: the first so many rows. Of the others nothing is known."""
        return int(np.isfinite(self._wrong).sum())

    @property
    def agreement(self) -> tuple[float, float]:
        """Of which share of the labels seen the network says the same, and how many carry the most frequent one."""
        given, predicted = (self._data[name][: self.num_seen] for name in ("given_label", "predicted_label"))
        most = np.unique(given, return_counts=True)[1].max(initial=0)
        return float((given == predicted).mean()), float(most / max(self.num_seen, 1))

    @property
    def caution(self) -> str:
        """Why the list may mislead: the training was short, or the network has hardly learnt; else empty.

        Nothing is said where no network was trained, in `visits` of each sample.
        """
        if self.visits is None:
            return ""
        agreement, chance = self.agreement
        if agreement < chance + _LEARNT * (1 - chance):
            why = f"the network agrees with {agreement:.0%} of the labels, and naming one class would with {chance:.0%}"
            remedy = "train longer, or see whether the inputs tell the classes apart"
        elif self.visits < ENOUGH:
            why = f"each sample was seen {self.visits:.1f} times, where a memory looks back on about {ENOUGH}"
            remedy = "train longer"
        else:
            return ""
        return f"The list misleads: {why}. Such a network contradicts right labels too; {remedy}."

    @cached_property
    def noise_rate(self) -> float:
        """Estimated share of wrong labels among those seen: the mean probability of being wrong."""
        return float(self._wrong[: self.num_seen].mean()) if self.num_seen else 0.0

    @cached_property
    def confusion(self) -> NDArray[np.float64]:
        """Estimated number of samples by given class (rows) and true class (columns), `[classes, classes]`.

        A sample counts for its label by the probability that this is right, and for the predicted class by the rest.
        One that never came up does not count.
        """
        require(
            self.num_classes <= _MOST_CLASSES,
            f"a confusion matrix of {self.num_classes} classes is too large: look at mistakes() instead.",
        )
        names = "given_label", "predicted_label"
        given, predicted = (self._data[name][: self.num_seen].astype(int) for name in names)
        wrong = self._wrong[: self.num_seen]
        flat: NDArray[np.float64] = np.zeros(self.num_classes**2)
        flat += np.bincount(given * self.num_classes + given, 1 - wrong, self.num_classes**2)
        flat += np.bincount(given * self.num_classes + predicted, wrong, self.num_classes**2)
        return flat.reshape(self.num_classes, self.num_classes)

    def mistakes(self, count: int = 10) -> list[Mistake]:
        """The classes that seem to be mistaken for each other most often."""
        bad = self._data["is_label_issue"]
        pairs = self._data["given_label"][bad].astype(np.int64) * self.num_classes + self._data["predicted_label"][bad]
        values, counts = np.unique(pairs, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:count]
        names: Any = self.class_names or range(self.num_classes)
        mistakes = []
        for pair, times in zip(values[most].tolist(), counts[most].tolist(), strict=True):
            given, predicted = divmod(pair, self.num_classes)
            mistakes.append(Mistake(names[given], names[predicted], times))
        return mistakes

    def head(self, count: int) -> list[Issue]:
        """The first rows."""
        rows = zip(*(self[name][:count].tolist() for name in self.columns), strict=True)
        return [Issue(**dict(zip(self.columns, row, strict=True))) for row in rows]

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.columns)
        scores = [f"{score:.6g}" for score in self["label_score"].tolist()]
        values = [scores if name == "label_score" else self[name].tolist() for name in self.columns]
        writer.writerows(zip(*values, strict=True))
        write_bytes(Path(path).expanduser(), text.getvalue().encode())

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet; needs pyarrow."""
        pyarrow, parquet = _module("pyarrow"), _module("pyarrow.parquet")
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.table({name: self[name] for name in self.columns}), buffer)
        write_bytes(Path(path).expanduser(), buffer.getvalue())

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; needs pandas."""
        return _module("pandas").DataFrame({name: self[name] for name in self.columns})


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(f"this needs {package}: pip install {package}.") from error
