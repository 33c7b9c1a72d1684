"""Training steps of one or several networks, and the plain way to run them: one network after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from autoweight.config import Precision, TrainingConfig
from autoweight.data.loader import Batch, Loader, mix
from autoweight.strategy import Weigher, weighted_mean
from autoweight.training.schedule import learning_rate_at

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Slot:
    """A network with its optimiser, its batches and its weigher."""

    def __init__(self, model: nn.Module, loader: Loader, weigher: Weigher | None, config: TrainingConfig) -> None:
        self.model, self.loader, self.weigher, self.config = model, loader, weigher, config
        if loader.samples.labels.is_cuda:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            config.learning_rate,
            config.momentum,
            weight_decay=config.weight_decay,
            fused=loader.samples.labels.is_cuda,  # the kind that takes a learning rate from the device
        )

    def step(self, batch: Batch, progress: float | Tensor) -> Tensor:
        """Equation 7: one optimiser step on a batch's weighted loss; returns the unweighted mean loss, detached."""
        look = compiled(logits_and_losses, self.config, batch.inputs.device)
        with autocast(self.config.precision, batch.inputs.device):
            logits, losses = look(self.model, batch.inputs, batch.labels)
        if self.weigher is None:
            loss = losses.mean()
        else:
            weights = self._weigh(self.weigher, losses, logits, batch, progress)
            loss = weighted_mean(losses, weights)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return losses.detach().mean()

    def _weigh(
        self, weigher: Weigher, losses: Tensor, logits: Tensor, batch: Batch, progress: float | Tensor
    ) -> Tensor:
        """Weights by two dozen small operations, or a few when compiled for a captured step."""
        weigh = type(weigher).weigh
        if isinstance(progress, Tensor):  # a number would be compiled into the code, anew at every step
            weigh = compiled(weigh, self.config, losses.device)
        return weigh(weigher, losses.detach(), logits, batch.labels, progress=progress, indices=batch.indices)

    def set_learning_rate(self, learning_rate: float | Tensor) -> None:
        """Change the learning rate of all parameters."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def state_dict(self) -> dict[str, Any]:
        """All that later steps depend on."""
        weigher = {} if self.weigher is None else self.weigher.state_dict()
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "weigher": weigher}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.weigher is not None:
            self.weigher.load_state_dict(state["weigher"])


class StepsOutcome(NamedTuple):
    """What a run of steps came to, `[slots]` each."""

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
        slot.model.train()
        loss_sum = torch.zeros((), device=slot.loader.samples.labels.device)
        good_steps = torch.zeros_like(loss_sum, dtype=torch.long)
        for step, batch in zip(range(start, stop), slot.loader.batches(start, stop), strict=True):
            torch.manual_seed(mix(slot.loader.seed, step, 2))  # dropout masks and the like
            progress = step / self.total_steps
            slot.set_learning_rate(learning_rate_at(self.config, progress))
            loss_sum += slot.step(batch, progress)
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


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """bfloat16 arithmetic where it was asked for and the device is a GPU; weights are cast anew at every step."""
    enabled = precision == "bfloat16" and device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)


def logits_and_losses(model: nn.Module, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """A forward pass: logits without gradient, to weigh by, and every sample's loss."""
    logits = model(inputs)
    return logits.detach(), cross_entropy(logits.float(), labels, reduction="none")


def compiled(
    work: Callable[Arguments, Result], config: TrainingConfig, device: torch.device
) -> Callable[Arguments, Result]:
    """The function compiled, where the configuration asks for it and the device is a GPU."""
    return _compile(work) if config.compile and device.type == "cuda" else work


@cache
def _compile(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """One compiled version of a plain function for all, so that equal networks share the code.

    Combo kernels do the many small casts of weights and gradients in a few launches: a tenth of a ResNet-18's step.
    Tuning the kernels between convolutions saves another hundredth or two.
    """
    options: dict[str, str | int | bool | Callable[..., Any]] = {"combo_kernels": True, "max_autotune_pointwise": True}
    return torch.compile(work, options=options)
