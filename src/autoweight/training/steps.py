"""Training steps of one or several networks, and the plain way to run them: one network after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import TrainingConfig
from autoweight.data.inputs import Inputs
from autoweight.data.loader import Batch, Loader
from autoweight.data.mixing import mix
from autoweight.data.streamed import may_skip
from autoweight.methods.method import Method, Setup, Weighted
from autoweight.methods.record import Record
from autoweight.ranks import ALONE, Ranks
from autoweight.strategy.weigher import load_tensors
from autoweight.training.ahead import ready_forward_mode
from autoweight.training.average import Average
from autoweight.training.device import seed_draws
from autoweight.training.optimizers import make_optimizer, set_learning_rate, state_tensors
from autoweight.training.passes import Passes
from autoweight.training.precision import compiled
from autoweight.training.schedules import learning_rate_at
from autoweight.training.split import global_mean, replica
from autoweight.training.task import TASKS


class Slot:
    """A training under way: a method with its networks, the batches that they see, and their average."""

    def __init__(
        self,
        model: nn.Module,
        loader: Loader,
        method: Method | None,
        config: TrainingConfig,
        *,
        trusted: Loader | None = None,
        make_model: Callable[[], nn.Module] | None = None,
        recorded: bool = False,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.loader, self.config, self.ranks = model, loader, config, ranks
        self.method = Weighted(None) if method is None else method
        self.trusted = trusted if self.method.uses_trusted else None
        device = loader.samples.device
        self.on_gpu = device.type == "cuda"
        self.passes = Passes(config, TASKS[config.task], device)
        if self.method.takes_slopes:
            ready_forward_mode()
        self.method.begin(self._setup(make_model))
        self.replica = replica(model) if ranks.size > 1 else model  # once its parameters lie as they will
        if recorded:
            self.method.record = Record(self.method.setup.num_samples, device)
        self.average = Average(self.method.networks[0], config.average) if config.average else None

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """One step of the method; returns the unweighted mean loss, without gradient."""
        loss = self.method.step(batch, progress, trusted)
        if self.average is not None:
            self.average.update()
        return loss

    def set_learning_rate(self, learning_rate: float | Tensor) -> None:
        """Change the learning rate of all networks that follow the training's."""
        for optimizer in self.method.scheduled():
            set_learning_rate(optimizer, learning_rate)

    def train_mode(self) -> None:
        """Put all networks into training."""
        for network in self.method.networks:
            network.train()

    def evaluated(self) -> dict[str, nn.Module]:
        """What is evaluated besides the network itself, by name."""
        averaged = {} if self.average is None else {"averaged": self.average.network()}
        return averaged | self.method.evaluated()

    def tensors(self) -> Iterator[Tensor]:
        """Everything that a step changes, states of optimisers that do not exist yet included."""
        for network in self.method.networks:
            yield from (parameter.detach() for parameter in network.parameters())
            yield from network.buffers()
        for optimizer in self.method.optimizers:
            yield from state_tensors(optimizer)
        yield from self._named().values()

    def state_dict(self) -> dict[str, Any]:
        """All that later steps depend on."""
        return {
            "networks": [network.state_dict() for network in self.method.networks],
            "optimizers": [optimizer.state_dict() for optimizer in self.method.optimizers],
            "tensors": self._named(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for network, values in zip(self.method.networks, state["networks"], strict=True):
            network.load_state_dict(values)
        for optimizer, values in zip(self.method.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(values)
        load_tensors(type(self.method).__name__, self._named(), state["tensors"])

    def _named(self) -> dict[str, Tensor]:
        averaged = {} if self.average is None else self.average.tensors()
        recorded = {} if self.method.record is None else self.method.record.tensors()
        return self.method.tensors() | averaged | recorded

    def _setup(self, make_model: Callable[[], nn.Module] | None) -> Setup:
        config, samples, task = self.config, self.loader.samples, TASKS[self.config.task]
        device = samples.device
        return Setup(
            model=self._placed(self.model),
            make_model=partial(self._another, make_model),
            make_optimizer=lambda network: make_optimizer(network.parameters(), config, self.on_gpu),
            forward=self.passes.forward,
            losses=task.losses,
            look=self._look,
            ahead=self.passes.ahead,
            slopes=self.passes.slopes,
            mean=task.mean if self.ranks.size == 1 else global_mean(task, self.ranks, may_skip(samples)),
            fast=lambda work: compiled(work, config, device),
            num_samples=samples.labels.numel() if task.counts else len(samples),
            num_classes=samples.num_classes,
            device=device,
            task=task.name,
        )

    def _look(self, model: nn.Module, inputs: Inputs, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and losses; where ranks share the training, the backward pass averages the network's gradients."""
        return self.passes.look(self.replica if model is self.model else model, inputs, labels)

    def _placed(self, model: nn.Module) -> nn.Module:
        if self.on_gpu:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model

    def _another(self, make_model: Callable[[], nn.Module] | None) -> nn.Module:
        assert make_model is not None, "a method that makes another network needs make_model"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(mix(self.loader.seed, 1))
            return self._placed(make_model().to(self.loader.samples.device))


class StepsOutcome(NamedTuple):
    """The outcome of a run of steps, `[slots]` each."""

    losses: Tensor
    """Mean unweighted losses."""
    first_bad_steps: Tensor
    """The first step whose loss was not finite, or -1."""


class Steps(ABC):
    """Runs the steps of a list of slots."""

    def __init__(self, slots: Sequence[Slot], config: TrainingConfig, total_steps: int) -> None:
        self.slots, self.config, self.total_steps = slots, config, total_steps

    @abstractmethod
    def run(self, start: int, stop: int) -> StepsOutcome:
        """Steps `start` to `stop - 1` of every slot."""


class PlainSteps(Steps):
    """One network after the other."""

    def run(self, start: int, stop: int) -> StepsOutcome:
        """Steps `start` to `stop - 1` of every slot."""
        outcomes = [self._run_slot(slot, start, stop) for slot in self.slots]
        return StepsOutcome(*(torch.stack(column) for column in zip(*outcomes, strict=True)))

    def _run_slot(self, slot: Slot, start: int, stop: int) -> tuple[Tensor, Tensor]:
        slot.train_mode()
        loss_sum = torch.zeros((), device=slot.loader.samples.device)
        good_steps = torch.zeros_like(loss_sum, dtype=torch.long)
        trusted = repeat(None) if slot.trusted is None else slot.trusted.batches(start, stop)
        for step, batch, own in zip(range(start, stop), slot.loader.batches(start, stop), trusted, strict=False):
            seed_draws(mix(slot.loader.seed, step, 2 + slot.ranks.rank), slot.loader.samples.device)
            slot.set_learning_rate(learning_rate_at(self.config, step, self.total_steps))
            loss_sum += slot.step(batch, step / self.total_steps, own)
            good_steps += is_sound(loss_sum)
        return loss_sum / (stop - start), first_bad_steps(good_steps, start, stop)


def is_sound(loss_sum: Tensor) -> Tensor:
    """Whether all losses in a sum were finite: once one is not, the sum stays so.

    Counting this on the device tells the first bad step without a look at every step, which would stall a GPU.
    """
    return loss_sum < float("inf")  # false for NaN


def first_bad_steps(good_steps: Tensor, start: int, stop: int) -> Tensor:
    """The first of steps `start` to `stop - 1` whose loss was not finite, or -1, from how many were good before it."""
    return torch.where(good_steps < stop - start, start + good_steps, -1)
