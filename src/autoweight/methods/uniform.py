"""uniform: every sample counts the same.

Idea    Plain training; what every other method is compared with.
Told    Nothing.
Knobs   None.
Cost    None: all-ones weights train to the same bits as no weights at all.
"""

import torch
from torch import Tensor

from autoweight.strategy import Weigher
from autoweight.strategy.view import view_of


class Uniform(Weigher):
    """Weights of 1."""

    capturable = True

    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """All ones."""
        view_of(losses, logits, labels)  # says so where the batch of any task is not sound
        return torch.ones_like(losses, requires_grad=False)
