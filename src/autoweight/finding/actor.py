"""The actor mu(s) (equation 4): a small network that turns a training's state into strategy parameters."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn


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
    """Equation 4: state `[..., 3]` to strategy parameters `[..., P]`, inside the box +-bounds if it is `bounded`."""

    bounds: Tensor

    def __init__(
        self, num_stages: int, bounds: Tensor, hidden: Sequence[int], embedding_size: int, bounded: bool
    ) -> None:
        super().__init__()
        self.shape = {
            "num_stages": num_stages,
            "hidden": list(hidden),
            "embedding_size": embedding_size,
            "bounded": bounded,
        }
        self.bounded = bounded
        self.embed = StageEmbedding(num_stages, embedding_size)
        self.layers = mlp([self.embed.output_size, *hidden, len(bounds)])
        self.register_buffer("bounds", bounds)

    def forward(self, state: Tensor) -> Tensor:
        """The strategy parameters for a state."""
        raw = self.layers(self.embed(state))
        return self.bounds * raw.tanh() if self.bounded else raw
