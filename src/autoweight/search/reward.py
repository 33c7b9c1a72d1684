"""The duplicate networks' reward (DNR)."""

from math import exp

from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.workers.base import StageOutcome


def reward_scale(config: SearchConfig, progress: float) -> float:
    """Equation 9: `r_w = exp(k * ce / ne) * s`, with `progress` for the share of epochs done."""
    return exp(config.reward_growth * progress) * config.reward_gain


def reward(config: SearchConfig, outcome: StageOutcome, progress: float) -> Tensor:
    """Equation 8: `r_w * (acc_weighted - acc_reference)`, `[workers]`."""
    baseline = outcome.reference_accuracy if config.reward == "difference" else 0.0
    return reward_scale(config, progress) * (outcome.accuracy - baseline)
