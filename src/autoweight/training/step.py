"""One step of weighted training."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from autoweight.config import Reduction
from autoweight.data.loader import Batch
from autoweight.strategy import Weigher, weighted_mean


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    weigher: Weigher | None,
    progress: float,
    reduction: Reduction = "mean",
) -> Tensor:
    """Equation 7: one optimiser step on a batch's weighted loss; returns the unweighted mean loss, detached."""
    logits = model(batch.inputs)
    losses = cross_entropy(logits, batch.labels, reduction="none")
    if weigher is None:
        loss = losses.mean()
    else:
        weights = weigher.weigh(losses, logits, batch.labels, progress=progress, indices=batch.indices)
        loss = weighted_mean(losses, weights, reduction)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return losses.detach().mean()


def make_optimizer(model: nn.Module, learning_rate: float, momentum: float, weight_decay: float) -> torch.optim.SGD:
    """SGD with momentum and decay, as everywhere in this project."""
    return torch.optim.SGD(model.parameters(), learning_rate, momentum, weight_decay=weight_decay)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Change the learning rate of all parameters."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
