"""The weight function K(f, theta) (equation 3)."""

from torch import Tensor


def weigh(features: Tensor, strategy_params: Tensor) -> Tensor:
    """Equation 3: `1 + tanh(theta . f + b)`, in [0, 2], for `features` `[batch, F]` and `strategy_params` `[F + 1]`.

    The last parameter is the bias b. All-zero parameters give weights of exactly 1.
    """
    theta, bias = strategy_params[:-1], strategy_params[-1]
    return 1 + (features @ theta + bias).tanh()
