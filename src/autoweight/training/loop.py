"""Train one network from start to end, stage by stage, so that a kill costs at most the running stage."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from autoweight.checkpoint import CheckpointFile
from autoweight.config import Augmentation, TrainingConfig
from autoweight.data import Samples, check_training_data
from autoweight.data.loader import Loader, mix
from autoweight.errors import RunError
from autoweight.strategy import Weigher
from autoweight.strategy.stages import stage_starts
from autoweight.training.evaluate import accuracy
from autoweight.training.schedule import learning_rate_at
from autoweight.training.step import make_optimizer, set_learning_rate, train_step


@dataclass(frozen=True)
class StageReport:
    """What a finished stage of a training came to."""

    stage: int
    train_loss: float
    val_accuracy: float
    seconds: float
    """Time spent on training so far, over all sittings."""


def train(
    model: nn.Module,
    train_data: Samples,
    val_data: Samples,
    weigher: Weigher | None,
    config: TrainingConfig,
    seed: int,
    *,
    augmentation: Augmentation = "none",
    checkpoint: CheckpointFile | None = None,
    on_stage: Callable[[StageReport], Any] = lambda report: None,
) -> float:
    """Train `model` in place; with a `checkpoint`, go on from where it stands. Returns the seconds spent training.

    `weigher` None trains without weights. The batches, and what is random inside the network, depend on the seed and
    the step alone, so that a training that was killed and goes on ends with the same parameters.
    """
    check_training_data(train_data, val_data, config.batch_size)
    loader = Loader(train_data, config.batch_size, seed, augmentation)
    total_steps = loader.steps_per_epoch * config.epochs
    starts = stage_starts(total_steps, config.num_stages)
    optimizer = make_optimizer(model, config.learning_rate, config.momentum, config.weight_decay)
    first_stage, seconds = _restore(checkpoint, model, optimizer, weigher)
    model.train()
    for stage in range(first_stage, config.num_stages):
        began = time.perf_counter()
        loss_sum = torch.zeros((), device=train_data.labels.device)
        first_bad_step = torch.full_like(loss_sum, -1, dtype=torch.long)
        steps = range(starts[stage], starts[stage + 1])
        for step, batch in zip(steps, loader.batches(steps.start, steps.stop), strict=True):
            torch.manual_seed(mix(seed, step, 2))  # dropout masks and the like
            progress = step / total_steps
            set_learning_rate(optimizer, learning_rate_at(config, progress))
            loss = train_step(model, optimizer, batch, weigher, progress, config.reduction)
            loss_sum += loss
            first_bad_step = _note_bad_step(first_bad_step, loss, step)
        _stop_if_bad(int(first_bad_step))
        seconds += time.perf_counter() - began
        val_accuracy = accuracy(model, val_data)
        if weigher is not None:
            weigher.observe_accuracy(val_accuracy)
        on_stage(StageReport(stage, float(loss_sum) / len(steps), val_accuracy, seconds))
        if checkpoint is not None:
            checkpoint.save(_state(stage + 1, seconds, model, optimizer, weigher))
    return seconds


def _note_bad_step(first_bad_step: Tensor, loss: Tensor, step: int) -> Tensor:
    """Remember on the device the first step whose loss is not finite: looking at every step would stall a GPU."""
    newly_bad = ~loss.isfinite() & (first_bad_step < 0)
    return torch.where(newly_bad, torch.full_like(first_bad_step, step), first_bad_step)


def _stop_if_bad(first_bad_step: int) -> None:
    if first_bad_step >= 0:
        raise RunError(
            f"the loss turned NaN or infinite at step {first_bad_step}: lower the learning rate, or look at the data. "
            "What was saved before is kept."
        )


def _state(
    stage: int, seconds: float, model: nn.Module, optimizer: torch.optim.Optimizer, weigher: Weigher | None
) -> dict[str, Any]:
    return {
        "stage": stage,
        "seconds": seconds,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "weigher": {} if weigher is None else weigher.state_dict(),
    }


def _restore(
    checkpoint: CheckpointFile | None, model: nn.Module, optimizer: torch.optim.Optimizer, weigher: Weigher | None
) -> tuple[int, float]:
    state = checkpoint.load() if checkpoint is not None else None
    if state is None:
        return 0, 0.0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if weigher is not None:
        weigher.load_state_dict(state["weigher"])
    return state["stage"], state["seconds"]
