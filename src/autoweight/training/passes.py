"""Passes through a network, in a training's precision and compiled where it asks for that: what methods are made of."""

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from autoweight.config import TrainingConfig
from autoweight.data.inputs import Inputs
from autoweight.training.ahead import losses_at, slopes_along, slopes_by_difference
from autoweight.training.precision import autocast, compiled, is_halved
from autoweight.training.task import Task, forward

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Passes:
    """The passes that `Setup` describes (methods/method.py)."""

    def __init__(self, config: TrainingConfig, task: Task, device: torch.device) -> None:
        self.config, self.losses, self.device = config, task.losses, device

    def forward(self, model: nn.Module, inputs: Inputs) -> Tensor:
        """A network's outputs, with their gradient."""
        return self._run(forward, model, inputs)

    def look(self, model: nn.Module, inputs: Inputs, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs without gradient, and losses."""
        return self._run(_outputs_and_losses, model, inputs, labels, self.losses)

    def ahead(self, model: nn.Module, inputs: Inputs, labels: Tensor, params: Sequence[Tensor]) -> Tensor:
        """Losses, were these the network's trainable parameters."""
        return self._run(losses_at, model, inputs, labels, params, self.losses)

    def slopes(
        self, model: nn.Module, inputs: Inputs, labels: Tensor, direction: Sequence[Tensor], here: Tensor
    ) -> Tensor:
        """How fast losses rise along a direction of the trainable parameters, from `here`, the losses as they are."""
        if is_halved(self.config.precision, self.device):
            return self._run(slopes_by_difference, model, inputs, labels, direction, self.losses, here)
        return self._run(slopes_along, model, inputs, labels, direction, self.losses)

    def _run(self, work: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        with autocast(self.config.precision, self.device):
            return compiled(work, self.config, self.device)(*given, **named)


def _outputs_and_losses(
    model: nn.Module, inputs: Inputs, labels: Tensor, losses: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """A forward pass: outputs without gradient, to weigh by, and every sample's loss."""
    outputs = forward(model, inputs)
    return outputs.detach(), losses(outputs, labels)
