"""The seam between a search and the networks: workers run episodes and answer in losses and accuracies alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from autoweight.config import Augmentation, TrainingConfig
from autoweight.data.dataset import Samples
from autoweight.data.labelled import Labelled
from autoweight.data.loader import Batch, Loader
from autoweight.data.mixing import mix
from autoweight.strategy import Rule, Weigher
from autoweight.strategy.features import label_values
from autoweight.strategy.indices import places_of
from autoweight.strategy.memory import Memory
from autoweight.strategy.stages import stage_starts
from autoweight.strategy.view import view_of
from autoweight.training.schedules import learning_rate_at
from autoweight.training.split import make_loader
from autoweight.training.task import TASKS


@dataclass(frozen=True)
class Problem:
    """What an episode trains: networks, data, and how."""

    make_model: Callable[[], nn.Module]
    train: Labelled
    """In memory, or a stream."""
    val: Samples
    training: TrainingConfig
    rule: Rule = Rule()
    augmentation: Augmentation = "none"
    device: str = "cpu"
    head_start: int = 0
    """Times that the first stage is trained, unweighted and on fresh batches, before the episode begins."""
    augment_stages: bool = True
    """Augment the episode's stages too, not its head start alone."""

    @property
    def num_params(self) -> int:
        """How many strategy parameters there are."""
        return len(self.rule.param_names)

    def memory(self) -> Memory | None:
        """An empty memory of the training set, where the rule has one."""
        if not self.rule.remembers:
            return None
        places = self.train.labels.numel() if TASKS[self.training.task].counts else len(self.train)
        return Memory.empty(places, self.train.num_classes, self.device)


class ParamsWeigher(Weigher):
    """Weighs by one stage's parameters, whatever they are: those of a search may blow up."""

    capturable = True

    def __init__(self, rule: Rule, label_values: Tensor, strategy_params: Tensor, memory: Memory | None = None) -> None:
        self.rule, self.label_values, self.strategy_params, self.memory = rule, label_values, strategy_params, memory

    @torch.no_grad()
    def weigh(
        self,
        losses: Tensor,
        logits: Tensor,
        labels: Tensor,
        progress: float | Tensor,
        indices: Tensor | None = None,
    ) -> Tensor:
        """Equation 3."""
        view = view_of(losses, logits, labels, self.label_values, checked=True)
        if self.memory is None:
            return self.rule.weigh(self.strategy_params, view).view_as(losses)
        places = places_of(indices, losses)
        return self.rule.weigh(self.strategy_params, view, self.memory, places).view_as(losses)

    def tensors(self) -> dict[str, Tensor]:
        """The memory's."""
        return {} if self.memory is None else self.memory.tensors()


class StageOutcome(NamedTuple):
    """The outcome of a stage, `[workers]` each; where a network or its reference blew up, the loss is not finite."""

    loss: Tensor
    """Mean unweighted training loss over the stage."""
    score: Tensor
    """Score on the validation set, such as accuracy, of the weighted network at the stage's end."""
    reference_score: Tensor
    """The same of its reference."""
    reference_loss: Tensor
    """The reference's mean training loss."""


class Crew(Protocol):
    """What Algorithm 2 asks of workers, be they of one task or of several."""

    num_workers: int
    num_starts: int
    network_steps: int

    @property
    def problem(self) -> Problem:
        """What they train; of several, the first."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that they train."""

    @property
    def run_beside_the_host(self) -> bool:
        """Whether the host is free while a stage trains."""

    @property
    def score_error(self) -> float:
        """Standard error of one difference of scores, at worst."""

    def begin(self, seed: int) -> None:
        """Start an episode."""

    def run_stage(self, stage: int, strategy_params: Tensor, meanwhile: Callable[[], Any]) -> StageOutcome:
        """Train through a stage and score the networks."""

    def agreed(self, stop: bool) -> bool:
        """Whether to stop, the same on all ranks."""


class Workers(ABC):
    """N weighted networks, each with a reference of identical start that sees identical batches unweighted.

    Workers come in `num_starts` groups: those of a group start alike and see the same batches, so one reference serves
    them all. With as many starts as workers, every worker has a reference of its own, as the paper has it.

    Slots are what trains: the weighted networks first, then the references. Until a stage comes with parameters that
    are not all zero, the networks of a group are equal to the bit, so one slot a group stands for all of them.
    """

    run_beside_the_host: bool = False
    """Whether the host is free while a stage trains."""
    fewest_slots = 1
    """With at least so many side by side, each trains to the same bits, however many there are."""
    own_slots: Tensor
    """The slots that train here once the networks of a group differ: all, unless others run elsewhere."""

    def __init__(self, problem: Problem, num_workers: int, num_starts: int = 1) -> None:
        assert num_workers % num_starts == 0, "workers must divide evenly over the starts"
        self.problem = problem
        self.num_workers = num_workers
        self.num_starts = num_starts
        training = problem.training
        self.steps = (len(problem.train) // training.batch_size) * training.epochs
        self.stage_starts = stage_starts(self.steps, training.num_stages)
        self.group_of_worker = torch.arange(num_workers) % num_starts
        self.own_slots = torch.arange(num_workers + num_starts)
        self.network_steps = 0
        self.task = TASKS[training.task]
        values = label_values(problem.train.class_counts, problem.rule.label_feature)
        self.label_values = values.to(problem.device)
        self.train = problem.train.to(problem.device)
        self.val = problem.val.to(problem.device)
        size = training.batch_size
        stages = problem.augmentation if problem.augment_stages else "none"
        self.loaders = [make_loader(self.train, size, group, stages) for group in range(num_starts)]
        self.head_loaders = [make_loader(self.train, size, group, problem.augmentation) for group in range(num_starts)]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The one problem that they train."""
        return (self.problem,)

    @property
    def score_error(self) -> float:
        """That of the difference between two accuracies of about one half."""
        return sqrt(0.5 / len(self.val))

    def begin(self, seed: int) -> None:
        """Start an episode everywhere: fresh networks and batch orders that depend on `seed` alone."""
        for group, loader in enumerate(self.loaders):
            loader.seed = mix(seed, group)
        self.group_of_slot = torch.arange(self.num_starts)
        self._start_networks([self._fresh_model(loader.seed) for loader in self.loaders])
        nothing = torch.zeros(self.num_starts, self.problem.num_params, device=self.problem.device)
        for repeat in range(self.problem.head_start):
            for group, loader in enumerate(self.head_loaders):
                loader.seed = mix(seed, group, repeat)
            self._train(0, nothing, self.head_loaders)

    def run_stage(
        self, stage: int, strategy_params: Tensor, meanwhile: Callable[[], Any] = lambda: None
    ) -> StageOutcome:
        """Train all networks through a stage, worker n weighted by `strategy_params[n]`, and score them.

        `meanwhile` is called once all work has been given to the device: on a GPU, what the host does then costs no
        time.
        """
        if self._all_equal and bool(strategy_params.any()):
            self.group_of_slot = torch.cat([self.group_of_worker, self.group_of_slot])
            self._copy_networks(self.group_of_slot)
        unweighted = strategy_params.new_zeros(self.num_starts, strategy_params.shape[1])
        of_slots = unweighted if self._all_equal else torch.cat([strategy_params, unweighted])
        losses = self._train(stage, of_slots.to(self.problem.device), self.loaders)
        scores = self._evaluate()
        meanwhile()
        loss, score = self._of_all_slots(losses.cpu(), scores.cpu().float())
        reference_loss = loss[-self.num_starts :][self.group_of_worker]
        reference_score = score[-self.num_starts :][self.group_of_worker]
        if self._all_equal:
            return StageOutcome(reference_loss, reference_score, reference_score, reference_loss)
        # A worker whose reference blew up has nothing to be compared with.
        loss = torch.where(reference_loss.isfinite(), loss[: self.num_workers], reference_loss)
        return StageOutcome(loss, score[: self.num_workers], reference_score, reference_loss)

    def agreed(self, stop: bool) -> bool:
        """Whether to stop, the same on all ranks."""
        return stop

    @property
    def _all_equal(self) -> bool:
        """Whether the networks of each group are equal so far, so that one slot stands for all of them."""
        return len(self.group_of_slot) == self.num_starts

    def _of_all_slots(self, losses: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Losses and scores of all slots, from those of the slots that train here."""
        return losses, scores

    def _fresh_model(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.problem.make_model().to(self.problem.device)

    @abstractmethod
    def _start_networks(self, starts: list[nn.Module]) -> None:
        """Make each of `starts` a slot, with a fresh optimiser."""

    @abstractmethod
    def _copy_networks(self, slots: Tensor) -> None:
        """Make the new slots copies of the old ones at `slots`: networks, optimiser state and memory."""

    @abstractmethod
    def _train(self, stage: int, strategy_params: Tensor, loaders: list[Loader]) -> Tensor:
        """Run a stage's steps on batches of `loaders`, slots weighted by rows of `strategy_params`; mean losses."""

    @abstractmethod
    def _evaluate(self) -> Tensor:
        """Score of every slot on the validation set."""


class SteppedWorkers(Workers):
    """Workers whose host walks through every step."""

    def _train(self, stage: int, strategy_params: Tensor, loaders: list[Loader]) -> Tensor:
        """Run a stage's steps; returns every slot's mean loss."""
        start, stop = self.stage_starts[stage], self.stage_starts[stage + 1]
        losses = torch.zeros(len(strategy_params), device=self.problem.device)
        streams = zip(*(loader.batches(start, stop) for loader in loaders), strict=True)
        for step, batches in zip(range(start, stop), streams, strict=True):
            learning_rate = learning_rate_at(self.problem.training, step, self.steps)
            losses += self._train_step(batches, strategy_params, learning_rate, mix(loaders[0].seed, step, 2))
        self.network_steps += len(strategy_params) * (stop - start)
        return losses / (stop - start)

    @abstractmethod
    def _train_step(
        self, batches: tuple[Batch, ...], strategy_params: Tensor, learning_rate: float, seed: int
    ) -> Tensor:
        """One optimiser step of every slot on its group's batch, weighted by its row of `strategy_params`.

        `seed` fixes what is random inside the networks, such as dropout masks: the same for all of them. Returns the
        unweighted mean losses, `[slots]`.
        """
