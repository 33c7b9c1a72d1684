"""Who is spared although the network contradicts the label: hard samples, while nobody is memorised.

A network that has not learned yet contradicts many right labels, but half-heartedly: a right label keeps more
probability than a wrong one, which is as improbable as it is rare among the samples that the network takes for that
class. To spare such labels is safe only while the network does not memorise what it trains on. That is seen on the
samples on trial, which are never spared: as long as labels of all others are contradicted about as often as theirs,
nothing is memorised. On small sets this cannot be told, so nobody is spared. And it ends in the middle of the training,
or somewhat after evidence came, since memorising comes with small learning rates, and once it is seen it is too late.

Where two fifths of what is contradicted in the middle would be spared, the problem is hard, and contradiction says
little: to leave out would do more harm than wrong labels do. So everybody is spared from then on.
"""

import torch
from torch import Tensor

from autoweight.strategy.control import PROBABLE
from autoweight.strategy.counting import follow_arms, follow_epoch, lacking, on_device, ramp

_MOST_CLASSES = 1024  # of which pairs are counted; with more, nobody is spared
_TIMES = 2.0  # the odds of a label among the samples of a look: at twice these it is as often right as wrong
_STEEPNESS = 3.0  # of that judgement: power of the ratio
_MEMORISED = (0.2, 0.3)  # of the contradictions on trial that others lack: nobody is spared from the second on
_ERRORS = 5.0  # standard errors that are added to it, so that it has to be known
_ENDS = 0.5  # of the training: later, sparing would be memorising
_LASTS = 0.2  # of the training at least: where evidence comes late, so does memorising
_FADES = 0.1  # of the training, before it ends
_HARD = (0.35, 0.45)  # of the contradicted labels that are probable and would be spared: from the second on, all are


class Sparing:
    """Counts over the samples visited; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.pairs = tensors["pairs"]  # samples by the class believed in and by label, [classes, classes]
        self.arms = tensors["arms"]  # [2, 2]: visits in about an epoch, and those contradicted; on trial, and others
        self.doubts = tensors["doubts"]  # [2]: contradicted labels in about an epoch, and those of them that are hard
        self.began = tensors["began"]  # how much of the training was done when evidence came first

    @classmethod
    def empty(cls, num_classes: int, device: torch.device | str = "cpu") -> "Sparing":
        """Of a training that has not begun."""
        counted = num_classes if num_classes <= _MOST_CLASSES else 0
        return cls(
            {
                "pairs": torch.zeros(counted, counted, dtype=torch.int32, device=device),
                "arms": torch.zeros(2, 2, dtype=torch.float32, device=device),
                "doubts": torch.zeros(2, dtype=torch.float32, device=device),
                "began": torch.ones((), dtype=torch.float32, device=device),
            }
        )

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return dict(vars(self))

    def visit(self, before: Tensor, believed: Tensor, labels: Tensor, valid: Tensor) -> None:
        """Samples were taken for the classes `before`, -1 at the first visit, and are `believed` to be of these now."""
        pairs = torch.stack([before.clamp(min=0), believed]) * len(self.pairs) + labels
        changes = torch.stack([-((before >= 0) & valid).int(), valid])
        self.pairs.view(-1).index_add_(0, pairs.flatten(), changes.flatten())

    def follow(self, contradicted: Tensor, on_trial: Tensor, valid: Tensor, num_samples: Tensor) -> None:
        """Follow how often labels are contradicted at the present visit, on trial and elsewhere."""
        follow_arms(self.arms, on_trial, contradicted, valid, num_samples)

    def doubt(self, contradicted: Tensor, right: Tensor, own: Tensor, valid: Tensor, num_samples: Tensor) -> None:
        """Follow how many labels are contradicted, and how many of these are hard: probable, and rather `right`."""
        among = contradicted & valid
        seen = torch.stack([among, right * (own > PROBABLE) * among]).sum(dim=-1)
        follow_epoch(self.doubts, seen, valid.sum(), num_samples)

    def clock(self, progress: float | Tensor, opened: Tensor) -> tuple[Tensor, Tensor]:
        """How far single samples are still spared, from 1 to 0, and whether it is settled if the problem is hard.

        When evidence came first is noted.
        """
        done = on_device(progress, opened.device)
        self.began.copy_(torch.where(opened, self.began.minimum(done), self.began))
        ends = (self.began + _LASTS).clamp(min=_ENDS)
        return ((ends - done) / _FADES).clamp(0, 1), opened & (done >= _ENDS)

    def safe(self, opened: Tensor) -> Tensor:
        """How far sparing is safe, from 0 to 1: where samples are not memorised, and that is known."""
        return ramp(lacking(self.arms, _ERRORS), *reversed(_MEMORISED)) * opened

    def raised(
        self, right: Tensor, may_be: Tensor, on_trial: Tensor, clock: tuple[Tensor, Tensor], opened: Tensor
    ) -> Tensor:
        """Probabilities that labels are `right`, raised where they `may_be`, or for all of a hard problem."""
        early, settled = clock
        single = (may_be - right).clamp(min=0) * early
        everyone = (1 - right - single) * self.hard() * settled
        return right + ((single + everyone) * self.safe(opened)).masked_fill(on_trial, 0)

    def hard(self) -> Tensor:
        """How far everybody is to be spared, from 0 to 1."""
        return ramp(self.doubts[1] / self.doubts[0].clamp(min=1), *_HARD)

    def probability_right(self, own: Tensor, believed: Tensor, labels: Tensor) -> Tensor:
        """By the labels' `own` remembered probabilities: 1 for those that are believed in."""
        counts, members = self.pairs[believed, labels], self.pairs.sum(dim=-1).gather(0, believed)
        share = (counts + 0.5) / (members + 0.5 * len(self.pairs))
        even = _TIMES * share / (1 + (_TIMES - 1) * share)  # by odds: of two classes hardly any has twice the share
        odds = _STEEPNESS * (own.clamp(min=1e-6) / even).log()
        return odds.sigmoid().masked_fill(believed == labels, 1.0)
