"""oracle: wrong samples count nothing.

Idea    Knows which labels are true and gives the others weight 0: the ceiling that any weighting can reach on noisy
        labels. Only for experiments in which the noise was put in on purpose; left out where nobody knows.
Told    Which labels are wrong.
Knobs   None.
Cost    One look-up a step.
"""

import torch
from torch import Tensor

from autoweight.errors import UserError, require
from autoweight.strategy import Weigher, check_batch
from autoweight.strategy.weigher import tensor_of


class Oracle(Weigher):
    """Weights of 1 where `clean[index]`, else 0."""

    capturable = True
    tasks = ("classification",)

    def __init__(self, clean: Tensor) -> None:
        wanted = "oracle needs one true or false for every training sample."
        clean = tensor_of(clean, wanted)
        require(clean.dim() == 1 and len(clean) > 0, wanted)
        self.clean = clean.bool()

    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """1 for samples whose label is true, 0 for the others."""
        check_batch(losses, logits, labels)
        if indices is None:
            raise UserError("oracle knows samples by their position: pass indices= to weigh.")
        if indices.shape != losses.shape:
            raise UserError(
                f"oracle needs one index a sample, {len(losses)}, but their shape is {tuple(indices.shape)}."
            )
        if indices.device.type == "cpu" and not torch.compiler.is_compiling():
            lowest, highest = int(indices.min()), int(indices.max())
            if lowest < 0 or highest >= len(self.clean):
                raise UserError(
                    f"indices go from {lowest} to {highest}, but the oracle knows {len(self.clean)} samples."
                )
        if self.clean.device != losses.device:
            self.clean = self.clean.to(losses.device)
        return self.clean[indices].to(losses.dtype)
