"""The learning rate along a training."""

from math import cos, pi

from autoweight.config import TrainingConfig
from autoweight.strategy.stages import stage_at


def learning_rate_at(config: TrainingConfig, progress: float) -> float:
    """The learning rate when `progress` of the training is done."""
    if config.schedule == "cosine":
        return config.learning_rate * (1 + cos(pi * progress)) / 2
    stage = stage_at(progress, config.num_stages)
    drops = sum(stage >= drop for drop in config.drop_stages)
    return config.learning_rate * 0.1**drops
