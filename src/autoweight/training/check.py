"""Whether a network fits the data, and fast ways to train it, found out before anything else is done."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from autoweight.data.dataset import Samples
from autoweight.errors import UserError, first_line, require
from autoweight.training.device import isolated


def check_network(make_model: Callable[[], nn.Module], train: Samples, batch_size: int, device: str) -> None:
    """Raise `UserError` unless fresh networks come out, which turn a few samples into as many rows of logits."""
    require(
        not isinstance(make_model, nn.Module) and callable(make_model),
        "make_model is a callable that returns a fresh network, such as lambda: Net(), not the network itself.",
    )
    with isolated(device):
        try:
            model = make_model()
        except UserError:
            raise  # the name of a network, for one
        except Exception as error:  # whatever it raises
            raise UserError(f"make_model() does not build a network: {first_line(error)}.") from error
        require(
            isinstance(model, nn.Module), f"make_model must return an nn.Module, but returned {type(model).__name__}."
        )
        require(make_model() is not model, "make_model must build a fresh network at every call, not return one again.")
        require(
            not any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()),
            "the network has lazy layers: give them their sizes, so that all networks can start alike.",
        )
        require(
            any(parameter.requires_grad for parameter in model.parameters()),
            "the network has no parameters that can be trained: unfreeze some.",
        )
        inputs = train.inputs[: min(2, batch_size)].to(device)
        try:
            with torch.no_grad():
                logits = model.to(device).train()(inputs)
        except Exception as error:  # whatever a network raises about its inputs
            about = f"{inputs.dtype} inputs of shape {tuple(inputs.shape[1:])}, {len(inputs)} at a time"
            raise UserError(f"the network cannot take {about}: {first_line(error)}.") from error
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    require(
        isinstance(shape, tuple) and len(shape) == 2 and shape[0] == len(inputs) and shape[1] >= train.num_classes,
        f"the network must return logits [batch, classes] for {train.num_classes} classes, but for {len(inputs)} "
        f"samples gives {shape}.",
    )


@torch.no_grad()
def check_buffers(model: nn.Module, inputs: Tensor) -> None:
    """Raise `RuntimeError` where a network in training puts a new tensor in a buffer's place.

    What was stacked or captured would go on with the old one, and nobody would notice.
    """
    tried = copy.deepcopy(model).train()
    before = list(tried.buffers())
    tried(inputs)
    if [*map(id, before)] != [*map(id, tried.buffers())]:
        raise RuntimeError("it replaces a buffer, which has to be changed in place")
