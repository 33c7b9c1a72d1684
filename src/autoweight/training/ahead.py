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

_SHARE = 5e-3  # of the parameters' norm


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

    Forward-mode differentiation gives all of them in one pass, at about three forward passes' cost.
    """
    here = tuple(parameter.detach() for parameter in trainable(model))
    return jvp(lambda *params: losses_at(model, inputs, labels, params, losses), here, tuple(direction))[1]


@torch.no_grad()
def slopes_by_difference(
    model: nn.Module, inputs: Inputs, labels: Tensor, direction: Sequence[Tensor], losses: Losses, here: Tensor
) -> Tensor:
    """Nearly the same (docs/rivals.md), by one forward pass a little further along the direction than `here`.

    For half precision, in which BatchNorm and convolutions cannot be differentiated forward together. The step is long
    enough for what it changes to stand out from rounding.
    """
    params = [parameter.detach() for parameter in trainable(model)]
    lengths = [torch.stack(torch._foreach_norm(list(part))).norm() for part in (params, direction)]
    size = _SHARE * lengths[0] / lengths[1].clamp(min=torch.finfo(lengths[1].dtype).tiny)
    there = [param + size * own for param, own in zip(params, direction, strict=True)]
    return (losses_at(model, inputs, labels, there, losses) - here) / size
