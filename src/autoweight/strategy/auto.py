"""auto: the strategy that comes with the package, for every training.

Idea    A wrong label is one that the network, whatever it knows by now, keeps contradicting. So each sample's margin is
        remembered, and its weight is the probability that its label is right, `sigmoid(slope m - logit(prior))`. The
        prior is the share of contradicted samples among those that the network takes for the same class, counted in
        the training itself, times the evidence that wrong labels make it at all: margins fall into two groups,
        contradiction is about as firm as confirmation, the network does better than chance, and a few contradicted
        samples that are left out, on trial, stay contradicted. Hard problems do not show the first, slowly learned ones
        not the last, so that their weights stay at 1. Of large sets hard samples are spared in the first half of the
        training, while nothing is memorised, and all after it where the problem is hard (sparing.py). Weights have a
        mean of 1 within each class, of large sets halfway. Rare classes are raised where the imbalance is so large that
        it looks made.
Told    Nothing: no search, no trusted samples, no noise rate. It needs the samples' indices.
Knobs   None.
Cost    Element-wise work on one batch of logits, about two milliseconds on a CPU, 40 bytes a sample and four a pair of
        classes.
"""

import torch
from torch import Tensor

from autoweight.errors import UserError
from autoweight.strategy.census import Census, Sizes
from autoweight.strategy.features import View
from autoweight.strategy.memory import RATE, SLOPE, Memory, Taken
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.stages import check_progress
from autoweight.strategy.weigher import view_of

_LEAST = 1e-30  # of the prior, whose logit has to be a number: below it, no margin makes a label wrong


class Auto(Remembering):
    """Weighs by the probability that a label is right, as the training itself tells it."""

    capturable = True
    tasks = ("classification", "tokens")

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Near 0 for samples whose labels the network keeps contradicting; about 1 in the mean."""
        check_progress(progress)
        if (once := self._once(losses, logits, labels, progress, indices)) is not None:
            return once
        if labels.is_floating_point() and logits.numel() == labels.numel():
            raise UserError(
                "auto weighs by classes, and these labels are numbers: use another method, or none. For one logit z of "
                "two classes, pass torch.stack([-z, z], dim=1) / 2 and labels as .long()."
            )
        view = view_of(losses, logits, labels)._replace(progress=progress)
        memory, places = self._recall(view, losses, indices)
        weights = self._weigh(view, memory, places)
        return weights.where(view.valid, 0).view_as(losses).to(losses.dtype)

    def _weigh(self, view: View, memory: Memory, places: Tensor) -> Tensor:
        labels, census = view.labels.long().clamp(min=0), memory.census
        rate = torch.full((), RATE, device=labels.device)
        margins = memory.margins(view.logits, labels, places, rate, view.valid)
        taken = memory.relative(margins, labels, places, view.valid)
        progress = torch.as_tensor(view.progress, dtype=torch.float32, device=labels.device)
        strength, share = self._evidence(census, taken, progress)
        right = 1 - probability_wrong(taken.relative, strength, share.gather(0, taken.believed))
        right = memory.spared(right, taken, labels, places, view.valid, progress)
        weights = memory.scaled(right, labels, view.valid)
        return weights * self._rarity(census, taken.sizes, progress).gather(0, labels)

    def _evidence(self, census: Census, taken: Taken, progress: Tensor) -> tuple[Tensor, Tensor]:
        return census.evidence(taken.on_trial, taken.sizes)

    def _rarity(self, census: Census, sizes: Sizes, progress: Tensor) -> Tensor:
        return census.rarity(progress, sizes)


def probability_wrong(margins: Tensor, strength: Tensor, share: Tensor) -> Tensor:
    """The probability that labels are wrong; without evidence that any is, it is improbable beforehand.

    With evidence of two groups they lie apart, so that a margin says more: its slope doubles.
    """
    return (torch.logit((strength * share).clamp(min=_LEAST)) - SLOPE * (1 + strength) * margins).sigmoid()
