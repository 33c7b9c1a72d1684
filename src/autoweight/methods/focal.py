"""focal: easy samples count less.

Idea    Weight `(1 - p_y) ** gamma`, with p_y the softmax probability of the sample's label. Made for rare classes; on
        wrong labels it does harm, since those are the hard ones.
Source  Lin et al., Focal loss for dense object detection, ICCV 2017; softmax in place of their sigmoid.
Told    Nothing.
Knobs   gamma: 0 is plain training, 2 the source's choice.
Cost    One softmax of the logits.

As for every weigher no gradient flows through the weight; the source's loss lets it flow (see docs/deviations.md).
"""

import torch
from torch import Tensor

from autoweight.errors import require, require_numbers
from autoweight.strategy import Weigher, check_batch


class Focal(Weigher):
    """Weights `(1 - p_y) ** gamma`."""

    capturable = True
    tasks = ("classification",)

    def __init__(self, gamma: float = 2.0) -> None:
        require_numbers("focal", gamma=gamma)
        require(gamma >= 0, f"focal's gamma must be at least 0, but is {gamma}.")
        self.gamma = gamma

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Near 0 where the network is sure of the label, near 1 where it is sure of another."""
        check_batch(losses, logits, labels)
        likelihood = logits.float().softmax(dim=-1).gather(-1, labels.long().unsqueeze(-1)).squeeze(-1)
        return ((1 - likelihood).clamp(min=0) ** self.gamma).to(losses.dtype)
