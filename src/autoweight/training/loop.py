"""Train networks from start to end, stage by stage, so that a kill costs at most the running stage."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import nn

from autoweight.checkpoint import CheckpointFile
from autoweight.config import Augmentation, TrainingConfig
from autoweight.data import Samples, check_training_data
from autoweight.data.loader import Loader
from autoweight.errors import first_line, require
from autoweight.strategy import Weigher
from autoweight.strategy.stages import stage_starts
from autoweight.training.captured import CapturedSteps
from autoweight.training.check import check_buffers
from autoweight.training.evaluate import accuracy
from autoweight.training.steps import PlainSteps, Slot, Steps


@dataclass(frozen=True)
class StageReport:
    """What a finished stage of a training came to."""

    stage: int
    train_loss: float
    val_accuracy: float
    seconds: float
    """Time spent on training so far, over all sittings; trainings side by side share it evenly."""


@dataclass
class Training:
    """One network's training: what to train on what, and where to report and save."""

    model: nn.Module
    train_data: Samples
    val_data: Samples
    weigher: Weigher | None
    seed: int
    augmentation: Augmentation = "none"
    on_stage: Callable[[StageReport], Any] = lambda report: None
    name: str = "training"


class Outcome(NamedTuple):
    """What trainings side by side came to."""

    seconds: float
    """Time spent on each, over all sittings."""
    failures: list[str]
    """A sentence for each; empty where its loss stayed finite."""


def train(trainings: Sequence[Training], config: TrainingConfig, checkpoint: CheckpointFile | None = None) -> Outcome:
    """Train the networks in place, side by side; with a checkpoint, go on from there.

    A training without a weigher is not weighted at all. The batches, and what is random inside a network, depend on
    its seed and the stage alone, so that a training that was killed and goes on ends with the same parameters. The
    networks need the same number of steps. One whose loss turns NaN reports no more; the others go on without it.
    """
    slots = make_slots(trainings, config)
    check_side_by_side(slot.loader.steps_per_epoch for slot in slots)
    total_steps = slots[0].loader.steps_per_epoch * config.epochs
    starts = stage_starts(total_steps, config.num_stages)
    first_stage, seconds, failures = _restore(checkpoint, slots)
    steps = _make_steps(slots, config, total_steps)
    for stage in range(first_stage, config.num_stages):
        began = time.perf_counter()
        losses, first_bad_steps = steps.run(starts[stage], starts[stage + 1])
        seconds += (time.perf_counter() - began) / len(trainings)
        bad_steps = first_bad_steps.tolist()
        failures = [why or _failure(*of) for why, *of in zip(failures, trainings, bad_steps, strict=True)]
        if all(failures):
            break
        for training, loss, why in zip(trainings, losses.tolist(), failures, strict=True):
            val_accuracy = accuracy(training.model, training.val_data, config.precision)
            if training.weigher is not None:
                training.weigher.observe_accuracy(val_accuracy)
            if why:
                continue
            training.on_stage(StageReport(stage, loss, val_accuracy, seconds))
        if checkpoint is not None:
            state = {"stage": stage + 1, "seconds": seconds, "failures": failures}
            checkpoint.save(state | {"slots": [slot.state_dict() for slot in slots]})
    return Outcome(seconds, failures)


def check_side_by_side(epoch_steps: Iterable[int]) -> None:
    """Raise `UserError` unless trainings have as many steps an epoch each."""
    require(
        len(set(epoch_steps)) == 1, "trainings side by side need as many steps each: run them with --side-by-side 1."
    )


def make_slots(trainings: Sequence[Training], config: TrainingConfig) -> list[Slot]:
    """Trainings on the same data with the same seed share a loader, which then makes each batch once."""
    loaders: dict[tuple[int, int, Augmentation], Loader] = {}
    slots = []
    for training in trainings:
        check_training_data(training.train_data, training.val_data, config.batch_size)
        key = (id(training.train_data), training.seed, training.augmentation)
        if key not in loaders:
            loaders[key] = Loader(training.train_data, config.batch_size, training.seed, training.augmentation)
        slots.append(Slot(training.model, loaders[key], training.weigher, config))
    return slots


def _make_steps(slots: Sequence[Slot], config: TrainingConfig, total_steps: int) -> Steps:
    """Captured steps on a GPU where weighers and networks allow it, else plain ones."""
    if not slots[0].loader.samples.labels.is_cuda:
        return PlainSteps(slots, config, total_steps)
    if not all(slot.weigher is None or slot.weigher.capturable for slot in slots):
        return PlainSteps(slots, config, total_steps)
    try:
        for slot in slots:
            check_buffers(slot.model, slot.loader.batch(slot.loader.plan(0).row(0)).inputs)
        return CapturedSteps(slots, config, total_steps)
    except RuntimeError as error:
        why = first_line(error)
        warnings.warn(f"the training cannot be captured in a CUDA graph, so it runs plainly: {why}", stacklevel=3)
        return PlainSteps(slots, config, total_steps)


def _failure(training: Training, first_bad_step: int) -> str:
    if first_bad_step < 0:
        return ""
    what = f"the loss turned NaN or infinite at step {first_bad_step}"
    return f"{training.name}: {what}: lower the learning rate, or look at the data."


def _restore(checkpoint: CheckpointFile | None, slots: Sequence[Slot]) -> tuple[int, float, list[str]]:
    state = checkpoint.load() if checkpoint is not None else None
    if state is None:
        return 0, 0.0, [""] * len(slots)
    for slot, slot_state in zip(slots, state["slots"], strict=True):
        slot.load_state_dict(slot_state)
    return state["stage"], state["seconds"], state.get("failures", [""] * len(slots))
