"""gce: samples count by how likely the network finds their label.

Idea    The loss `(1 - p_y ** q) / q` lies between cross-entropy (q near 0) and the mean absolute error (q 1), which
        wrong labels hardly move. Its gradient is that of cross-entropy times `p_y ** q`, which is so the weight.
Source  Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels,
        NeurIPS 2018; their first loss, without truncation.
Told    Nothing.
Knobs   q: 0 is plain training, 0.7 the source's choice.
Cost    One softmax of the logits.
"""

import torch
from torch import Tensor

from autoweight.errors import require, require_numbers
from autoweight.strategy import Weigher, check_batch


class GCE(Weigher):
    """Weights `p_y ** q`."""

    capturable = True
    tasks = ("classification",)

    def __init__(self, q: float = 0.7) -> None:
        require_numbers("gce", q=q)
        require(0 <= q <= 1, f"gce's q goes from 0 to 1, but is {q}.")
        self.q = q

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Near 1 where the network is sure of the label, near 0 where it is sure of another."""
        check_batch(losses, logits, labels)
        log_likelihood = logits.float().log_softmax(dim=-1).gather(-1, labels.long().unsqueeze(-1)).squeeze(-1)
        return (self.q * log_likelihood).exp().to(losses.dtype)
