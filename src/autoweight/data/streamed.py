"""Samples that are read as they come: random transforms are drawn anew at every visit, and memory stays free.

Labels are known from the start: from `labels`, from the data set's `targets` or `labels`, else by reading it once.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset

from autoweight.config import TaskName
from autoweight.data.dataset import Samples
from autoweight.data.inputs import Inputs, each, parts, rows, shapes, together
from autoweight.data.known_labels import known_labels
from autoweight.data.labelled import Labelled
from autoweight.data.labels import check_labels, no_text
from autoweight.data.reading import Raw, ReadBatch, Reading, Ticket, read
from autoweight.errors import UserError, first_line, require

_SHOWN = 5  # samples that a warning names
_LOOKED_AT = 32  # first samples that are read in search of some that can be
_AT_A_TIME = 256


@dataclass(frozen=True)
class Streamed(Labelled):
    """A map-style data set whose samples are read at every visit."""

    dataset: Any
    reading: Reading
    example: Inputs
    """The inputs of the first two samples."""
    labels: Tensor
    true_labels: Tensor
    source: Tensor
    num_classes: int
    names: NDArray[np.str_] | None = None
    class_names: tuple[str, ...] = ()
    bad: dict[int, str] = field(default_factory=dict, compare=False)
    """What could not be read and was skipped so far: positions in the data set, and why."""

    @classmethod
    def of(
        cls,
        dataset: Any,
        reading: Reading | None = None,
        labels: Any = None,
        num_classes: int | None = None,
        task: TaskName = "classification",
        source: Tensor | None = None,
    ) -> "Streamed":
        """A checked stream; `labels` spares the reading of a data set that does not tell them.

        `source` has the positions at which a data set holds its samples, where they do not count from 0.
        """
        reading = reading or Reading()
        check_map_style(dataset)
        require(task != "tokens", "classes of tokens cannot be streamed: pass tensors, or a Dataset with stream=False.")
        bad: dict[int, str] = {}
        found, positions = known_labels(dataset, labels, reading, bad)
        try:
            given = torch.as_tensor(no_text(found))
        except (ValueError, TypeError) as error:
            raise UserError(f"labels must be numbers, all of one shape, but are not: {first_line(error)}.") from error
        checked, classes = check_labels(given, num_classes, task)
        source = positions if source is None else source
        one = cls(dataset, reading, torch.zeros(0, 1), checked, checked, source, classes, bad=bad)
        return replace(one, example=one.head(2))

    @property
    def input_shape(self) -> Any:
        """The shape of one sample's input; with a `collate_fn`, of the first two's."""
        return shapes(self.example)

    def head(self, count: int) -> Inputs:
        """The inputs of the first few samples."""
        known = len(parts(self.example)[0])
        return rows(self.example, slice(count)) if 0 < min(count, len(self)) <= known else self._here(self.raw(count))

    def raw(self, count: int) -> Inputs:
        """What is read of the first few samples; of more than these where some cannot be read."""
        for looked_at in (count, _LOOKED_AT):
            (batch,) = self.read([self._ticket(torch.arange(min(looked_at, len(self))))], num_workers=0)
            if len(batch.kept) >= min(count, len(self)) and batch.inputs is not None:
                return rows(batch.inputs, slice(count))
        raise UserError(f"of the first {looked_at} samples next to none can be read: {next(iter(self.bad.values()))}.")

    def chunks(self, size: int) -> Iterator[tuple[Inputs, Tensor]]:
        """All inputs in order, some at a time, each with its labels; every time with the same random numbers."""
        for inputs, places in self._in_order(size):
            yield self._here(inputs), self.labels[places]

    def in_memory(self) -> Samples:
        """The same samples, read once and finished; those that cannot be read are left out."""
        found = [(self._here(inputs), places) for inputs, places in self._in_order(_AT_A_TIME)]
        require(len(found) > 0, f"no sample of the data set can be read: {next(iter(self.bad.values()), '')}.")
        kept = self.take(torch.cat([places for _, places in found]))
        inputs = together([inputs for inputs, _ in found], torch.cat)
        source = kept.source.to(self.device)
        return Samples(inputs, kept.labels, kept.true_labels, source, kept.num_classes, kept.names, kept.class_names)

    def _in_order(self, size: int) -> Iterator[tuple[Inputs, Tensor]]:
        """What is read of all samples, some at a time, and which they are."""
        places = torch.arange(len(self)).split(size)
        for part, batch in zip(places, self.read(map(self._ticket, places)), strict=True):
            if batch.inputs is not None:
                yield batch.inputs, part[batch.kept]

    def take(self, positions: Tensor) -> "Streamed":
        """The samples at these positions."""
        host = positions.cpu()
        return replace(
            self,
            labels=self.labels[positions],
            true_labels=self.true_labels[positions],
            source=self.source[host],
            names=None if self.names is None else self.names[host.numpy()],
        )

    def to(self, device: torch.device | str) -> "Streamed":
        """The same samples, whose batches go to another device; where they come from is known on the host."""
        return replace(
            self,
            labels=self.labels.to(device),
            true_labels=self.true_labels.to(device),
            example=each(self.example, lambda part: part.to(device)),
        )

    def read(self, tickets: Iterable[Ticket], num_workers: int | None = None) -> Iterator[ReadBatch]:
        """Batches of samples, once it is settled what becomes of those that cannot be read."""
        how = self.reading if num_workers is None else replace(self.reading, num_workers=num_workers)
        for batch in read(self.dataset, tickets, how, pin=self.device.type == "cuda"):
            for one in batch.bad:
                if self.reading.bad_samples == "refuse":
                    raise one.refused(self._name(one.position))
                self.bad[one.position] = one.why
            yield batch

    def _ticket(self, places: Tensor) -> Ticket:
        """Of samples that are only looked at: every time with the same random numbers."""
        return Ticket(self.source[places].tolist())

    def finished(self, inputs: Inputs) -> Inputs:
        """What networks are fed, from what was read."""
        return self.dataset.finish(inputs) if isinstance(self.dataset, Raw) else inputs

    def _here(self, inputs: Inputs) -> Inputs:
        return self.finished(each(inputs, lambda part: part.to(self.device, non_blocking=True)))

    def _name(self, position: int) -> str:
        place = (self.source == position).nonzero().flatten()
        return str(self.names[int(place[0])]) if self.names is not None and len(place) else ""


def may_skip(samples: Labelled) -> bool:
    """Whether samples may be left out on the way, so that batches are smaller."""
    return isinstance(samples, Streamed) and samples.reading.bad_samples == "skip"


def warn_of_skipped(samples: Any, part: str = "") -> None:
    """Say which samples of a stream could not be read, if some could not; `part` is what it is for, if not training."""
    if isinstance(samples, Streamed) and samples.bad:
        warnings.warn(_skipped(samples.bad, part), stacklevel=3)


def _skipped(bad: dict[int, str], part: str) -> str:
    of_part = f" of the {part} part" if part else ""
    shown = "; ".join(f"sample {position}, {why}" for position, why in sorted(bad.items())[:_SHOWN])
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    return f"{len(bad)} samples{of_part} cannot be read and were skipped: {shown}{more}."


def check_map_style(data: Any) -> None:
    """Raise `UserError` unless samples can be read by their position."""
    wanted = "pass tensors or a map-style Dataset, with __getitem__ and __len__"
    require(not isinstance(data, IterableDataset), f"{wanted}, not an IterableDataset: it cannot be shuffled.")
    require(hasattr(data, "__getitem__"), f"{wanted}, not a DataLoader or an iterable.")
    require(hasattr(data, "__len__"), f"{wanted}: this one has no length.")
    require(len(data) > 0, "the data set is empty.")
    require(
        not isinstance(data, Mapping) or 0 in data,  # one with positions as keys is a data set
        "pass a pair, (inputs, labels), or a map-style Dataset, not a dict.",
    )
