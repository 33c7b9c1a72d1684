"""The duplicate networks' reward (DNR)."""

from collections.abc import Callable
from math import exp

import torch
from torch import Tensor

from autoweight.config import Reward, SearchConfig
from autoweight.workers.base import StageOutcome


def reward_scale(config: SearchConfig, progress: float) -> float:
    """Equation 9: `r_w = exp(k * ce / ne) * s`, with `progress` for the share of epochs done."""
    return exp(config.reward_growth * progress) * config.reward_gain


def reward(config: SearchConfig, outcome: StageOutcome, progress: float) -> Tensor:
    """Equation 8: `r_w * (acc_weighted - acc_reference)`, `[workers]`."""
    return reward_scale(config, progress) * _MEASURES[config.reward](outcome)


def episode_returns(config: SearchConfig, rewards: list[Tensor], num_stages: int) -> Tensor:
    """The rewards of an episode's stages, each `[workers]`, as one: the mean of the differences weighted by r_w."""
    scales = [reward_scale(config, (stage + 1) / num_stages) for stage in range(len(rewards))]
    return torch.stack(rewards).sum(dim=0) / sum(scales)


_MEASURES: dict[Reward, Callable[[StageOutcome], Tensor]] = {
    "difference": lambda outcome: outcome.score - outcome.reference_score,
    "plain": lambda outcome: outcome.score,
}
