"""Method: a whole training step, which owns its networks; most of them only weigh (`Weighted`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from autoweight.config import TaskName
from autoweight.data.inputs import Inputs
from autoweight.data.loader import Batch
from autoweight.errors import UserError
from autoweight.methods.record import Record
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.weigher import Weigher


@dataclass(frozen=True)
class Setup:
    """What a training gives a method before it begins."""

    model: nn.Module
    """The network to train, and to evaluate."""
    make_model: Callable[[], nn.Module]
    """Makes another network of its kind, on its device, with a start of its own that the training's seed fixes."""
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    """Makes the training's kind of optimiser; the loop sets its learning rate at every step."""
    forward: Callable[[nn.Module, Inputs], Tensor]
    """A network's outputs, in the training's precision, with their gradient."""
    losses: Callable[[Tensor, Tensor], Tensor]
    """Every sample's loss, from outputs and labels."""
    look: Callable[[nn.Module, Inputs, Tensor], tuple[Tensor, Tensor]]
    """Both at once, the fastest way: outputs without gradient, and losses."""
    ahead: Callable[[nn.Module, Inputs, Tensor, Sequence[Tensor]], Tensor]
    """Every sample's loss, were these the network's trainable parameters; leaves buffers alone."""
    slopes: Callable[[nn.Module, Inputs, Tensor, Sequence[Tensor], Tensor], Tensor]
    """How fast every sample's loss rises along a direction of the trainable parameters, from the losses where the
    network is; leaves buffers alone."""
    mean: Callable[[Tensor, Tensor | None, Tensor], Tensor]
    """The mean of losses, with these weights or with none, over the samples whose labels count."""
    fast: Callable[[Callable[..., Any]], Callable[..., Any]]
    """A function of tensors alone, compiled where the training compiles."""
    num_samples: int
    num_classes: int
    device: torch.device
    task: TaskName = "classification"


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that a network learns, in its order."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


class Method(ABC):
    """Trains by steps of its own; `begin` is called once before all others."""

    capturable = False
    """Whether `step` can be captured in a CUDA graph: its host code decides nothing by the data or the progress, and
    all that it changes are its networks, its optimisers' states and the tensors that it names."""
    uses_trusted = False
    """Whether every step comes with a batch of trusted samples."""
    trusted_samples = 0
    """How many of the validation set's samples these are drawn from, at most; 0 takes all."""
    trusted_batch = 0
    """How many of them a step gets; 0 for as many as it gets of the others."""
    takes_slopes = False
    """Whether it asks for `Setup.slopes`, which not every network can give."""
    tasks: tuple[TaskName, ...] = ("classification",)
    """What it can train; empty where that does not matter."""

    setup: Setup
    networks: list[nn.Module]
    """What it trains; the first is evaluated."""
    optimizers: list[torch.optim.Optimizer]
    record: Record | None = None
    """Where the training is recorded: every sample's last weight and loss, which `step` writes by `note`."""

    def check_task(self, task: TaskName) -> None:
        """Raise `UserError` where it cannot train this."""
        _check_task(self, task)

    def begin(self, setup: Setup) -> None:
        """Make networks and optimisers; by default the training's one network."""
        self.check_task(setup.task)
        self.setup = setup
        self.networks = [setup.model]
        self.optimizers = [setup.make_optimizer(setup.model)]

    def prepare(self) -> None:  # noqa: B027 - few have to
        """What has to be done before the first step; a training that goes on from a checkpoint does not do it again."""

    @abstractmethod
    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """One step of every network on a batch; returns the unweighted mean loss of the first, without gradient."""

    def after_replay(self, num_labels: int) -> None:  # noqa: B027 - few have to
        """What a captured step on so many labels left to the host."""

    def scheduled(self) -> list[torch.optim.Optimizer]:
        """The optimisers whose learning rate is the training's; by default all."""
        return self.optimizers

    def evaluated(self) -> dict[str, nn.Module]:
        """What is evaluated besides the first network, by name."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """What `step` changes besides networks and optimisers, by name."""
        return {}

    def note(self, batch: Batch, losses: Tensor, weights: Tensor | None) -> None:
        """Keep each sample's loss and weight, where the training is recorded."""
        if self.record is not None:
            self.record.note(losses, weights, batch.indices)

    def descend(self, loss: Tensor, number: int = 0) -> None:
        """One step of an optimiser, by default the first's."""
        optimizer = self.optimizers[number]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class Weighted(Method):
    """The default: one network, whose samples a weigher weighs; without a weigher, all count the same."""

    tasks = ()

    def __init__(self, weigher: Weigher | None) -> None:
        self.weigher = weigher

    def check_task(self, task: TaskName) -> None:
        """Raise `UserError` where its weigher cannot weigh this."""
        if self.weigher is not None:
            _check_task(self.weigher, task)

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        """As its weigher is."""
        return self.weigher is None or self.weigher.capturable

    def begin(self, setup: Setup) -> None:
        """Let the weigher make room for the training set."""
        super().begin(setup)
        if self.weigher is not None:
            self.weigher.reserve(setup.num_samples, setup.num_classes, setup.device)
        if isinstance(self.weigher, Remembering):
            self.weigher.driven = True

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """Equation 7: one optimiser step on a batch's weighted loss."""
        outputs, losses = self.setup.look(self.networks[0], batch.inputs, batch.labels)
        weights = None if self.weigher is None else self._weigh(self.weigher, losses.detach(), outputs, batch, progress)
        self.note(batch, losses, weights)
        self.descend(self.setup.mean(losses, weights, batch.labels))
        return self.setup.mean(losses.detach(), None, batch.labels)

    def after_replay(self, num_labels: int) -> None:
        """What the weigher left."""
        if isinstance(self.weigher, Remembering):
            self.weigher.after_replay(num_labels)

    def tensors(self) -> dict[str, Tensor]:
        """Those of the weigher."""
        return {} if self.weigher is None else self.weigher.tensors()

    def _weigh(
        self, weigher: Weigher, losses: Tensor, outputs: Tensor, batch: Batch, progress: float | Tensor
    ) -> Tensor:
        """Weights by two dozen small operations, or a few when compiled for a captured step."""
        weigh = type(weigher).weigh
        if isinstance(progress, Tensor):  # a number would be compiled into the code, anew at every step
            weigh = self.setup.fast(weigh)
        return weigh(weigher, losses, outputs, batch.labels, progress=progress, indices=batch.indices)


def _check_task(one: Method | Weigher, task: TaskName) -> None:
    if one.tasks and task not in one.tasks:
        raise UserError(
            f"{type(one).__name__} is for {' and '.join(one.tasks)}, not for {task}: use another method, or none."
        )
