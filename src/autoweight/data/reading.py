"""One sample at a time from a map-style data set, through torch's DataLoader: the same bits for the same seed.

All that is random about a sample, such as a transform, is drawn from a seed of its own, made of the run's seed, the
epoch and the position. So it does not matter how many workers read, or where a training was interrupted.
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from autoweight.config import BadSamples
from autoweight.data.decoding import UnreadableImageError
from autoweight.data.inputs import Inputs, each, parts, together
from autoweight.data.mixing import mix
from autoweight.errors import UserError, first_line, require

LABEL_KEYS = ("label", "labels", "target", "y")
"""Where a dict row has its label, unless told otherwise."""

SKIP = 'skip bad samples (--data.bad-samples skip, in Python bad_samples="skip")'
"""What else can be done about samples that cannot be read."""

Collate = Callable[[list[Any]], Any]

_READ_TWICE = 16  # samples, to see whether they are random


class Ticket(NamedTuple):
    """What is asked of a worker: a batch."""

    positions: list[int]
    numbers: tuple[int, ...] = ()
    """What else samples' random numbers depend on."""


@dataclass(frozen=True)
class Reading:
    """How samples are read."""

    collate_fn: Collate | None = None
    """Makes a batch of a list of samples, as torch's DataLoader has it; without, inputs are stacked."""
    num_workers: int = 0
    """Processes that read; 0 reads in the training's own."""
    bad_samples: BadSamples = "refuse"
    """What becomes of samples that cannot be read: refuse ends the training, skip leaves them out and counts them."""
    label_key: str = ""
    """Where dict rows have their label; empty takes label, labels, target or y."""

    def __post_init__(self) -> None:
        require(
            isinstance(self.num_workers, int) and self.num_workers >= 0,
            f"num_workers is a number of processes, 0 or more, but is {self.num_workers!r}.",
        )
        require(self.bad_samples in ("refuse", "skip"), f"bad_samples is refuse or skip, but is {self.bad_samples!r}.")
        require(
            self.collate_fn is None or callable(self.collate_fn),
            f"collate_fn is a function of a list of samples, but is {self.collate_fn!r}.",
        )


class Raw(Dataset[Any]):
    """A map-style data set whose samples can travel unfinished: workers read less, and devices do the rest."""

    @abstractmethod
    def raw(self, position: int) -> Any:
        """A sample as workers hand it over."""

    @abstractmethod
    def finish(self, inputs: Inputs) -> Inputs:
        """What networks are fed, from a batch of such inputs on any device."""


class Unreadable(NamedTuple):
    """A sample that raised an error."""

    position: int
    why: str
    says_which: bool = False
    """Whether `why` names the sample by itself, as that of an image does."""

    def refused(self, name: str = "") -> UserError:
        """The error for such a sample where none is skipped; `name` is what users call it."""
        called = f"sample {self.position}" + (f" ({name})" if name else "")
        said = self.why if self.says_which else f"{called} cannot be read, {self.why}"
        return UserError(f"{said}: replace or remove it, or {SKIP}.")


def _unreadable(position: int, error: Exception) -> Unreadable:
    if isinstance(error, UnreadableImageError):
        return Unreadable(position, error.clause, says_which=True)
    return Unreadable(position, first_line(error))


class ReadBatch(NamedTuple):
    """What a worker hands over."""

    inputs: Inputs | None
    """None where no sample of the batch could be read."""
    labels: list[Any]
    """As the data set gives them, where they alone were asked for."""
    kept: list[int]
    """Which of the ticket's positions could be read."""
    bad: list[Unreadable]
    complaint: str = ""
    """Why samples cannot be put together, as part of a sentence."""


def read(
    dataset: Any, tickets: Iterable[Ticket], how: Reading, *, pin: bool = False, labels_only: bool = False
) -> Iterator[ReadBatch]:
    """Batches of these samples, in this order; tickets are taken as they are needed."""
    loader = DataLoader(
        _Seeded(dataset),
        batch_sampler=tickets,  # type: ignore[arg-type]  # a ticket is all that `_Seeded` needs of a batch
        num_workers=how.num_workers,
        collate_fn=_Together(how, labels_only),
        pin_memory=pin,
        generator=torch.Generator(),  # lest workers' seeds be drawn from the training's random numbers
    )
    batches = iter(loader)
    while True:
        with nullcontext() if how.num_workers else random_numbers_kept():
            batch = next(batches, None)
        if batch is None:
            return
        require(not batch.complaint, f"samples cannot be put into one batch: {batch.complaint}.")
        yield batch


def split_row(row: Any, label_key: str = "") -> tuple[Any, Any]:
    """The input and the label of what a data set yields, or of a whole batch: a pair, or a dict with a label."""
    if isinstance(row, Mapping):
        keys = [label_key] if label_key else [key for key in LABEL_KEYS if key in row]
        require(
            len(keys) == 1 and keys[0] in row,
            f"a dict row has its label under {label_key or ', '.join(LABEL_KEYS)} (label_key=), but this one has "
            f"{', '.join(map(str, row))}.",
        )
        return {key: value for key, value in row.items() if key != keys[0]}, row[keys[0]]
    require(
        isinstance(row, tuple | list) and len(row) == 2,
        f"a sample is a pair, input and label, or a dict with its label, but this one is a {_kind(row)}.",
    )
    return row[0], row[1]


def row_at(dataset: Any, position: int) -> Any:
    """What a data set yields there; a sample that cannot be read is named and refused."""
    try:
        return dataset[position]
    except UserError:
        raise
    except Exception as error:  # whatever a decoder raises
        raise _unreadable(position, error).refused() from error


def as_inputs(inputs: Any) -> Inputs:
    """What a network is fed, as tensors."""
    return each(inputs, _one_input) if isinstance(inputs, Mapping | tuple) else _one_input(inputs)


def _one_input(values: Any) -> Tensor:
    if isinstance(values, str):
        raise UserError(f"an input is text ('{values[:20]}'): turn it into numbers, in the data set or a collate_fn")
    return single(values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values)))


def single(dense: Tensor) -> Tensor:
    """Double precision, as NumPy has it, in that of networks: single, unless torch's default is another."""
    return dense.to(torch.get_default_dtype()) if dense.dtype == torch.float64 else dense


class _Seeded(Dataset[Any]):
    """Reads samples, each with its own random numbers; an error becomes a value, since it may lie in a worker."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitems__(self, ticket: Ticket) -> list[Any]:
        """The samples of a batch, as DataLoader asks for them."""
        return [self._read(position, mix(*ticket.numbers, position)) for position in ticket.positions]

    def _read(self, position: int, seed: int) -> Any:
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        try:
            return self.dataset.raw(position) if isinstance(self.dataset, Raw) else self.dataset[position]
        except Exception as error:  # whatever a decoder raises
            return _unreadable(position, error)


class _Together:
    """Puts samples together, in the worker that read them."""

    def __init__(self, how: Reading, labels_only: bool) -> None:
        self.how, self.labels_only = how, labels_only

    def __call__(self, rows: list[Any]) -> ReadBatch:
        bad = [row for row in rows if isinstance(row, Unreadable)]
        kept = [place for place, row in enumerate(rows) if not isinstance(row, Unreadable)]
        if not kept:
            return ReadBatch(None, [], kept, bad)
        try:
            return ReadBatch(*self._joined([rows[place] for place in kept]), kept, bad)
        except Exception as error:  # whatever a collate_fn raises
            return ReadBatch(None, [], kept, bad, first_line(error))

    def _joined(self, rows: list[Any]) -> tuple[Inputs | None, list[Any]]:
        if self.labels_only:
            return None, [_plain(split_row(row, self.how.label_key)[1]) for row in rows]
        if self.how.collate_fn is not None:
            inputs = as_inputs(split_row(self.how.collate_fn(rows), self.how.label_key)[0])
            found = [tuple(part.shape) for part in parts(inputs)]
            require(
                all(shape[:1] == (len(rows),) for shape in found),
                f"collate_fn must give inputs and labels of as many rows as it was given, {len(rows)}, but its inputs "
                f"are of shape {' and '.join(map(str, found))}",
            )
            return inputs, []
        own = [as_inputs(split_row(row, self.how.label_key)[0]) for row in rows]
        return together(own, torch.stack), []


def _plain(label: Any) -> Any:
    return label.tolist() if isinstance(label, Tensor | np.ndarray | np.generic) else label


def _kind(row: Any) -> str:
    return f"{type(row).__name__} of {len(row)}" if isinstance(row, tuple | list) else type(row).__name__


@contextmanager
def random_numbers_kept() -> Iterator[None]:
    """Where a training reads its samples itself, its own random numbers stay what they were."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


def is_random(dataset: Any) -> bool:
    """Whether samples differ from visit to visit, as with random transforms; a few are read twice."""
    positions = range(min(_READ_TWICE, len(dataset)))
    with random_numbers_kept():
        try:
            first, again = ([_values(dataset[position]) for position in positions] for _ in range(2))
            return first != again
        except Exception:  # the reading itself will say what is wrong, or some kind cannot be compared
            return False


def _values(row: Any) -> Any:
    """What a row holds, comparable."""
    if isinstance(row, Mapping):
        return {key: _values(value) for key, value in row.items()}
    if isinstance(row, tuple | list):
        return [_values(value) for value in row]
    if hasattr(row, "to_numpy"):  # rows of pandas, whose comparison is no truth value
        return row.to_numpy().tolist()
    return np.asarray(row).tobytes() if isinstance(row, Tensor | np.ndarray | np.generic) else row
