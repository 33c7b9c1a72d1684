"""The actor mu(s) (equation 4): a small network that turns a training's state into strategy parameters."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

_NEAR_THE_WALL = 0.99  # share of the box beyond which an actor could not begin: its tanh has no slope there
_FIRST_ANSWERS = 0.1  # what the last layer is scaled by where there is a `start`, so that first answers are near it


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class StageEmbedding(nn.Module):
    """Turns `[stage, loss, accuracy]` into `[e_T, loss, accuracy]`, with e_T learned from a Gaussian start."""

    def __init__(self, num_stages: int, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_stages, size)
        self.output_size = size + 2

    def forward(self, state: Tensor) -> Tensor:
        """Replace the state's stage index by its embedding."""
        return torch.cat([self.table(state[..., 0].long()), state[..., 1:]], dim=-1)


class Actor(nn.Module):
    """Equation 4: state `[..., 3]` to strategy parameters `[..., P]`, inside the box +-bounds if it is `bounded`.

    Before it has learned anything it answers about `start`, `[P]`.
    """

    bounds: Tensor
    shift: Tensor

    def __init__(
        self,
        num_stages: int,
        bounds: Tensor,
        hidden: Sequence[int],
        embedding_size: int,
        bounded: bool,
        start: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.bounded = bounded
        self.embed = StageEmbedding(num_stages, embedding_size)
        self.layers = mlp([self.embed.output_size, *hidden, len(bounds)])
        self.register_buffer("bounds", bounds)
        start = torch.zeros_like(bounds) if start is None else start
        inside = (start / bounds).clamp(-_NEAR_THE_WALL, _NEAR_THE_WALL)
        self.register_buffer("shift", inside.atanh() if bounded else start)
        if bool(start.any()):
            with torch.no_grad():
                for parameter in self.layers[-1].parameters():
                    parameter.mul_(_FIRST_ANSWERS)

    def forward(self, state: Tensor) -> Tensor:
        """The strategy parameters for a state."""
        raw = self.layers(self.embed(state)) + self.shift
        return self.bounds * raw.tanh() if self.bounded else raw
