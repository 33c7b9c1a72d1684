"""Visits that wait: of a large set they are remembered some thousands at a time.

What `auto` does takes a few hundred small operations, which cost the same for a hundred samples as for thousands: as
much as a step of a small network. So in plain loops over large sets, what the network makes of a batch is put down
alone, and a sample weighs what came of its visit before, moved by how far its margin has moved since. So it is in
captured steps, where the host remembers between two of them. Small sets remember every batch at once.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.strategy.visits import Look

_LARGE = 10_000  # places: of smaller sets, which are soon memorised, a visit more or less counts
_PARTS = 8  # of the set: when one of these waits, it is remembered, long before most of its samples come again
_BATCHES = 16  # of the set at least: a larger batch is remembered at once
_MOST = 2**20  # visits that are remembered together, so that those of a huge set need little room beside it


class Verdict(NamedTuple):
    """What came of samples' visits, `[batch]` each."""

    log_odds: Tensor
    """That the label is right, were its margin 0 by now."""
    slope: Tensor
    """By how much these change with the margin of now."""
    least: Tensor
    """The probability that it is right by what does not move with the margin: above 0 where a sample was spared."""
    scale: Tensor
    """What the probability counts for."""

    def weights(self, margins: Tensor) -> Tensor:
        """Samples' weights, given their margins of now."""
        return self.scale * torch.addcmul(self.log_odds, self.slope, margins).sigmoid().maximum(self.least)


_VISIT = len(Look._fields) + 1  # numbers: a look, and the label
NOTHING_WAITS = (-1.0,) * _VISIT + (100.0, 0.0, 0.0, 1.0)
"""A sample's row before its first visit, and what comes of none: a weight of 1."""


class Waiting:
    """A row a sample, whose first number is -1 where no visit waits, and its verdict; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.rows = tensors["waiting"]  # a look, the label, and a verdict, [samples, 8]
        self.number = tensors["num_waiting"]  # of visits put down since the last were taken
        self.progress = tensors["waiting_progress"]  # how far the training was at the last of them
        self.known: int | None = None
        """`number`, where it is known without waiting for a GPU."""

    @classmethod
    def counts(cls, device: torch.device | str) -> dict[str, Tensor]:
        """What it keeps beside columns, when nothing waits."""
        number = torch.zeros((), dtype=torch.long, device=device)
        return {"num_waiting": number, "waiting_progress": torch.zeros((), dtype=torch.float32, device=device)}

    @property
    def count(self) -> int:
        """How many visits were put down since the last were taken."""
        if self.known is None:
            self.known = int(self.number)
        return self.known

    def put(self, look: Look, labels: Tensor, places: Tensor, valid: Tensor, progress: float | Tensor) -> Verdict:
        """Put visits down, and give the verdicts before. Of a sample that waits already the later visit counts."""
        before = self.rows.index_select(0, places)
        visits = torch.stack([*look, labels], dim=-1).to(before.dtype)
        visits = visits.where(valid.unsqueeze(-1), before[:, :_VISIT])
        # Whole rows: compiled, a part of each would be put into a copy of all.
        self.rows.index_put_((places,), torch.cat([visits, before[:, _VISIT:]], dim=-1))
        self.number += places.shape[0]
        self.progress.fill_(progress if isinstance(progress, Tensor) else float(progress))
        return Verdict(*before[:, _VISIT:].unbind(dim=-1))

    def labels(self, places: Tensor, otherwise: Tensor) -> Tensor:
        """The labels with which samples wait, those given of samples that do not."""
        rows = self.rows.index_select(0, places)
        return rows[:, _VISIT - 1].to(otherwise.dtype).where(rows[:, 0] >= 0, otherwise)

    def due(self, more: int, num_samples: int) -> bool:
        """Whether enough wait, of a set of that size, now that so many more were put down."""
        self.known = self.count if self.known is None else self.known + more
        return self.known >= num_samples / _PARTS

    def take(self) -> tuple[Tensor, Look, Tensor]:
        """The places of those that wait, what was made of them, and their labels; none waits any more."""
        places = (self.rows[:, 0] >= 0).nonzero().squeeze(-1)
        own, strongest, strongest_class, labels = self.rows[places, :_VISIT].unbind(dim=-1)
        self.rows[:, :_VISIT].index_fill_(0, places, -1.0)
        self.number.zero_()
        self.known = 0
        return places, Look(own, strongest, strongest_class.long()), labels.long()

    def taken(self) -> Iterator[tuple[Tensor, Look, Tensor]]:
        """The same some at a time, each time of the whole set."""
        places, look, labels = self.take()
        parts = max(-(-len(places) // _MOST), 1)
        for first in range(parts):
            some = slice(first, None, parts)
            yield places[some], Look(*(column[some] for column in look)), labels[some]

    def judge(self, places: Tensor, verdict: Verdict) -> None:
        """Keep what came of visits."""
        row = torch.stack(torch.broadcast_tensors(*verdict), dim=-1)
        self.rows[:, _VISIT:].index_put_((places,), row.to(self.rows.dtype))


def may_wait(num_samples: int, batch: int) -> bool:
    """Whether visits to a set of that size are to wait, and batches of that size."""
    return num_samples >= max(_LARGE, _BATCHES * batch)
