"""Weigher: what turns one batch's losses into sample weights, and the weighted loss made of them."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from autoweight.errors import UserError, require


class Weigher(ABC):
    """Gives every sample of a batch a weight of at least 0; weights of 1 change nothing."""

    capturable = True
    """Whether `weigh` can be captured in a CUDA graph: its host code decides nothing by the data or the progress."""

    @abstractmethod
    def weigh(
        self,
        losses: Tensor,
        logits: Tensor,
        labels: Tensor,
        progress: float | Tensor,
        indices: Tensor | None = None,
    ) -> Tensor:
        """Weights `[batch]`, without gradient.

        `progress` is the fraction of the training done, in [0, 1); a tensor where the step is captured in a CUDA
        graph, so that the host does not know it. `indices` are the samples' positions in the training set, for
        weighers that know or remember single samples.
        """

    def observe_accuracy(self, accuracy: float) -> None:  # noqa: B027 - most weighers have no use for it
        """Take in the running training's validation accuracy at a stage's end; weighers may ignore it."""

    def state_dict(self) -> dict[str, Any]:
        """What has to go into a checkpoint for training to go on as if never stopped; most weighers need nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {sorted(state)}")


def check_batch(losses: Tensor, logits: Tensor, labels: Tensor, num_classes: int | None = None) -> None:
    """Raise `UserError` where a batch cannot be weighed: what torch would broadcast or wrap would weigh wrongly.

    Labels have to lie below `num_classes`, or the number of logits. That is checked on a CPU only: a GPU would have to
    be waited for.
    """
    # Not by require, which would have every sentence made at every step.
    if losses.dim() != 1 or logits.dim() != 2 or labels.dim() != 1 or not len(losses) == len(logits) == len(labels):
        shapes = f"{tuple(losses.shape)}, {tuple(logits.shape)} and {tuple(labels.shape)}"
        needed = "losses [batch] (reduction='none'), logits [batch, classes] and labels [batch]"
        raise UserError(f"weights need {needed}, but shapes are {shapes}.")
    if not losses.is_floating_point():
        raise UserError(f"losses must be real numbers, but are {losses.dtype}.")
    if labels.dtype not in (torch.int64, torch.int32):
        raise UserError(f"labels must be int64, but are {labels.dtype}: use .long().")
    if len(losses) == 0:
        raise UserError("the batch is empty: there is nothing to weigh.")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        lowest, highest = int(labels.min()), int(labels.max())
        classes = logits.shape[1] if num_classes is None else num_classes
        if lowest < 0 or highest >= classes:
            wrong, last = lowest if lowest < 0 else highest, classes - 1
            raise UserError(
                f"label {wrong} is out of range: with {classes} classes, labels go from 0 to {last}. Leave out samples "
                "that have no label."
            )


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """Equation 7's weighted loss, `mean(weights * losses)`; all-ones weights give `losses.mean()` to the bit."""
    require(
        losses.shape == weights.shape,
        f"losses of shape {tuple(losses.shape)} do not fit weights of shape {tuple(weights.shape)}: compute them with "
        "reduction='none'.",
    )
    return (weights * losses).mean()
