"""The weight function K(f, theta) (equation 3)."""

import torch
from torch import Tensor


def weigh(features: Tensor, strategy_params: Tensor, normalised: bool = False) -> Tensor:
    """Equation 3: `1 + tanh(theta . f + b)`, in [0, 2], for `features` `[batch, F]` and `strategy_params` `[F + 1]`.

    The last parameter is the bias b. `normalised` weights are scaled to a mean of 1 over the batch, so that they choose
    among its samples without changing the size of a step; if all are 0, they stay so. All-zero parameters give weights
    of exactly 1 either way.
    """
    theta, bias = strategy_params[:-1], strategy_params[-1]
    weights = 1 + (features @ theta + bias).tanh()
    if not normalised:
        return weights
    return weights * weights.shape[0] / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
