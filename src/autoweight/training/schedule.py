"""The learning rate along a training."""

from math import cos, pi

from autoweight.config import TrainingConfig
from autoweight.strategy.stages import stage_at


def drop_shares(config: TrainingConfig) -> list[float]:
    """The shares of a training after which its learning rate is divided by 10, in order."""
    if config.schedule == "cosine":
        return []
    return sorted(stage / config.num_stages for stage in config.drop_stages if stage < config.num_stages)


def learning_rate_at(config: TrainingConfig, progress: float) -> float:
    """The learning rate when `progress` of the training is done."""
    if config.schedule == "cosine":
        return config.learning_rate * (1 + cos(pi * progress)) / 2
    stage = stage_at(progress, config.num_stages)
    drops = sum(stage >= drop for drop in config.drop_stages)
    return config.learning_rate * 0.1**drops
