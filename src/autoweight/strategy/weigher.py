"""Weigher: what turns one batch's losses into sample weights, and the weighted loss made of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from autoweight.config import TaskName
from autoweight.errors import UserError, require


class Weigher(ABC):
    """Gives every sample of a batch a weight of at least 0; weights of 1 change nothing."""

    capturable = False
    """Whether `weigh` can be captured in a CUDA graph: its host code decides nothing by the data or the progress, and
    all that it changes are the tensors that it names."""

    tasks: tuple[TaskName, ...] = ()
    """What it can weigh; empty where that does not matter."""

    @abstractmethod
    def weigh(
        self,
        losses: Tensor,
        logits: Tensor,
        labels: Tensor,
        progress: float | Tensor,
        indices: Tensor | None = None,
    ) -> Tensor:
        """Weights of the shape of the losses, without gradient.

        `progress` is the fraction of the training done, in [0, 1); a tensor where the step is captured in a CUDA
        graph, so that the host does not know it. `indices` are the samples' positions in the training set, for
        weighers that know or remember single samples.
        """

    def reserve(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:  # noqa: B027
        """Make room for a training set of this size before a training whose steps are captured or stacked."""

    def tensors(self) -> dict[str, Tensor]:
        """What `weigh` changes, by name; whoever captures, checkpoints or copies the weigher heeds them. Often none."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What has to go into a checkpoint for training to go on as if never stopped."""
        return self.tensors()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        load_tensors(type(self).__name__, self.tensors(), state)


def load_tensors(owner: str, places: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Put values into the tensors of their names, or say in a sentence why they do not fit, and change nothing."""
    check_state(owner, places, values)
    for name, place in places.items():
        require(
            tuple(place.shape) == tuple(values[name].shape),
            f"{owner} keeps {name} of shape {tuple(place.shape)}, but was given {tuple(values[name].shape)}: that is "
            "of another data set.",
        )
    for name, place in places.items():
        place.copy_(values[name])


def check_state(owner: str, names: Iterable[str], state: Any) -> None:
    """Raise `UserError` unless a state holds tensors of these names, and nothing else."""
    if not isinstance(state, Mapping):
        raise UserError(f"{owner} takes the dict that state_dict() gave, but was given {type(state).__name__}.")
    missing, besides = set(names) - state.keys(), state.keys() - set(names)
    if missing or besides:
        differences = [f"lacks {_few(missing)}"] if missing else []
        differences += [f"has {_few(besides)} besides"] if besides else []
        raise UserError(
            f"{owner} was given a state that {' and '.join(differences)}: give what state_dict() of the same strategy "
            "gave, whole."
        )
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise UserError(
                f"{owner} was given {name} as {type(value).__name__}, not as a tensor: give what state_dict() gave."
            )


def _few(names: set[str]) -> str:
    first, more = sorted(map(str, names))[:3], len(names) - 3
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def check_tensors(**given: object) -> None:
    """Raise `UserError` where one is no tensor, but a list or an array of NumPy's; None is none of them."""
    for name, value in given.items():
        if value is None or isinstance(value, Tensor):
            continue
        if isinstance(value, Weigher):
            raise UserError(
                f"{name} must be a tensor, but came as a weigher: pass what its weigh(losses, logits, labels, "
                "progress=progress, indices=indices) gives."
            )
        kind = type(value).__name__
        remedy = f"pass the {name} in it" if isinstance(value, Mapping) else f"use torch.as_tensor({name})"
        raise UserError(f"{name} must be a tensor, but came as {kind}: {remedy}.")


def check_device(device: torch.device | str) -> None:
    """Raise `UserError` unless tensors can live on the device."""
    try:
        torch.zeros(1, device=torch.device(device)).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise UserError(f"there is no device '{device}' here: use cpu, or cuda where PyTorch finds a GPU.") from error


def tensor_of(values: Any, wanted: str) -> Tensor:
    """Values as a tensor, or a `UserError` that says what was wanted."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(wanted) from error


def weighted_mean(losses: Tensor, weights: Tensor, valid: Tensor | None = None) -> Tensor:
    """Equation 7's weighted loss, `mean(weights * losses)`; all-ones weights give `losses.mean()` to the bit.

    Where some do not count, such as tokens to ignore, `valid` tells which do: the mean is over these.
    """
    check_tensors(losses=losses, weights=weights, valid=valid)
    require(
        losses.shape == weights.shape,
        f"losses of shape {tuple(losses.shape)} do not fit weights of shape {tuple(weights.shape)}: compute them with "
        "reduction='none'.",
    )
    if valid is None:
        return (weights * losses).mean()
    require(
        valid.shape == losses.shape and valid.dtype == torch.bool,
        f"valid tells of each loss whether it counts, {tuple(losses.shape)} of bool, but is {tuple(valid.shape)} of "
        f"{valid.dtype}.",
    )
    return (weights * losses).where(valid, 0).sum() / valid.sum().clamp(min=1)
