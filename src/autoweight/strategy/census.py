"""What a training tells of its whole set: how its margins lie, in each class and over all, counted visit by visit.

All counts are whole numbers (sums of margins in fixed point): the old value of a visited sample goes, the new one
comes. So they are exact, cost no look at the whole set, and do not depend on the order in which a GPU adds.
"""

from math import log

import torch
from torch import Tensor

FIXED_POINT = 2**20  # sums are whole multiples of 1 / this
_BINS = 64  # of the histogram of margins, from -1 to 1
_LEAST_PRIOR, _MOST_PRIOR = 0.01, 0.9
_TWO_GROUPS = (0.4, 0.6)  # bimodality coefficient: 1/3 for a normal distribution, 5/9 for a flat one, 1 for two points
_CONTRADICTED = (0.03, 0.05)  # share of negative margins: below the first, nothing is done
_LEARNING = (
    0.2,
    0.4,
)  # margins now less margins remembered: above the second, the set as a whole is still being learned
_IMBALANCE = (8.0, 20.0)  # commonest over rarest class: natural below the first, made above the second
_TEMPER = 0.75  # exponent of inverse class frequency
_CLASS_VISITS = 20.0  # visits of a class over which its mean weight is followed
_LEAST_MEAN = 0.05  # of a class's mean weight, so that no weight is multiplied by more than its inverse


class Census:
    """Counts over the samples visited, by class and over all; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.counts = tensors["counts"]  # [classes, 2]: samples visited, and the sum of their margins
        self.num_contradicted = tensors["num_contradicted"]  # how many margins are negative, relative to their class
        self.histogram = tensors["histogram"]
        self.trend = tensors["trend"]  # margins now less margins remembered, followed over half an epoch
        self.class_weights = tensors["class_weights"]  # mean weight of each class, followed

    @classmethod
    def empty(cls, num_classes: int, device: torch.device | str = "cpu") -> "Census":
        """Of a training that has not begun."""

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            {
                "counts": zeros(num_classes, 2),
                "num_contradicted": zeros(),
                "histogram": zeros(_BINS),
                "trend": zeros(dtype=torch.float32),
                "class_weights": zeros(num_classes, dtype=torch.float32) + 1,
            }
        )

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return dict(vars(self))

    def visit(self, labels: Tensor, old: Tensor, new: Tensor, now: Tensor, first: Tensor, valid: Tensor) -> None:
        """Samples' remembered margins go from `old` to `new`, since they are `now`; of some it is the `first` visit."""
        whole = valid.long()
        change = (_fixed(new) - _fixed(old)) * whole
        self.counts.index_add_(0, labels, torch.stack([first.long() * whole, change], dim=-1))
        bins = torch.cat([_bin(old), _bin(new)])
        self.histogram.index_add_(0, bins, torch.cat([(first.long() - 1) * whole, whole]))
        moved = (now - old).where(valid, 0).sum() / whole.sum().clamp(min=1)
        half_epoch = (2 * len(labels) / self.counts[:, 0].sum().clamp(min=1)).clamp(max=1)
        self.trend += (moved - self.trend) * half_epoch

    def count_contradicted(self, before: Tensor, after: Tensor) -> None:
        """Some samples' relative margins have become negative, others no longer are."""
        self.num_contradicted += (after.long() - before.long()).sum()

    def leniency(self) -> Tensor:
        """What a class's margins lack against all, `[classes]`: one not learned yet says nothing of its labels."""
        counts, sums = self.counts.double().unbind(dim=-1)
        by_class = sums / counts.clamp(min=1)
        overall = sums.sum() / counts.sum().clamp(min=1)
        return ((overall - by_class) / FIXED_POINT).clamp(min=0).float()

    def share_contradicted(self) -> Tensor:
        """The share of samples whose labels the network contradicts: the prior of being wrong."""
        share = self.num_contradicted / self.counts[:, 0].sum().clamp(min=1)
        return share.clamp(_LEAST_PRIOR, _MOST_PRIOR)

    def strength(self) -> Tensor:
        """How far what is contradicted may be taken for wrong, from 0 to 1.

        Not while next to nothing is contradicted, nor where margins lie in one broad group, as those of a hard problem
        do, nor while the set as a whole is still being learned: hard samples are contradicted first and learned later.
        """
        two_groups = _ramp(self._bimodality(), *_TWO_GROUPS)
        return two_groups * _ramp(self.share_contradicted(), *_CONTRADICTED) * (1 - _ramp(self.trend, *_LEARNING))

    def rarity(self) -> Tensor:
        """Tempered inverse frequency, `[classes]`, with a mean of 1 over the samples; 1 while imbalance is natural."""
        counts = self.counts[:, 0].float()
        known = counts.clamp(min=1)
        most = known.amax()
        made = _ramp((most / known.where(counts > 0, most).amin()).log(), *map(log, _IMBALANCE))
        factors = known ** (-_TEMPER * made)
        return factors * counts.sum().clamp(min=1) / (factors * counts).sum().clamp(min=1)

    def within_class(self, weights: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Weights over the mean weight of their class, so that no class is forgotten and steps keep their size."""
        member = (
            labels.unsqueeze(-1) == torch.arange(len(self.class_weights), device=labels.device)
        ) & valid.unsqueeze(-1)
        visits = member.sum(dim=0)
        now = (weights.unsqueeze(-1) * member).sum(dim=0) / visits.clamp(min=1)
        self.class_weights += (now - self.class_weights) * (1 - torch.exp(-visits / _CLASS_VISITS))
        return weights / self.class_weights[labels].clamp(min=_LEAST_MEAN)

    def _bimodality(self) -> Tensor:
        """Sarle's coefficient of all margins, (skewness^2 + 1) / kurtosis."""
        centres = (torch.arange(_BINS, device=self.histogram.device) + 0.5) * (2 / _BINS) - 1
        shares = self.histogram / self.histogram.sum().clamp(min=1)
        away = centres - (shares * centres).sum()
        square = away.square()
        second, third, fourth = (shares * torch.stack([square, square * away, square.square()])).sum(dim=-1)
        second = second.clamp(min=1e-4)
        return (third.square() / second**3 + 1) * second.square() / fourth.clamp(min=1e-8)


def _ramp(value: Tensor, low: float, high: float) -> Tensor:
    return ((value - low) / (high - low)).clamp(0, 1)


def _fixed(values: Tensor) -> Tensor:
    return (values.double() * FIXED_POINT).round().long()


def _bin(margins: Tensor) -> Tensor:
    return ((margins + 1) * (_BINS / 2)).long().clamp(0, _BINS - 1)
