"""What a training tells of its whole set: how margins lie in each class that the network believes in.

All counts are whole numbers (sums in fixed point): the old value of a visited sample goes, the new one comes. So they
are exact, cost no look at the whole set, and do not depend on the order in which a GPU adds.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

FIXED_POINT = 2**20  # sums are whole multiples of 1 / this
_TWO_GROUPS = (1 / 3, 5 / 9)  # coefficient of bimodality of a normal distribution, one group, and of a flat one
_FIRMNESS = (0.4, 0.6)  # lasting contradiction over confirmation: what is learned slowly stays below 0.5
_UNDECIDED = 0.01  # of the samples, as if they were contradicted by nothing: so that a few odd ones are no group
_FEW = 2  # such samples at least
_SHARED = 5  # samples of a class that are taken to be confirmed as those of all are, so that rare classes have a scale
_KNOWLEDGE = (0.2, 0.4)  # agreement beyond chance, Cohen's kappa: "slight" below, "fair" up to the second
_SWITCH = 5  # power of the odds of evidence: 0.3 counts as 0.014, 0.5 as 0.5, 0.7 as 0.986
_LEAST_PRIOR, _MOST_PRIOR = 0.01, 0.9  # below, next to nothing is wrong; above, next to nothing is learned
_VISITS = (1.0, 2.0)  # a sample: nobody is judged by one visit, nor classes counted before all samples came
_IMBALANCE = (8.0, 20.0)  # commonest over rarest class: natural below the first, made above the second
_TEMPER = 0.75  # exponent of inverse class frequency
_CLASS_VISITS = 20.0  # visits of a class over which its mean weight is followed
_LEAST_MEAN = 0.05  # of a class's mean weight, so that no weight is multiplied by more than its inverse


class Margins(NamedTuple):
    """How margins lie, each over how firmly labels are confirmed among the samples taken for the same class."""

    contradicted: Tensor
    """Of the samples taken for each class, the share whose label is another one, `[classes]`: margins below 0."""
    bimodality: Tensor
    """Sarle's coefficient, (skewness^2 + 1) / kurtosis: 1/3 if normal, 5/9 if flat, 1 if there are two points."""
    firmness: Tensor
    """How firmly labels are contradicted, against how firmly others are confirmed, times how much of it lasts."""


class Census:
    """Counts over the samples visited; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.counts = tensors["counts"]  # by label, [classes, 3]: samples visited, contradicted, and the sum of margins
        self.believed = tensors["believed"]  # by the class believed in, [classes, 7]: sums of `_row` over its samples
        self.num_visits = tensors["num_visits"]
        self.taken_back = tensors["taken_back"]  # shares contradicted, and of that confirmed at the next visit
        self.class_weights = tensors["class_weights"]  # mean weight of each class, followed

    @classmethod
    def empty(cls, num_classes: int, device: torch.device | str = "cpu") -> "Census":
        """Of a training that has not begun."""

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        return cls(
            {
                "counts": zeros(num_classes, 3),
                "believed": zeros(num_classes, 7),
                "num_visits": zeros(),
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
        against = (new < 0).long() - (old < 0).long()
        changes = torch.stack([first.long(), against, _fixed(new) - _fixed(old)], dim=-1)
        self.counts.index_add_(0, labels, changes * whole.unsqueeze(-1))
        self.num_visits += whole.sum()

    def move(self, old: Tensor, new: Tensor, classes: tuple[Tensor, Tensor], first: Tensor, valid: Tensor) -> None:
        """Samples' margins, relative to their labels' classes, go from `old` to `new`; so do the `classes` believed in.

        Some samples come for the `first` time.
        """
        whole = valid.long()
        signs = torch.cat([(first.long() - 1) * whole, whole])
        self.believed.index_add_(0, torch.cat(classes), _row(torch.cat([old, new])) * signs.unsqueeze(-1))

    def follow(self, old: Tensor, now: Tensor, first: Tensor, valid: Tensor) -> None:
        """Follow how much of what was contradicted is confirmed `now`, over about half an epoch."""
        contradicted = (old < 0) & ~first & valid
        shares = torch.stack([contradicted, contradicted & (now > 0)]).sum(dim=-1) / valid.sum().clamp(min=1)
        half_epoch = (2 * len(old) / self.counts[:, 0].sum().clamp(min=1)).clamp(max=1)
        self.taken_back += (shares - self.taken_back) * half_epoch * valid.any()

    def leniency(self) -> Tensor:
        """By how much a class's labels are contradicted in the mean, `[classes]`: it is not learned yet."""
        counts, _, sums = self.counts.double().unbind(dim=-1)
        return (-sums / counts.clamp(min=1) / FIXED_POINT).clamp(min=0).float()

    def margins(self) -> Margins:
        """How margins lie."""
        sums = self.believed.double() / FIXED_POINT
        members, against, below = sums[:, :3].unbind(dim=-1)
        confirmed, confirmation = members - against, sums[:, 3] - below
        overall = confirmation.sum() / confirmed.sum().clamp(min=1)
        firm = ((confirmation + _SHARED * overall) / (confirmed + _SHARED)).clamp(min=1e-3)
        powers = (sums[:, 3:] / torch.stack([firm, firm**2, firm**3, firm**4], dim=-1)).sum(dim=0)
        mean, second, third, fourth = powers / members.sum().clamp(min=1)
        variance = (second - mean**2).clamp(min=1e-8)
        skew = third - 3 * mean * second + 2 * mean**3
        spread = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        bimodality = (skew**2 / variance**3 + 1) * variance**2 / spread.clamp(min=1e-16)
        contradiction = -(below / firm).sum() / (against.sum() + _UNDECIDED * members.sum() + _FEW)
        confirming = (confirmation / firm).sum() / confirmed.sum().clamp(min=1)
        before, taken_back = self.taken_back.double() + _UNDECIDED
        firmness = contradiction / confirming.clamp(min=1e-3) * (1 - taken_back / before)
        return Margins(against / members.clamp(min=1), bimodality, firmness)

    def evidence(self) -> tuple[Tensor, Tensor]:
        """How far contradicted labels may be taken for wrong, 0 to 1, and the share of them in each class believed in.

        A wrong label is contradicted as firmly as right ones of the same look are confirmed, and stays so: margins fall
        into two groups. A hard sample is contradicted a little, and now and then; one that is learned slowly, until it
        is learned. That is read off the shape of the margins, not their size, which differs with the noise, the class,
        the decay and how long the training has run. Nobody is believed who does no better than chance. Weights change
        the margins that they come from, so that weak evidence would feed itself: it has to pass a switch, at one half.
        """
        margins = self.margins()
        visited, against = self.counts[:, :2].sum(dim=0)
        members, relative = self.believed[:, :2].sum(dim=0)
        contradicted = (against / visited.clamp(min=1)).maximum(relative / members.clamp(min=1))
        knowledge = _ramp(1 - contradicted / (1 - 1 / max(len(self.counts), 2)), *_KNOWLEDGE)
        evidence = knowledge * _ramp(margins.bimodality, *_TWO_GROUPS) * _ramp(margins.firmness, *_FIRMNESS)
        odds = (evidence / (1 - evidence).clamp(min=1e-6)) ** _SWITCH
        strength = odds / (1 + odds) * self._seen()
        return strength.float(), margins.contradicted.clamp(_LEAST_PRIOR, _MOST_PRIOR).float()

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


def _row(margins: Tensor) -> Tensor:
    """What is counted of a sample, in fixed point: itself, whether it is contradicted, by how much, and four powers."""
    below = margins.clamp(max=0)
    square = margins.square()
    powers = (margins, square, square * margins, square.square())
    return _fixed(torch.stack([torch.ones_like(margins), (margins < 0).to(margins.dtype), below, *powers], dim=-1))
