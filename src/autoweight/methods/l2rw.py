"""l2rw: samples count by how much a step on them would help trusted ones.

Idea    At every step, what weights would have lowered the loss of a batch of trusted samples? Look ahead with all
        weights at 0: the weight of a sample is the slope of the trusted loss along a step on that sample alone, with
        its sign turned, nothing where it would do harm, and the batch's weights are normalised to one sum.
Source  Ren et al., Learning to reweight examples for robust deep learning, ICML 2018.
Told    Trusted samples, at most 1,000.
Knobs   trusted: how many samples of the validation set it may learn from, 0 for all; trusted_batch: how many of them a
        step takes, 0 for the training's batch size; total: what a batch's weights sum to, 1 in the source. Few samples
        share it, so that a learning rate that suits plain training can be too high; less than 1 lowers it.
Cost    A forward and a backward pass for the trusted batch, and a forward-mode pass: about 3 plain steps, by processor
        time 2.7 to 3.3 (docs/rivals.md). In bfloat16 a forward pass stands for the forward-mode one.

With all weights at 0 the look-ahead ends where it began. So the slope is the dot product of two gradients, that of the
trusted batch and that of the sample, and forward-mode differentiation gives it for the whole batch in one pass; the
size of the look-ahead's step cancels. No second derivative is needed, and the weights are the published ones.
"""

import torch
from torch import Tensor

from autoweight.data.loader import Batch
from autoweight.errors import require
from autoweight.methods.look_ahead import LookAhead


class L2RW(LookAhead):
    """Weights from the agreement of each sample's gradient with that of trusted ones."""

    def __init__(self, trusted: int = 1000, trusted_batch: int = 0, total: float = 1.0) -> None:
        super().__init__("l2rw", trusted, trusted_batch)
        require(total > 0, f"l2rw.total is the sum of a batch's weights, above 0, but is {total}.")
        self.total = total

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """Look ahead, weigh, and take one optimiser step on the weighted loss."""
        (model,), setup = self.networks, self.setup
        _, losses = setup.look(model, batch.inputs, batch.labels)
        slopes = setup.slopes(model, batch.inputs, batch.labels, self.trusted_gradient(trusted), losses.detach())
        weights = agreement_weights(slopes, self.total)
        self.note(batch, losses.detach(), weights * len(weights))  # as others count, in which 1 is a plain step's
        self.descend((losses * weights).sum())
        return setup.mean(losses.detach(), None, batch.labels)


def agreement_weights(slopes: Tensor, total: float = 1.0) -> Tensor:
    """Weights of this sum, in proportion to positive slopes; all 0 where no step would help."""
    helpful = slopes.clamp(min=0)
    return total * helpful / helpful.sum().clamp(min=torch.finfo(helpful.dtype).tiny)
