"""What a training tells of its whole set: how its margins lie, in each class and over all, counted visit by visit.

All counts are whole numbers (sums of margins in fixed point): the old value of a visited sample goes, the new one
comes. So they are exact, cost no look at the whole set, and do not depend on the order in which a GPU adds.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

FIXED_POINT = 2**20  # sums are whole multiples of 1 / this
_BINS = 256  # of the histogram of margins, from -1 to 1; after one visit, when margins are small, 50 of them are used
_LEAST_PRIOR, _MOST_PRIOR = 0.01, 0.9  # below, next to nothing is wrong; above, next to nothing is learned
_TWO_GROUPS = (1 / 3, 5 / 9)  # coefficient of bimodality of a normal distribution, one group, and of a flat one
_FIRMNESS = (0.35, 0.55)  # lasting contradiction over confirmation: what is learned slowly stays below 0.45
_UNDECIDED = 0.01  # of the set, as if it were contradicted by nothing: so that a few odd samples are no group
_DEEP = -0.3  # a margin this low after a few visits is no doubt: the network has been sure of another class
_MANY_DEEP = (0.05, 0.15)  # share of such samples; of problems that are just hard, some hundredths are
_KNOWLEDGE = (0.1, 0.3)  # agreement beyond chance, Cohen's kappa: "slight" below 0.2; who guesses contradicts too
_SWITCH = 5  # power of the odds of evidence: 0.3 counts as 0.014, 0.5 as 0.5, 0.7 as 0.986
_VISITS = (1.0, 2.0)  # a sample: nobody is judged by one visit, nor classes counted before all samples came
_IMBALANCE = (8.0, 20.0)  # commonest over rarest class: natural below the first, made above the second
_TEMPER = 0.75  # exponent of inverse class frequency
_CLASS_VISITS = 20.0  # visits of a class over which its mean weight is followed
_LEAST_MEAN = 0.05  # of a class's mean weight, so that no weight is multiplied by more than its inverse


class Margins(NamedTuple):
    """How the margins of all samples lie, relative to their classes."""

    contradicted: Tensor
    """The share that is negative."""
    bimodality: Tensor
    """Sarle's coefficient, (skewness^2 + 1) / kurtosis: 1/3 if normal, 5/9 if flat, 1 if there are two points."""
    firmness: Tensor
    """How firmly labels are contradicted, against how firmly others are confirmed, times how much of it lasts."""
    deep: Tensor
    """The share that is far below zero."""


class Census:
    """Counts over the samples visited, by class and over all; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.counts = tensors["counts"]  # [classes, 2]: samples visited, and the sum of their margins
        self.num_visits = tensors["num_visits"]
        self.histogram = tensors["histogram"]  # of margins relative to their classes
        self.taken_back = tensors[
            "taken_back"
        ]  # shares contradicted, and of that confirmed at the next visit, followed
        self.class_weights = tensors["class_weights"]  # mean weight of each class, followed

    @classmethod
    def empty(cls, num_classes: int, device: torch.device | str = "cpu") -> "Census":
        """Of a training that has not begun."""

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        return cls(
            {
                "counts": zeros(num_classes, 2),
                "num_visits": zeros(),
                "histogram": zeros(_BINS),
                "taken_back": torch.zeros(2, device=device),
                "class_weights": torch.ones(num_classes, device=device),
            }
        )

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return dict(vars(self))

    def visit(self, labels: Tensor, old: Tensor, new: Tensor, first: Tensor, valid: Tensor) -> None:
        """Samples' margins go from `old` to `new`; of some it is the `first` visit."""
        whole = valid.long()
        change = (_fixed(new) - _fixed(old)) * whole
        self.counts.index_add_(0, labels, torch.stack([first.long() * whole, change], dim=-1))
        self.num_visits += whole.sum()

    def move(self, old: Tensor, new: Tensor, now: Tensor, first: Tensor, valid: Tensor) -> None:
        """Samples' margins relative to their classes go from `old` to `new`, since they are `now`; some come first."""
        whole = valid.long()
        bins = torch.cat([_bin(old), _bin(new)])
        self.histogram.index_add_(0, bins, torch.cat([(first.long() - 1) * whole, whole]))
        contradicted = (old < 0) & ~first & valid
        shares = torch.stack([contradicted, contradicted & (now > 0)]).sum(dim=-1) / whole.sum().clamp(min=1)
        half_epoch = (2 * len(old) / self.counts[:, 0].sum().clamp(min=1)).clamp(max=1)
        self.taken_back += (shares - self.taken_back) * half_epoch * valid.any()

    def leniency(self) -> Tensor:
        """What a class's margins lack against all, `[classes]`: one not learned yet says nothing of its labels."""
        counts, sums = self.counts.double().unbind(dim=-1)
        by_class = sums / counts.clamp(min=1)
        overall = sums.sum() / counts.sum().clamp(min=1)
        return ((overall - by_class) / FIXED_POINT).clamp(min=0).float()

    def margins(self) -> Margins:
        """How margins lie, from their histogram."""
        centres = (torch.arange(_BINS, device=self.histogram.device) + 0.5) * (2 / _BINS) - 1
        shares = self.histogram / self.histogram.sum().clamp(min=1)
        below = shares * (centres < 0)
        deep, contradicted, contradiction = torch.stack([shares * (centres < _DEEP), below, -below * centres]).sum(-1)
        mean = (shares * centres).sum()
        away = centres - mean
        square = away.square()
        second, third, fourth = (shares * torch.stack([square, square * away, square.square()])).sum(dim=-1)
        second = second.clamp(min=1e-8)
        bimodality = (third.square() / second**3 + 1) * second.square() / fourth.clamp(min=1e-16)
        confirmation = (mean + contradiction) / (1 - contradicted).clamp(min=1e-3)
        firmness = contradiction / (contradicted + _UNDECIDED) / confirmation.clamp(min=1e-3)
        before, taken_back = self.taken_back + _UNDECIDED
        return Margins(contradicted, bimodality, firmness * (1 - taken_back / before), deep)

    def strength(self, margins: Margins | None = None) -> Tensor:
        """How far what is contradicted may be taken for wrong, from 0 to 1.

        A wrong label is contradicted as firmly as right ones are confirmed, and stays so: margins fall into two groups.
        A hard sample is contradicted a little, and now and then; one that is learned slowly, until it is learned.
        That is read off the shape of the margins, not their size, which differs with the noise, the decay and how long
        the training has run. Where a good many margins are deep below zero, nothing else has to be shown. Nobody is
        believed who does no better than chance. Weights change the margins that they come from, so that weak evidence
        would feed itself: it has to pass a switch, at one half.
        """
        margins = self.margins() if margins is None else margins
        by_chance = 1 - 1 / max(len(self.counts), 2)
        knowledge = _ramp(1 - margins.contradicted / by_chance, *_KNOWLEDGE)
        two_groups = _ramp(margins.bimodality, *_TWO_GROUPS) * _ramp(margins.firmness, *_FIRMNESS)
        evidence = knowledge * torch.maximum(two_groups, _ramp(margins.deep, *_MANY_DEEP))
        odds = (evidence / (1 - evidence).clamp(min=1e-6)) ** _SWITCH
        return odds / (1 + odds) * self._seen()

    def prior(self, margins: Margins | None = None) -> Tensor:
        """The share of samples whose labels the network contradicts: the prior of being wrong."""
        margins = self.margins() if margins is None else margins
        return margins.contradicted.clamp(_LEAST_PRIOR, _MOST_PRIOR)

    def rarity(self) -> Tensor:
        """Tempered inverse frequency, `[classes]`, with a mean of 1 over the samples; 1 while imbalance is natural."""
        counts = self.counts[:, 0].float()
        known = counts.clamp(min=1)
        most = known.amax()
        made = _ramp((most / known.where(counts > 0, most).amin()).log(), *map(log, _IMBALANCE))
        factors = known ** (-_TEMPER * made * self._seen())
        return factors * counts.sum().clamp(min=1) / (factors * counts).sum().clamp(min=1)

    def _seen(self) -> Tensor:
        """From 0, while samples come for the first time, to 1."""
        return _ramp(self.num_visits / self.counts[:, 0].sum().clamp(min=1), *_VISITS)

    def within_class(self, weights: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Weights over the mean weight of their class, so that no class is forgotten and steps keep their size."""
        member = (
            labels.unsqueeze(-1) == torch.arange(len(self.class_weights), device=labels.device)
        ) & valid.unsqueeze(-1)
        visits = member.sum(dim=0)
        now = (weights.unsqueeze(-1) * member).sum(dim=0) / visits.clamp(min=1)
        self.class_weights += (now - self.class_weights) * (1 - torch.exp(-visits / _CLASS_VISITS))
        return weights / self.class_weights[labels].clamp(min=_LEAST_MEAN)


def _ramp(value: Tensor, low: float, high: float) -> Tensor:
    return ((value - low) / (high - low)).clamp(0, 1)


def _fixed(values: Tensor) -> Tensor:
    return (values.double() * FIXED_POINT).round().long()


def _bin(margins: Tensor) -> Tensor:
    return ((margins + 1) * (_BINS / 2)).long().clamp(0, _BINS - 1)
