"""elr: what the network said of a sample early on is held against what it is about to memorise.

Idea    Every sample has a target, the running mean of what the network said of it. To cross-entropy comes the term
        `strength * log(1 - <p, target>)`, which is lowest where predictions agree with the target: it outweighs a wrong
        label that contradicts what was learned before.
Source  Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020; without "+".
Told    Nothing.
Knobs   strength: lambda, 3 in the source for CIFAR-10 and 7 for CIFAR-100; keep: how much of the mean a visit keeps.
Cost    A few operations on a batch's probabilities, and one number a sample and class.

The source clips probabilities to [0.0001, 0.9999], and so does this: the logarithm stays finite.
"""

import torch
from torch import Tensor

from autoweight.data.loader import Batch
from autoweight.errors import require
from autoweight.methods.method import Method, Setup

_LEAST = 1e-4


class ELR(Method):
    """Cross-entropy, and a pull towards the running mean of the network's own predictions."""

    capturable = True

    def __init__(self, strength: float = 3.0, keep: float = 0.7) -> None:
        require(strength >= 0, f"elr's strength must be at least 0, but is {strength}.")
        require(0 <= keep < 1, f"elr's keep goes from 0 to below 1, but is {keep}.")
        self.strength, self.keep = strength, keep

    def begin(self, setup: Setup) -> None:
        """Make room for a target of each sample, all zeros."""
        super().begin(setup)
        self.targets = torch.zeros(setup.num_samples, setup.num_classes, device=setup.device)

    def tensors(self) -> dict[str, Tensor]:
        """The targets, `[samples, classes]`."""
        return {"targets": self.targets}

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """Move the batch's targets, and take one step on its loss with the term."""
        setup = self.setup
        outputs = setup.forward(self.networks[0], batch.inputs)
        losses = setup.losses(outputs, batch.labels)
        work = setup.fast(regularised) if isinstance(progress, Tensor) else regularised
        terms, moved = work(outputs, self.targets[batch.indices], self.keep)
        self.targets[batch.indices] = moved
        self.descend(setup.mean(losses, None, batch.labels) + self.strength * terms.mean())
        return setup.mean(losses.detach(), None, batch.labels)


def regularised(outputs: Tensor, targets: Tensor, keep: float) -> tuple[Tensor, Tensor]:
    """Each sample's `log(1 - <p, target>)`, with the target that this visit has moved, and that target."""
    probabilities = outputs.float().softmax(dim=-1)[:, : targets.shape[1]].clamp(_LEAST, 1 - _LEAST)
    said = probabilities.detach()
    moved = keep * targets + (1 - keep) * said / said.sum(dim=-1, keepdim=True)
    return (1 - (probabilities * moved).sum(dim=-1)).clamp(min=_LEAST).log(), moved
