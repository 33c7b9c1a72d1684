"""noise: what `auto` does, for those who know that labels are wrong.

Idea    `auto` waits until the training shows that labels are wrong; networks that memorise do not. Those who
        know it beforehand need no evidence: every label that the network, once it knows anything, keeps contradicting
        is taken for wrong. In the middle of a training little knowledge will do: where four labels of five are
        redrawn, there will be no more. Rare classes are left as they are.
Told    That a good part of the labels is wrong; not how many, nor which. Where they are right, it does harm.
Found   On the tasks that `auto` was found on: it is `auto` without its condition, so without sparing, or a return to
        lower margins when that is met. Its late threshold of knowledge is read off a training on CIFAR-10 with 80 %
        redrawn, and does no harm on those tasks.
Judged  On the families kept aside (docs/auto.md).
Knobs   None.
Cost    That of `auto`.
"""

import torch
from torch import Tensor

from autoweight.strategy.auto import Auto
from autoweight.strategy.census import Census, Evidence, Sizes
from autoweight.strategy.memory import Memory


class Noise(Auto):
    """Weighs by the probability that a label is right, taking for granted that many are wrong."""

    def _evidence(self, memory: Memory, sizes: Sizes, progress: Tensor) -> Evidence:
        return memory.census.assumed(progress, sizes.seen)

    def _rarity(self, census: Census, sizes: Sizes, progress: Tensor) -> Tensor:
        return torch.ones_like(census.class_weights)
