"""What a training tells of its whole set: how margins lie in each class that the network believes in.

A network that memorises confirms wrong labels as it confirms slowly learned ones. So a few samples are on trial: while
there is suspicion, those of them that are contradicted are left out, and it is seen whether the network comes to
confirm them all the same, from the others. Margins are read off the samples on trial alone: what is left out is not
memorised.

All counts are whole numbers (sums in fixed point): the old value of a visited sample goes, the new one comes. So they
are exact, cost no look at the whole set, and do not depend on the order in which a GPU adds.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.strategy.counting import FIXED_POINT, bimodality, ramp, whole

_FINE_POINT = 2**32  # the same of weights
_TWO_GROUPS = (1 / 3, 5 / 9)  # coefficient of bimodality of a normal distribution, one group, and of a flat one
_SUSPICION = (0.4, 0.6)  # contradiction over confirmation: hard samples stay below, wrong and slow ones are above
_FIRMNESS = (0.5, 0.65)  # the same, of what lasts: what is learned slowly stays below 0.55
_FIRMER = 0.05  # more of it is asked of small sets, of which few are on trial
# Of what is contradicted: where fewer are confirmed at the next visit, nothing is learned, slowly or not.
_LEARNING = 0.05
_SMALL = (5000.0, 10000.0)  # samples: of the second, more than six hundred are
_ON_TRIAL = 128  # samples, where that lies between the shares below
_LEAST_SHARE, _MOST_SHARE = 1 / 16, 1 / 4  # of the samples that are on trial
_CONTROL = 500  # samples of the control group, if that is no more than the smaller share
_OUTNUMBERED = 3  # times: labels that are so much rarer than what they are taken for are contradicted by that alone
_HASH, _HASHES = 2654435761, 2**32  # Knuth's multiplicative hash spreads neighbours evenly
_UNDECIDED = 0.01  # of the samples, as if they were contradicted by nothing: so that a few odd ones are no group
_FEW = 2  # such samples at least
_SHARED = 5  # samples of a class that are taken to be confirmed as those of all are, so that rare classes have a scale
_KNOWLEDGE = (0.2, 0.4)  # agreement beyond chance: what is called "slight" of kappas, and "fair" up to the second
_SOME_KNOWLEDGE = (0.1, 0.3)  # the same where samples are known to be memorised
_LATE_KNOWLEDGE = (0.05, 0.15)  # the same in the middle of a training and later: with 80 % redrawn there is no more
_SWITCH = 5  # power of the odds of evidence: 0.3 counts as 0.014, 0.5 as 0.5, 0.7 as 0.986
LEAST_PRIOR, MOST_PRIOR = 0.01, 0.9  # below, next to nothing is wrong; above, next to nothing is learned
_VISITS = (1.0, 2.0)  # a sample: nobody is judged by one visit, nor classes counted before all samples came
_IMBALANCE = (8.0, 20.0)  # commonest over rarest class: natural below the first, made above the second
_TEMPER = (0.5, 1.0)  # exponents of inverse class frequency, early and late: features are learned of all samples alike
_LATE = (0.7, 0.8)  # how much of a training is done while the one goes over into the other
_CLASS_VISITS = 20.0  # visits of a class over which its mean weight is followed
_LEAST_MEAN = 0.05  # that weights are taken relative to, so that none is multiplied by more than its inverse


class Sizes(NamedTuple):
    """How many samples were visited, which all counts are held against: looked up once a step."""

    of_classes: Tensor
    """By label, `[classes]`."""
    samples: Tensor
    """Altogether, 1 at least."""
    visits: Tensor
    """How often each came, in the mean."""
    seen: Tensor
    """From 0, while samples come for the first time, to 1."""
    small: Tensor
    """From 1, where few are on trial, to 0."""
    share_on_trial: Tensor
    batch: Tensor
    """Samples that count in the batch at hand."""

    def on_trial(self, indices: Tensor) -> Tensor:
        """Which samples are: the same all along, once all have come."""
        return indices * _HASH % _HASHES < _HASHES * self.share_on_trial

    def control(self, indices: Tensor) -> Tensor:
        """Which samples others are compared with; none of them is on trial."""
        place = indices * _HASH % _HASHES - _HASHES * self.share_on_trial
        return (place >= 0) & (place < _HASHES * (_CONTROL / self.samples).clamp(max=_LEAST_SHARE))

    def comparable(self, labels: Tensor, believed: Tensor) -> Tensor:
        """Which labels are not far rarer than the classes believed in: that others are contradicted is no evidence.

        Nobody knows before all samples came.
        """
        counts = self.of_classes
        return (_OUTNUMBERED * counts.gather(0, labels) >= counts.gather(0, believed)) | (self.seen <= 0)


class Margins(NamedTuple):
    """How margins lie, each over how firmly labels are confirmed among the samples taken for the same class."""

    contradicted: Tensor
    """Of the samples taken for each class, the share whose label is another one, `[classes]`: margins below 0."""
    bimodality: Tensor
    """Sarle's coefficient, (skewness^2 + 1) / kurtosis: 1/3 if normal, 5/9 if flat, 1 if there are two points."""
    contradiction: Tensor
    """How firmly labels are contradicted, against how firmly others are confirmed."""
    lasting: Tensor
    """How much of it lasts: of the contradicted samples on trial, the share that still is at the next visit."""
    agreement: Tensor
    """How much more often labels are confirmed than by chance, if classes were equally frequent: Bennett's S."""


class Told(NamedTuple):
    """What a control group tells (control.py), each from 0 to 1."""

    memorising: Tensor | float = 0.0
    """How far it is known that samples are memorised whose labels are probably wrong."""
    hard: Tensor | float = 0.0
    """How far it is known that contradicted labels are hard rather than wrong."""
    left_out: Tensor | float = 0.0
    """How far the group is left out where it is contradicted."""


NOTHING_TOLD = Told()
"""By a set that has none."""


class Evidence(NamedTuple):
    """How far contradicted labels may be taken for wrong, from 0 to 1."""

    on_trial: Tensor
    """Those of samples on trial, for which suspicion is enough."""
    others: Tensor
    prior: Tensor
    """The share of contradicted labels in each class believed in, `[classes]`."""
    control: Tensor
    """Those of the control group, which is left out before there is evidence."""

    def against(self, on_trial: Tensor, control: Tensor) -> Tensor:
        """How far single labels may be."""
        return torch.where(on_trial, self.on_trial, torch.where(control, self.control, self.others))


class Census:
    """Counts over the samples visited; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.counts = tensors["counts"]  # by label, [classes, 2]: samples visited, and the sum of their margins
        # By the class believed in, [classes, 8]: what is `counted` of samples on trial.
        self.believed = tensors["believed"]
        self.num_visits = tensors["num_visits"]
        self.taken_back = tensors["taken_back"]  # shares of those on trial: contradicted, and then confirmed
        self.opened = tensors["opened"]  # whether there was evidence at the last look
        self.class_weights = tensors["class_weights"]  # mean weight of each class, followed

    @classmethod
    def empty(cls, num_classes: int, device: torch.device | str = "cpu") -> "Census":
        """Of a training that has not begun."""

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=device)

        return cls(
            {
                "counts": zeros(num_classes, 2),
                "believed": zeros(num_classes, 8),
                "num_visits": zeros(),
                "taken_back": torch.zeros(2, device=device),
                "opened": torch.zeros((), dtype=torch.bool, device=device),
                "class_weights": torch.ones(num_classes, device=device),
            }
        )

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return dict(vars(self))

    def visit(self, labels: Tensor, means: Tensor, first: Tensor, valid: Tensor) -> Sizes:
        """Samples' margins change, `means` being those before and after; of some it is the `first` visit."""
        old, new = whole(means)
        changes = torch.stack([first & valid, new - old], dim=-1)
        self.counts.index_add_(0, labels, changes.long())
        batch = valid.sum()
        self.num_visits += batch
        return self.sizes(batch)

    def sizes(self, batch: Tensor) -> Sizes:
        """How many samples were visited, those of the `batch` at hand included."""
        of_classes = self.counts[:, 0]
        samples = of_classes.sum().clamp(min=1)
        visits = self.num_visits / samples
        share = (_ON_TRIAL / samples).clamp(_LEAST_SHARE, _MOST_SHARE)
        seen, small = ramp(visits, *_VISITS), 1 - ramp(samples, *_SMALL)
        return Sizes(of_classes, samples, visits, seen, small, share, batch)

    def move(self, rows: Tensor, classes: Tensor, counted: Tensor, now: Tensor) -> None:
        """What is `counted` of samples, and the classes believed in, both `[2, batch]`, before and after.

        Some were `counted` before, and some are `now`.
        """
        signs = torch.stack([-counted.long(), now]).unsqueeze(-1)
        self.believed.index_add_(0, classes.flatten(), (rows * signs).flatten(end_dim=1))

    def follow(self, contradicted: Tensor, now: Tensor, sizes: Sizes) -> None:
        """Follow how many on trial were `contradicted`, and how many of these are not `now`, over half an epoch."""
        looked_at = (sizes.batch * sizes.share_on_trial).clamp(min=1e-6)
        shares = torch.stack([contradicted, contradicted & (now > 0)]).sum(dim=-1) / looked_at
        self.taken_back += (shares - self.taken_back) * (2 * sizes.batch / sizes.samples).clamp(max=1)

    def leniency(self) -> Tensor:
        """By how much a class's labels are contradicted in the mean, `[classes]`: it is not learned yet."""
        counts, sums = self.counts.double().unbind(dim=-1)
        return (sums / (-FIXED_POINT * counts.clamp(min=1))).clamp(min=0).float()

    def margins(self) -> Margins:
        """How margins lie."""
        sums = self.believed.double() / FIXED_POINT
        members, against, _, below, total, *_ = sums.unbind(dim=-1)
        everyone, all_against, all_raw, all_below, in_all, *_ = sums.sum(dim=0).unbind()
        everyone = everyone.clamp(min=1)
        confirmed, all_confirmed = members - against, (everyone - all_against).clamp(min=1)
        overall = (in_all - all_below) / all_confirmed
        firm = ((total - below + _SHARED * overall) / (confirmed + _SHARED)).clamp(min=1e-3)
        scaled = (sums[:, 3:] / torch.stack([firm, firm, firm**2, firm**3, firm**4], dim=-1)).sum(dim=0)
        below, first = scaled[:2]
        contradiction = -below / (all_against + _UNDECIDED * everyone + _FEW)
        confirming = (first - below) / all_confirmed
        before, taken_back = self.taken_back.double() + _UNDECIDED
        share = all_against / everyone
        return Margins(
            ((against + _SHARED * share) / (members + _SHARED)).clamp(LEAST_PRIOR, MOST_PRIOR),
            bimodality(scaled[1:] / everyone),
            contradiction / confirming.clamp(min=1e-3),
            1 - taken_back / before,
            1 - all_against.maximum(all_raw) / everyone / (1 - 1 / max(len(sums), 2)),
        )

    def evidence(self, sizes: Sizes, told: Told = NOTHING_TOLD) -> Evidence:
        """How far contradicted labels may be taken for wrong.

        A wrong label is contradicted as firmly as right ones of the same look are confirmed: margins fall into two
        groups. That is read off the shape of the margins, not their size, which differs with the noise, the class, the
        decay and how long the training has run; and nobody is believed who does no better than chance. It may still be
        a label that is learned slowly. So it is suspicion, which is enough to leave out samples on trial. It is
        evidence against all if the network goes on contradicting what it does not train on. Weights change the margins
        that they come from, so that weak evidence would feed itself: it has to pass a switch, at one half. Whether it
        has is kept in `opened`. Where a control group has told that samples are memorised, two groups are not asked
        for; where it has told that the problem is hard, there is no evidence.
        """
        margins = self.margins()
        knowledge = ramp(margins.agreement, *_KNOWLEDGE) * ramp(margins.bimodality, *_TWO_GROUPS)
        suspicion = knowledge * ramp(margins.contradiction, *_SUSPICION)
        before, taken_back = self.taken_back
        learning = ramp(taken_back / before.clamp(min=1e-6), 0.0, _LEARNING)
        firmness = margins.contradiction * margins.lasting - _FIRMER * sizes.small * learning
        knowledge = knowledge.maximum(told.memorising * ramp(margins.agreement, *_SOME_KNOWLEDGE))
        evidence = knowledge * ramp(firmness, *_FIRMNESS) * (1 - told.hard)
        passes = evidence**_SWITCH
        strength = passes / (passes + (1 - evidence) ** _SWITCH) * sizes.seen
        self.opened.copy_(strength > 0.5)
        on_trial = (suspicion * sizes.seen).maximum(strength)
        control = strength.maximum(sizes.seen * told.left_out)
        return Evidence(on_trial.float(), strength.float(), margins.contradicted.float(), control.float())

    def assumed(self, progress: Tensor, seen: Tensor) -> Evidence:
        """The same where labels are known to be wrong: all that is asked is that the network beats chance.

        By less and less up to the middle of the training: what it does not know by then, it will rather memorise.
        """
        margins = self.margins()
        low, high = (
            early + (late - early) * ramp(progress, 0.0, 0.5)
            for early, late in zip(_KNOWLEDGE, _LATE_KNOWLEDGE, strict=True)
        )
        knowledge = (ramp(margins.agreement, low, high) * seen).float()
        return Evidence(knowledge, knowledge, margins.contradicted.float(), knowledge)

    def rarity(self, progress: Tensor, sizes: Sizes, made: bool = False) -> Tensor:
        """Inverse frequency to a power that grows late, `[classes]`, with a mean of 1 over the samples.

        It is 1 while imbalance is natural, unless it is known to be `made`.
        """
        counts = sizes.of_classes.float()
        known = counts.clamp(min=1)
        most = known.amax()
        looks_made = ramp((most / known.where(counts > 0, most).amin()).log(), *map(log, _IMBALANCE))
        early, late = _TEMPER
        power = (early + (late - early) * ramp(progress, *_LATE)) * sizes.seen
        factors = known ** -(power if made else power * looks_made)
        return factors * sizes.samples / (factors * counts).sum().clamp(min=1)

    def within_class(self, weights: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Weights over the mean weight of their class, so that no class is forgotten and steps keep their size."""
        self.follow_weights(weights, labels, valid)
        return weights / self.class_means().gather(0, labels)

    def class_means(self) -> Tensor:
        """The mean weight of each class, `[classes]`, to divide by."""
        return self.class_weights.clamp(min=_LEAST_MEAN)

    def halfway_class_means(self) -> Tensor:
        """Means halfway, as factors go, between that of each class and that of all samples.

        By their class alone, the few labels that are left of one that is mostly contradicted would count for all of it.
        """
        counts = self.counts[:, 0] + 1.0  # a mean before anybody was counted, too
        overall = (self.class_weights * counts).sum() / counts.sum()
        return (self.class_weights * overall).sqrt().clamp(min=_LEAST_MEAN)

    def follow_weights(self, weights: Tensor, labels: Tensor, valid: Tensor) -> None:
        """Follow each class's mean weight, of sums in fixed point that tell small weights apart."""
        rows = torch.stack([valid, weights * valid], dim=-1) * _FINE_POINT
        nothing = torch.zeros(len(self.class_weights), 2, dtype=torch.long, device=labels.device)
        visits, total = nothing.index_add(0, labels, rows.round().long()).unbind(dim=-1)
        now = total / visits.clamp(min=1)
        self.class_weights += (now - self.class_weights) * (1 - torch.exp(visits / (-_CLASS_VISITS * _FINE_POINT)))
