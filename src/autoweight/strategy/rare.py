"""rare: what `auto` does about rare classes, for those who know that they are too rare.

Idea    Each class counts by the inverse root of its frequency, and by the whole inverse once seven to eight tenths of
        the training are done, however small the imbalance is: `auto` takes a small one for natural. Labels are taken
        for right.
Told    That classes are rarer in training than they should be. Where the test set is as imbalanced, it does harm.
Found   On the tasks that `auto` was found on: it is `auto` without its condition, and adds no number of its own.
Judged  On the families kept aside (docs/auto.md).
Knobs   None.
Cost    That of `auto`. Indices have to be given: classes are counted by them.
"""

import torch
from torch import Tensor

from autoweight.strategy.auto import Auto
from autoweight.strategy.census import Census, Evidence, Sizes
from autoweight.strategy.memory import Memory


class Rare(Auto):
    """Raises rare classes, taking for granted that they should not be rare."""

    def _evidence(self, memory: Memory, sizes: Sizes, progress: Tensor) -> Evidence:
        none = torch.zeros_like(progress)
        return Evidence(none, none, torch.zeros_like(memory.census.class_weights), none)

    def _rarity(self, census: Census, sizes: Sizes, progress: Tensor) -> Tensor:
        return census.rarity(progress, sizes, made=True)
