"""Looking ahead: losses at other parameters than a network has, and along a direction, without a trace in the network.

The network is used as it is, in training: a batch's own statistics count, and gradients flow through them. What it
would write into its buffers, such as BatchNorm's running statistics, goes into copies.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp

from autoweight.data.inputs import Inputs, arguments, outputs_of
from autoweight.methods.method import trainable

Losses = Callable[[Tensor, Tensor], Tensor]


@cache
def ready_forward_mode() -> None:
    """Have torch load what forward-mode differentiation needs, at whose first use it warns of code of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        jvp(torch.sin, (torch.zeros(()),), (torch.zeros(()),))


def losses_at(model: nn.Module, inputs: Inputs, labels: Tensor, params: Sequence[Tensor], losses: Losses) -> Tensor:
    """Every sample's loss, were these the network's trainable parameters."""
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    args, named = arguments(inputs)
    answer = functional_call(model, dict(zip(names, params, strict=True)) | buffers, args, named)
    return losses(outputs_of(answer), labels)


@torch.no_grad()
def slopes_along(
    model: nn.Module, inputs: Inputs, labels: Tensor, direction: Sequence[Tensor], losses: Losses
) -> Tensor:
    """The derivative of every sample's loss along a direction: the dot product of it with each sample's gradient.

    Forward-mode differentiation gives all of them in one pass, at about two forward passes' cost.
    """
    here = tuple(parameter.detach() for parameter in trainable(model))
    return jvp(lambda *params: losses_at(model, inputs, labels, params, losses), here, tuple(direction))[1]
