"""auto: the strategy that comes with the package, for every training.

Idea    A wrong label is one that the network, whatever it knows by now, keeps contradicting. So each sample's margin is
        remembered, and its weight is the probability that its label is right, `sigmoid(slope m - logit(prior))`. The
        prior is the share of contradicted samples among those that the network takes for the same class, counted in
        the training itself, times the evidence that wrong labels make it at all: margins fall into two groups,
        contradiction is about as firm as confirmation, the network does better than chance, and a few contradicted
        samples that are left out, on trial, stay contradicted. Hard problems do not show the first, slowly learned ones
        not the last, so that their weights stay at 1. Where a network memorises too fast for two groups, a control
        group shows that instead. Of large sets hard samples are spared in the first half of the training, while nothing
        is memorised, and all after it where the problem is hard. Weights have a mean of 1 within each class, of large
        sets halfway. Rare classes are raised where the imbalance is so large that it looks made.
Told    Nothing: no search, no trusted samples, no noise rate. It needs the samples' indices.
Knobs   None.
Cost    Element-wise work on one batch of logits, one to two milliseconds on a CPU, a quarter of that in plain loops
        over 10,000 samples and more; 72 bytes a sample and four a pair of classes.
"""

from copy import deepcopy

import torch
from torch import Tensor

from autoweight.errors import UserError
from autoweight.strategy.belief import doubt
from autoweight.strategy.census import Census, Evidence, Sizes
from autoweight.strategy.counting import on_device
from autoweight.strategy.memory import RATE, Memory
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.stages import check_progress
from autoweight.strategy.view import View, view_of
from autoweight.strategy.visits import Look
from autoweight.strategy.waiting import Verdict


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
        view = view_of(losses, logits, labels)
        memory, places = self._recall(view, losses, indices)
        weights = self._weigh(memory, places, view, progress)
        return weights.where(view.valid, 0).view_as(losses).to(losses.dtype)

    def _weigh(self, memory: Memory, places: Tensor, view: View, progress: float | Tensor) -> Tensor:
        """Visit samples, now or, of a large set, together with others; in captured steps if the host comes after."""
        labels, valid = view.labels.long().clamp(min=0), view.valid
        look = memory.look(view.logits, labels)
        captured = isinstance(progress, Tensor) or torch.compiler.is_compiling()
        if memory.may_wait(places.shape[0]) and (self.driven or not captured):
            verdict = memory.waiting.put(look, labels, places, valid, progress)
            if not captured:
                self.after_replay(places.shape[0])
            return verdict.weights(look.margins())
        if not captured:
            self.settle()  # batches were smaller before, perhaps
        done = on_device(progress, labels.device)
        right, sizes, _ = self._visit(memory, places, look, labels, valid, done)
        weights = right / memory.class_means().gather(0, labels)
        return weights * self._rarity(memory.census, sizes, done).gather(0, labels)

    def after_replay(self, num_labels: int) -> None:
        """Remember the visits that wait once they are enough, or where no more will, as after a smaller batch."""
        memory = self.memory
        if memory is None:
            return
        if not memory.may_wait(num_labels) or memory.waiting.due(num_labels, memory.num_samples):
            self.settle()

    def settled(self) -> "Auto":
        """Itself where no visit waits, or else a copy that has remembered all."""
        if self.memory is None or not self.memory.waiting.count:
            return self
        own = deepcopy(self)
        own.settle()
        return own

    @torch.no_grad()
    def settle(self) -> None:
        """Remember the visits that wait, and keep what comes of them for the next."""
        memory = self.memory
        if memory is None or not memory.waiting.count:
            return
        progress = memory.waiting.progress
        for places, look, labels in memory.waiting.taken():
            everyone = torch.ones_like(labels, dtype=torch.bool)
            _, _, evidence = self._visit(memory, places, look, labels, everyone, progress)
        for known in memory.known():
            memory.waiting.judge(known, self._verdict(memory, known, evidence, progress))

    def _verdict(self, memory: Memory, places: Tensor, evidence: Evidence, progress: Tensor) -> Verdict:
        """What is made of samples by all that is remembered now."""
        labels, taken = memory.remembered(places)
        wrong, slope = doubt(evidence, taken)
        right = 1 - wrong.sigmoid()
        spared = memory.still_spared(right, taken, labels, places, progress)
        scale = self._rarity(memory.census, taken.sizes, progress) / memory.class_means()
        at_zero = -wrong - slope * RATE * memory.columns["margin"][places]
        return Verdict(at_zero, slope * RATE, spared.where(spared > right, 0), scale.gather(0, labels))

    def _visit(
        self, memory: Memory, places: Tensor, look: Look, labels: Tensor, valid: Tensor, progress: Tensor
    ) -> tuple[Tensor, Sizes, Evidence]:
        """Visit samples, and give the probabilities that their labels are right, and what these come from."""
        self._testify(memory, places, valid)
        margins = memory.margins(look, labels, places, torch.full((), RATE, device=labels.device), valid)
        taken = memory.relative(margins, labels, places, valid)
        evidence = self._evidence(memory, taken.sizes, progress)
        wrong, _ = doubt(evidence, taken)
        right = memory.spared(1 - wrong.sigmoid(), taken, labels, places, valid, progress)
        memory.census.follow_weights(right, labels, valid)
        return right, taken.sizes, evidence

    def _evidence(self, memory: Memory, sizes: Sizes, progress: Tensor) -> Evidence:
        return memory.evidence(sizes, progress)

    def _rarity(self, census: Census, sizes: Sizes, progress: Tensor) -> Tensor:
        return census.rarity(progress, sizes)
