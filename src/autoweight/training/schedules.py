"""The learning rate along a training."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from math import cos, isfinite, pi

from autoweight.config import Schedule, TrainingConfig
from autoweight.config.training import PAPER_DROPS, PAPER_STAGES
from autoweight.errors import UserError, first_line
from autoweight.strategy.stages import stage_at


def _stages(config: TrainingConfig, progress: float) -> float:
    stage = stage_at(progress, PAPER_STAGES if config.drop_stages == PAPER_DROPS else config.num_stages)
    return float(0.1 ** sum(stage >= drop for drop in config.drop_stages))


SCHEDULES: dict[Schedule, Callable[[TrainingConfig, float], float]] = {
    "stages": _stages,
    "cosine": lambda config, progress: (1 + cos(pi * progress)) / 2,
    "linear": lambda config, progress: 1 - progress,
    "constant": lambda config, progress: 1.0,
}
"""The share of the initial learning rate when so much of the training is done."""


def learning_rate_at(config: TrainingConfig, step: int, total_steps: int) -> float:
    """The learning rate of a step: the schedule's, after a linear rise over the first `warmup_epochs`."""
    progress = step / total_steps
    if isinstance(config.schedule, str):
        share = SCHEDULES[config.schedule](config, progress)
    else:
        share = config.schedule(progress)
    warmup_steps = config.warmup_epochs / config.epochs * total_steps
    if step < warmup_steps:
        share *= min((step + 1) / warmup_steps, 1.0)
    return config.learning_rate * share


def settings_and_rates(config: TrainingConfig) -> tuple[TrainingConfig, list[float]]:
    """What tells a training from others, in a form that prints alike: of a schedule that is a function, its rates."""
    rates = [learning_rate_at(config, step, 20) for step in range(20)]
    return config if isinstance(config.schedule, str) else replace(config, schedule="constant"), rates


def check_schedule(config: TrainingConfig) -> None:
    """Raise `UserError` where a schedule of the user's own cannot be used; say where drops come too late."""
    late = [drop for drop in config.drop_stages if drop >= config.num_stages]
    if late and config.schedule == "stages" and config.drop_stages != PAPER_DROPS:
        warnings.warn(
            f"the learning rate is to drop at stage {late[0]}, but the last of {config.num_stages} stages, counted "
            f"from 0, is {config.num_stages - 1}: set training.drop_stages.",
            stacklevel=4,
        )
    if isinstance(config.schedule, str):
        return
    for progress in (0.0, 0.5, 0.999):
        try:
            share = float(config.schedule(progress))
        except Exception as error:  # whatever it raises
            raise UserError(f"training.schedule does not answer to {progress}: {first_line(error)}.") from error
        if not (isfinite(share) and share >= 0):
            raise UserError(
                f"training.schedule gives the share of the learning rate, 0 or more, but {share} at {progress}."
            )
