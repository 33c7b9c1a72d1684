"""Train networks from start to end, stage by stage, so that a kill costs at most the running stage."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import Augmentation, TrainingConfig
from autoweight.data import Labelled, check_training_data
from autoweight.data.loader import Loader
from autoweight.data.splits import stratified_split
from autoweight.errors import first_line, require
from autoweight.methods.method import Method
from autoweight.ranks import ALONE, Ranks
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.strategy.stages import stage_starts
from autoweight.training.captured import CapturedSteps
from autoweight.training.checks import check_buffers, trusted_sizes
from autoweight.training.device import few_threads, wait_for
from autoweight.training.evaluate import Judged, judge
from autoweight.training.fingerprint import fingerprint
from autoweight.training.recording import summary
from autoweight.training.schedules import learning_rate_at
from autoweight.training.split import check_split, global_method, make_loader, synchronised
from autoweight.training.steps import PlainSteps, Slot, Steps
from autoweight.training.task import TASKS


@dataclass(frozen=True)
class StageReport:
    """The outcome of one stage of a training."""

    stage: int
    train_loss: float
    val_score: float | None
    """None where there is no validation set."""
    seconds: float
    """Time spent on training so far, over all sittings; trainings side by side share it evenly."""
    learning_rate: float = 0.0
    """That of the stage's last step."""
    weights: dict[str, Any] = field(default_factory=dict)
    """How the weights are spread, where the training is recorded (recording.py)."""


@dataclass
class Training:
    """One network's training: what to train on what, and where to report and save."""

    make_model: Callable[[], nn.Module]
    train_data: Labelled
    val_data: Labelled | None
    method: Method | None
    seed: int
    augmentation: Augmentation = "none"
    test_data: Labelled | None = None
    """Where it is given, the test score of the stage that is best on the validation set is kept too."""
    on_stage: Callable[[StageReport], Any] = lambda report: None
    name: str = "training"
    recorded: bool = False
    """Keep every sample's last weight and loss, and tell of them at each stage; what is trained stays the same."""


class Best(NamedTuple):
    """The stage that was best on the validation set, the first of equals."""

    val_score: float
    test_score: float
    stage: int
    right: Tensor | None = None
    """On which test samples a classifier was right then."""


class Trained(NamedTuple):
    """The outcome of one training."""

    slot: Slot
    failure: str
    """Why it failed, in a sentence; empty where its loss stayed finite."""
    best: Best | None


class Outcome(NamedTuple):
    """The outcome of trainings side by side."""

    seconds: float
    """Time spent on each, over all sittings."""
    trained: list[Trained]


def train(
    trainings: Sequence[Training],
    config: TrainingConfig,
    checkpoint: CheckpointFile | None = None,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Train networks side by side; with a checkpoint, go on from there.

    The start of a network, its batches, and what is random inside it depend on its seed and the step alone, so that a
    training that was killed and goes on ends with the same parameters. Steps that are captured side by side share their
    random numbers, so that dropout, for one, depends there on the other networks too. All need the same number of
    steps. One whose loss turns NaN reports no more; the others go on without it. Several ranks, which all have to call
    this, each take a part of every batch; what they end with is the same on all of them.
    """
    ranks.connect()
    first = trainings[0]
    with few_threads(first.make_model, first.train_data, config.batch_size, len(trainings)):
        slots = make_slots(trainings, config, ranks)
        check_side_by_side(slot.loader.steps_per_epoch for slot in slots)
        return _Run(trainings, slots, config, checkpoint, ranks).finish()


class _Run:
    """Trainings under way: how far they are, and their outcomes so far."""

    def __init__(
        self,
        trainings: Sequence[Training],
        slots: Sequence[Slot],
        config: TrainingConfig,
        checkpoint: CheckpointFile | None,
        ranks: Ranks,
    ) -> None:
        self.trainings, self.slots, self.config, self.checkpoint = trainings, slots, config, checkpoint
        self.ranks = ranks
        self.task = TASKS[config.task]
        self.first_stage, self.seconds = 0, 0.0
        self.failures = [""] * len(slots)
        self.best: list[Best | None] = [None] * len(slots)
        self._restore()

    def finish(self) -> Outcome:
        """Run the stages that are left."""
        total_steps = self.slots[0].loader.steps_per_epoch * self.config.epochs
        starts = stage_starts(total_steps, self.config.num_stages)
        steps = _make_steps(self.slots, self.config, total_steps)
        device = self.slots[0].loader.samples.device
        for stage in range(self.first_stage, self.config.num_stages):
            began = time.perf_counter()
            with self.ranks.meeting():
                losses, bad_steps = steps.run(starts[stage], starts[stage + 1])
                wait_for(device)
            self.seconds += (time.perf_counter() - began) / len(self.trainings)
            mean_losses, first_bad_steps = self._over_ranks(losses.tolist(), bad_steps.tolist())
            self._note_failures(first_bad_steps)
            if all(self.failures):
                break
            last_rate = learning_rate_at(self.config, starts[stage + 1] - 1, total_steps)
            self._report(stage, mean_losses, last_rate)
            self._save(stage + 1)
        of_each = zip(self.slots, self.failures, self.best, strict=True)
        return Outcome(self.seconds, [Trained(*parts) for parts in of_each])

    def _over_ranks(self, losses: list[float], bad_steps: list[int]) -> tuple[list[float], list[int]]:
        """Every training's loss and first bad step over the whole batches, from those of the ranks' parts."""
        of_ranks = self.ranks.gather((losses, bad_steps))
        losses_of = zip(*(own_losses for own_losses, _ in of_ranks), strict=True)  # of each training, every rank's
        bad_of = zip(*(own_bad_steps for _, own_bad_steps in of_ranks), strict=True)
        first_bad_steps = [min((step for step in own if step >= 0), default=-1) for own in bad_of]
        return [fmean(own) for own in losses_of], first_bad_steps

    def _note_failures(self, first_bad_steps: list[int]) -> None:
        for number, (training, step) in enumerate(zip(self.trainings, first_bad_steps, strict=True)):
            if step >= 0 and not self.failures[number]:
                what = f"the loss turned NaN or infinite at step {step}"
                self.failures[number] = f"{training.name}: {what}: lower the learning rate, or look at the data."

    def _report(self, stage: int, losses: list[float], learning_rate: float) -> None:
        """Judge each network on the validation set, keep its best stage, and call `on_stage`."""
        for number, (training, slot) in enumerate(zip(self.trainings, self.slots, strict=True)):
            if self.failures[number]:
                continue
            val_score = None if training.val_data is None else self._judge(slot, training.val_data).score
            best, test_data = self.best[number], training.test_data
            if val_score is not None and test_data is not None and (best is None or val_score > best.val_score):
                tested = self._judge(slot, test_data)
                self.best[number] = Best(val_score, tested.score, stage, tested.right)
            record = slot.method.record
            weights = {} if record is None else summary(record, training.train_data)
            training.on_stage(
                StageReport(stage, losses[number], val_score, self.seconds, learning_rate, weights=weights)
            )

    def _judge(self, slot: Slot, samples: Labelled) -> Judged:
        return judge(slot.method.networks[0], samples, self.task, self.config.precision)

    def _save(self, next_stage: int) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(
                {
                    "of": self._fingerprint,
                    "stage": next_stage,
                    "seconds": self.seconds,
                    "failures": self.failures,
                    "best": [None if best is None else list(best) for best in self.best],
                    "slots": [slot.state_dict() for slot in self.slots],
                }
            )

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.slots)

    def _restore(self) -> None:
        state = self.checkpoint.load() if self.checkpoint is not None else None
        if self.checkpoint is None or state is None:
            for slot in self.slots:
                slot.method.prepare()
            return
        if state.get("of") != self._fingerprint:
            raise self.checkpoint.of_another("training, by its data, settings, seed, method or network")
        for slot, slot_state in zip(self.slots, state["slots"], strict=True):
            slot.load_state_dict(slot_state)
        self.first_stage, self.seconds, self.failures = state["stage"], state["seconds"], state["failures"]
        self.best = [None if best is None else Best(*best) for best in state["best"]]


def check_side_by_side(epoch_steps: Iterable[int]) -> None:
    """Raise `UserError` unless trainings have as many steps an epoch each."""
    require(
        len(set(epoch_steps)) == 1, "trainings side by side need as many steps each: run them with --side-by-side 1."
    )


def make_slots(trainings: Sequence[Training], config: TrainingConfig, ranks: Ranks = ALONE) -> list[Slot]:
    """A slot for each training, checked, with a fresh network."""
    loaders = _Loaders(ranks)
    return [_make_slot(training, config, loaders, ranks) for training in trainings]


def _make_slot(training: Training, config: TrainingConfig, loaders: "_Loaders", ranks: Ranks) -> Slot:
    train_data, val_data, method = training.train_data, training.val_data, training.method
    check_split(training.name, method, config.batch_size, ranks)
    check_training_data(train_data, val_data, config.batch_size)
    trusted = None
    if method is not None and method.uses_trusted:
        count, batch_size = trusted_sizes(training.name, method, val_data, config)
        assert val_data is not None
        trusted = loaders.of(training, val_data, count, batch_size)
    torch.manual_seed(training.seed)
    model = training.make_model().to(train_data.device)
    loader = loaders.of(training, train_data, len(train_data), config.batch_size)
    if ranks.size > 1:
        model, method = synchronised(model, train_data.device), global_method(method)
    return Slot(
        model,
        loader,
        method,
        config,
        trusted=trusted,
        make_model=training.make_model,
        recorded=training.recorded and ranks.size == 1,  # a rank sees its part alone
        ranks=ranks,
    )


class _Loaders:
    """Trainings on the same data with the same seed share a loader, which then makes each batch once."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.made: dict[tuple[int, int, int, int, Augmentation], Loader] = {}

    def of(self, training: Training, samples: Labelled, count: int, batch_size: int) -> Loader:
        """The training's batches of `count` of these samples."""
        key = (id(samples), count, batch_size, training.seed, training.augmentation)
        if key not in self.made:
            chosen = samples if count == len(samples) else stratified_split(samples, (count,), training.seed)[0]
            self.made[key] = make_loader(chosen, batch_size, training.seed, training.augmentation, self.ranks)
        return self.made[key]


def _make_steps(slots: Sequence[Slot], config: TrainingConfig, total_steps: int) -> Steps:
    """Captured steps on a GPU where methods and networks allow it and no other rank takes part."""
    on_gpu, alone = slots[0].loader.samples.device.type == "cuda", slots[0].ranks.size == 1
    if not (on_gpu and alone and all(slot.method.capturable for slot in slots)):
        return PlainSteps(slots, config, total_steps)
    try:
        for slot in slots:
            check_buffers(slot.model, slot.loader.look())
        return CapturedSteps(slots, config, total_steps)
    except torch.OutOfMemoryError:
        raise  # plain steps would take as much
    except RuntimeError as error:
        why = first_line(error)
        warnings.warn(f"the training cannot be captured in a CUDA graph, so it runs plainly: {why}", stacklevel=3)
        return PlainSteps(slots, config, total_steps)
