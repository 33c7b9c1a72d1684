"""Visits that wait: of a large set they are remembered some thousands at a time.

What `auto` does takes a few hundred small operations, which cost the same for a hundred samples as for thousands: as
much as a step of a small network. So in plain loops over large sets, what the network makes of a batch is put down
alone, and a sample weighs what came of its visit before, moved by how far its margin has moved since. So it is in
captured steps, where the host remembers between two of them. Small sets remember every batch at once.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_LARGE = 10_000  # places: of smaller sets, which are soon memorised, a visit more or less counts
_PARTS = 8  # of the set: when one of these waits, it is remembered, long before most of its samples come again
_BATCHES = 16  # of the set at least: a larger batch is remembered at once
_MOST = 2**20  # visits that wait, so that a huge set needs no room beside it


class Look(NamedTuple):
    """What a network makes of samples, `[batch]` each."""

    own: Tensor
    """The probability of the label."""
    strongest: Tensor
    """That of the strongest other class."""
    strongest_class: Tensor

    @classmethod
    def at(cls, logits: Tensor, labels: Tensor, num_classes: int) -> "Look":
        """By logits; a network may have outputs to spare, which are no classes."""
        probabilities = logits.softmax(dim=-1)[..., :num_classes]
        classes = labels.unsqueeze(-1)
        own = probabilities.gather(-1, classes).squeeze(-1)
        return cls(own, *probabilities.scatter(-1, classes, -1.0).max(dim=-1))

    def margins(self) -> Tensor:
        """From -1 to 1."""
        return self.own - self.strongest


class Verdict(NamedTuple):
    """What came of samples' visits, `[batch]` each."""

    log_odds: Tensor
    """That the label is right."""
    slope: Tensor
    """By how much these change with the remembered margin."""
    least: Tensor
    """The probability that it is right by what does not move with the margin: above 0 where a sample was spared."""
    scale: Tensor
    """What the probability counts for."""

    def weights(self, moved: float | Tensor = 0.0) -> Tensor:
        """Samples' weights, once their margins have moved."""
        return self.scale * (self.log_odds + self.slope * moved).sigmoid().maximum(self.least)


class Waiting:
    """A row a sample, whose first number is -1 where no visit waits, and its verdict; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.rows = tensors["waiting"]  # a look, and the label, [samples, 4]
        self.verdicts = Verdict(*(tensors[name] for name in Verdict._fields))
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
        before = self.rows[places]
        visits = torch.stack([look.own, look.strongest, look.strongest_class, labels], dim=-1)
        self.rows.index_put_((places,), visits.to(before.dtype).where(valid.unsqueeze(-1), before))
        self.number += places.shape[0]
        self.progress.fill_(progress)
        return Verdict(*(column.gather(0, places) for column in self.verdicts))

    def labels(self, places: Tensor, otherwise: Tensor) -> Tensor:
        """The labels with which samples wait, those given of samples that do not."""
        rows = self.rows[places]
        return rows[:, 3].to(otherwise.dtype).where(rows[:, 0] >= 0, otherwise)

    def due(self, more: int, num_samples: int) -> bool:
        """Whether enough wait, of a set of that size, now that so many more were put down."""
        self.known = self.count if self.known is None else self.known + more
        return self.known >= min(num_samples / _PARTS, _MOST)

    def take(self) -> tuple[Tensor, Look, Tensor]:
        """The places of those that wait, what was made of them, and their labels; none waits any more."""
        places = (self.rows[:, 0] >= 0).nonzero().squeeze(-1)
        own, strongest, strongest_class, labels = self.rows[places].unbind(dim=-1)
        self.rows[places] = -1.0
        self.number.zero_()
        self.known = 0
        return places, Look(own, strongest, strongest_class.long()), labels.long()

    def judge(self, places: Tensor, verdict: Verdict) -> None:
        """Keep what came of visits."""
        for column, new in zip(self.verdicts, verdict, strict=True):
            column.index_put_((places,), new.to(column.dtype))


def may_wait(num_samples: int, batch: int) -> bool:
    """Whether visits to a set of that size are to wait, and batches of that size."""
    return num_samples >= max(_LARGE, _BATCHES * batch)
