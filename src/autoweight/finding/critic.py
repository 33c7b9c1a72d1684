"""The critic Q(s, theta): several at once, as one batched computation."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from autoweight.finding.actor import StageEmbedding


class Critics(nn.Module):
    """`num_critics` estimates of what parameters are worth in a state, `[critics, n]`, over one stage embedding."""

    bounds: Tensor

    def __init__(
        self, num_stages: int, bounds: Tensor, hidden: Sequence[int], embedding_size: int, num_critics: int
    ) -> None:
        super().__init__()
        self.embed = StageEmbedding(num_stages, embedding_size)
        sizes = [self.embed.output_size + len(bounds), *hidden, 1]
        critics = [[nn.Linear(a, b) for a, b in itertools.pairwise(sizes)] for _ in range(num_critics)]
        layers = list(zip(*critics, strict=True))  # of each, every critic's own, with torch's usual start
        self.weights = nn.ParameterList(torch.stack([own.weight.detach().T for own in layer]) for layer in layers)
        self.biases = nn.ParameterList(torch.stack([own.bias.detach() for own in layer]) for layer in layers)
        self.register_buffer("bounds", bounds)

    def forward(self, state: Tensor, strategy_params: Tensor) -> Tensor:
        """Every critic's value of `strategy_params` `[n, P]` in `state` `[n, 3]`."""
        hidden = torch.cat([self.embed(state), strategy_params / self.bounds], dim=-1)
        hidden = hidden.expand(len(self.weights[0]), *hidden.shape)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias.unsqueeze(1), hidden, weight)
            hidden = hidden.relu() if layer < last else hidden
        return hidden.squeeze(-1)
