"""The weight function K(f, theta) (equation 3)."""

import torch
from torch import Tensor


def weigh(features: Tensor, strategy_params: Tensor, normalised: bool = False) -> Tensor:
    """Equation 3: `1 + tanh(theta . f + b)`, in [0, 2], for `features` `[batch, F]` and `strategy_params` `[F + 1]`.

    The last parameter is the bias b. `normalised` weights are scaled to a mean of 1 over the batch, so that they choose
    among its samples without changing the size of a step; if all are 0, they stay so. All-zero parameters give weights
    of exactly 1 either way.

    `2 sigmoid(2 x)` is the same as `1 + tanh(x)`, but tells small weights apart, which are all that normalised ones are
    made of. And there is no matrix product, which an autocast of the user's would round to half precision.
    """
    theta, bias = strategy_params[:-1], strategy_params[-1]
    weights = 2 * (2 * ((features * theta).sum(dim=-1) + bias)).sigmoid()
    if not normalised:
        return weights
    return weights * weights.shape[0] / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
