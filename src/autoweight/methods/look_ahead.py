"""What methods share that weigh samples by what a step on them would do to trusted ones."""

from collections.abc import Sequence

import torch
from torch import Tensor

from autoweight.config import TaskName
from autoweight.data.loader import Batch
from autoweight.errors import require
from autoweight.methods.method import Method, trainable


class LookAhead(Method):
    """Has a batch of trusted samples at every step, and may ask for their gradient anywhere."""

    capturable = True
    uses_trusted = True
    takes_slopes = True
    tasks: tuple[TaskName, ...] = ("classification", "multilabel", "regression", "huber")

    def __init__(self, name: str, trusted: int, trusted_batch: int) -> None:
        require(trusted >= 0, f"{name}.trusted is a number of samples, or 0 for all, but is {trusted}.")
        require(
            trusted_batch >= 0,
            f"{name}.trusted_batch is a number of samples, or 0 for the training's batch size, but is {trusted_batch}.",
        )
        self.trusted_samples, self.trusted_batch = trusted, trusted_batch

    def trusted_gradient(self, trusted: Batch | None, params: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
        """The gradient of the trusted samples' mean loss, where the network is or were these its parameters."""
        assert trusted is not None, "a method that looks ahead needs trusted samples"
        model = self.networks[0]
        at = trainable(model) if params is None else [param.detach().requires_grad_() for param in params]
        losses = self.setup.ahead(model, trusted.inputs, trusted.labels, at)
        return torch.autograd.grad(self.setup.mean(losses, None, trusted.labels), at, materialize_grads=True)
