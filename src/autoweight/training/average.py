"""Averaged weights: an exponential mean of a network's parameters, evaluated beside the network itself."""

import copy

import torch
from torch import Tensor, nn


class Average:
    """The mean over a training's steps, in which a step's share falls by `keep` at each one that follows.

    BatchNorm's running statistics are averaged alike, so that they fit the averaged parameters. The sums begin at zero
    and are divided by what they are made of when they are looked at: so the start leaves no trace.
    """

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.model, self.keep = model, keep
        self.sums = [torch.zeros_like(tensor) for tensor in self._sources()]
        self.steps = torch.zeros((), dtype=torch.long, device=self.sums[0].device)

    @torch.no_grad()
    def update(self) -> None:
        """Take in the network as it is after a step."""
        torch._foreach_lerp_(self.sums, self._sources(), 1 - self.keep)
        self.steps += 1

    def tensors(self) -> dict[str, Tensor]:
        """What `update` changes, by name."""
        return {f"average.{number}": part for number, part in enumerate(self.sums)} | {"average.steps": self.steps}

    @torch.no_grad()
    def network(self) -> nn.Module:
        """A network with the averaged parameters; before the first step, with the network's own."""
        averaged = copy.deepcopy(self.model)
        share = 1 - self.keep ** int(self.steps)
        if share > 0:
            for place, part in zip(_averageable(averaged), self.sums, strict=True):
                place.copy_(part / share)
        return averaged

    def _sources(self) -> list[Tensor]:
        return [tensor.detach() for tensor in _averageable(self.model)]


def _averageable(model: nn.Module) -> list[Tensor]:
    tensors = [*model.parameters(), *model.buffers()]
    return [tensor for tensor in tensors if tensor.is_floating_point()]
