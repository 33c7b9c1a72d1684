"""The seam between a search and the networks: workers run episodes and answer in losses and accuracies alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import Augmentation, Feature, LabelFeature, TrainingConfig
from autoweight.data.dataset import Samples
from autoweight.data.loader import Batch, Loader, mix
from autoweight.strategy import Weigher
from autoweight.strategy.features import batch_features, label_values
from autoweight.strategy.stages import stage_starts
from autoweight.strategy.weighting import weigh
from autoweight.training.schedule import learning_rate_at


@dataclass(frozen=True)
class Problem:
    """What an episode trains: networks, data, and how."""

    make_model: Callable[[], nn.Module]
    train: Samples
    val: Samples
    training: TrainingConfig
    features: tuple[Feature, ...] = ("loss", "entropy")
    label_feature: LabelFeature = "log_frequency"
    normalise: bool = False
    augmentation: Augmentation = "none"
    device: str = "cpu"
    head_start: int = 0
    """Times that the first stage is trained, unweighted and on fresh batches, before the episode begins."""
    augment_stages: bool = True
    """Augment the episode's stages too, not its head start alone."""


class ParamsWeigher(Weigher):
    """Weighs by one stage's parameters, whatever they are: those of a search may blow up."""

    def __init__(self, problem: Problem, label_values: Tensor, params: Tensor) -> None:
        self.problem, self.label_values, self.params = problem, label_values, params

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
        problem = self.problem
        features = batch_features(losses, logits, labels, problem.features, self.label_values, problem.label_feature)
        return weigh(features, self.params, self.problem.normalise)


class StageOutcome(NamedTuple):
    """What a stage came to, `[workers]`; where a network or its reference blew up, the loss is not finite."""

    loss: Tensor
    """Mean unweighted training loss over the stage."""
    accuracy: Tensor
    """Validation accuracy of the weighted network at the stage's end."""
    reference_accuracy: Tensor
    """The same of its reference."""


class Workers(ABC):
    """N weighted networks, each with a reference of identical start that sees identical batches unweighted.

    Workers come in `num_starts` groups: those of a group start alike and see the same batches, so one reference serves
    them all. With as many starts as workers, every worker has a reference of its own, as the paper has it.

    Slots are what trains: the weighted networks first, then the references. Until a stage comes with parameters that
    are not all zero, the networks of a group are equal to the bit, so one slot a group stands for all of them.
    """

    run_beside_the_host = False
    """Whether the host is free while a stage trains."""

    def __init__(self, problem: Problem, num_workers: int, num_starts: int = 1) -> None:
        assert num_workers % num_starts == 0, "workers must divide evenly over the starts"
        self.problem = problem
        self.num_workers = num_workers
        self.num_starts = num_starts
        training = problem.training
        self.steps = (len(problem.train) // training.batch_size) * training.epochs
        self.stage_starts = stage_starts(self.steps, training.num_stages)
        self.group_of_worker = torch.arange(num_workers) % num_starts
        self.network_steps = 0
        values = label_values(problem.train.class_counts, problem.label_feature)
        self.label_values = values.to(problem.device)
        self.train = problem.train.to(problem.device)
        self.val = problem.val.to(problem.device)
        size = training.batch_size
        stages = problem.augmentation if problem.augment_stages else "none"
        self.loaders = [Loader(self.train, size, group, stages) for group in range(num_starts)]
        self.head_loaders = [Loader(self.train, size, group, problem.augmentation) for group in range(num_starts)]

    def begin(self, seed: int) -> None:
        """Start an episode everywhere: fresh networks and batch orders that depend on `seed` alone."""
        for group, loader in enumerate(self.loaders):
            loader.seed = mix(seed, group)
        self.group_of_slot = torch.arange(self.num_starts)
        self._start_networks([self._fresh_model(loader.seed) for loader in self.loaders])
        nothing = torch.zeros(self.num_starts, len(self.problem.features) + 1, device=self.problem.device)
        for repeat in range(self.problem.head_start):
            for group, loader in enumerate(self.head_loaders):
                loader.seed = mix(seed, group, repeat)
            self._train(0, nothing, self.head_loaders)

    def run_stage(
        self, stage: int, strategy_params: Tensor, meanwhile: Callable[[], Any] = lambda: None
    ) -> StageOutcome:
        """Train all networks through a stage, worker n weighted by `strategy_params[n]`, and look at the result.

        `meanwhile` is called when the work is under way: a GPU has been given it all by then, so that what the host
        does costs no time.
        """
        together = len(self.group_of_slot) == self.num_starts
        if together and bool(strategy_params.any()):
            together = False
            self.group_of_slot = torch.cat([self.group_of_worker, self.group_of_slot])
            self._copy_networks(self.group_of_slot)
        params = strategy_params.new_zeros(self.num_starts, strategy_params.shape[1])
        if not together:
            params = torch.cat([strategy_params, params])
        losses = self._train(stage, params.to(self.problem.device), self.loaders)
        accuracies = self._evaluate()
        meanwhile()
        loss, accuracy = losses.cpu(), accuracies.cpu()
        reference = accuracy[-self.num_starts :][self.group_of_worker]
        reference_loss = loss[-self.num_starts :][self.group_of_worker]
        if together:
            return StageOutcome(reference_loss, reference, reference)
        # Without a sound reference there is nothing to compare with.
        loss = torch.where(reference_loss.isfinite(), loss[: self.num_workers], reference_loss)
        return StageOutcome(loss, accuracy[: self.num_workers], reference)

    def _fresh_model(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.problem.make_model().to(self.problem.device)

    @abstractmethod
    def _start_networks(self, starts: list[nn.Module]) -> None:
        """Make each of `starts` a slot, with a fresh optimiser."""

    @abstractmethod
    def _copy_networks(self, slots: Tensor) -> None:
        """Make the new slots copies of the old ones at `slots`: parameters, buffers and optimiser state."""

    @abstractmethod
    def _train(self, stage: int, params: Tensor, loaders: list[Loader]) -> Tensor:
        """Run a stage's steps on batches of `loaders`, every slot weighted by its row of `params`; mean losses."""

    @abstractmethod
    def _evaluate(self) -> Tensor:
        """Validation accuracy of every slot."""


class SteppedWorkers(Workers):
    """Workers whose host walks through every step."""

    def _train(self, stage: int, params: Tensor, loaders: list[Loader]) -> Tensor:
        """Run a stage's steps; returns every slot's mean loss."""
        start, stop = self.stage_starts[stage], self.stage_starts[stage + 1]
        losses = torch.zeros(len(params), device=self.problem.device)
        streams = zip(*(loader.batches(start, stop) for loader in loaders), strict=True)
        for step, batches in zip(range(start, stop), streams, strict=True):
            learning_rate = learning_rate_at(self.problem.training, step / self.steps)
            losses += self._train_step(batches, params, learning_rate, mix(loaders[0].seed, step, 2))
        self.network_steps += len(params) * (stop - start)
        return losses / (stop - start)

    @abstractmethod
    def _train_step(self, batches: tuple[Batch, ...], params: Tensor, learning_rate: float, seed: int) -> Tensor:
        """One SGD step of every slot on its group's batch, weighted by its row of `params`.

        `seed` fixes what is random inside the networks, such as dropout masks: the same for all of them. Returns the
        unweighted mean losses, `[slots]`.
        """
