"""Task: what a sample's loss is, what the score is (higher is better), and which features make sense."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, huber_loss, mse_loss

from autoweight.config import IGNORED, Feature, TaskName
from autoweight.data.inputs import Inputs, arguments, outputs_of
from autoweight.strategy.weigher import weighted_mean

_ROUNDING = 1e-15  # times the root of their number: what rounding leaves of the variance of equal values


class Task(NamedTuple):
    """How networks are trained and judged. Scores are made of sums over samples, so that chunks can be added."""

    name: TaskName
    features: tuple[Feature, ...]
    """Those that a strategy may use."""
    score_name: str
    losses: Callable[[Tensor, Tensor], Tensor]
    """Every sample's loss, from outputs and labels."""
    tally: Callable[[Tensor, Tensor], Tensor]
    """Sums over samples that the score is made of, `[k]`."""
    score: Callable[[Tensor], Tensor]
    """The score, from sums over all samples."""
    counts: Callable[[Tensor], Tensor] | None = None
    """Which of the losses count, where some do not."""

    def mean(self, losses: Tensor, weights: Tensor | None, labels: Tensor) -> Tensor:
        """The mean of the losses that count, weighted or not."""
        valid = None if self.counts is None else self.counts(labels)
        if weights is None:
            return losses.mean() if valid is None else losses.where(valid, 0).sum() / valid.sum().clamp(min=1)
        return weighted_mean(losses, weights, valid)


def forward(model: nn.Module, inputs: Inputs) -> Tensor:
    """A network's outputs for inputs of any structure."""
    args, named = arguments(inputs)
    return outputs_of(model(*args, **named))


def _class_losses(outputs: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(outputs.float(), labels, reduction="none")


def _token_losses(outputs: Tensor, labels: Tensor) -> Tensor:
    flat = cross_entropy(outputs.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none")
    return flat.view_as(labels)


def _label_losses(outputs: Tensor, labels: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(outputs.float(), labels, reduction="none").mean(dim=-1)


def _target_losses(loss: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def losses(outputs: Tensor, labels: Tensor) -> Tensor:
        single = loss(outputs.float().reshape(labels.shape), labels, reduction="none")
        return single if single.dim() == 1 else single.flatten(1).mean(dim=1)

    return losses


def _right(outputs: Tensor, labels: Tensor) -> Tensor:
    """How many labels the network puts first, and how many count."""
    counted = labels != IGNORED
    right = (outputs.argmax(dim=-1) == labels) & counted
    return torch.stack([right.sum(), counted.sum()]).double()


def _share(sums: Tensor) -> Tensor:
    return sums[..., 0] / sums[..., 1]


def _found(outputs: Tensor, labels: Tensor) -> Tensor:
    """Of every label: how often it was found, wrongly said, and missed."""
    said, true = outputs > 0, labels > 0.5
    return torch.cat([(said & true).sum(dim=0), (said & ~true).sum(dim=0), (~said & true).sum(dim=0)]).double()


def _macro_f1(sums: Tensor) -> Tensor:
    """The mean over the labels of F1 at a probability of 0.5; of a label that never comes and is never said, 1."""
    found, wrong, missed = sums.chunk(3, dim=-1)
    whole = 2 * found + wrong + missed
    return torch.where(whole > 0, 2 * found / whole.clamp(min=1), 1.0).mean(dim=-1)


def _errors(outputs: Tensor, labels: Tensor) -> Tensor:
    """Of every target: squared errors, values, their squares, and how many."""
    labels = labels.double().reshape(len(labels), -1)
    errors = outputs.double().reshape(labels.shape) - labels
    sums = [errors.square(), labels, labels.square(), torch.ones_like(labels)]
    return torch.cat([one.sum(dim=0) for one in sums])


def _r2(sums: Tensor) -> Tensor:
    """The share of the targets' variance that is explained, mean over the targets.

    Of a target that does not vary it is 1 without an error, else 0, as scikit-learn has it.
    """
    errors, values, squares, count = sums.chunk(4, dim=-1)
    variance = squares - values.square() / count
    varies = variance > _ROUNDING * count.sqrt() * squares
    explained = 1 - errors / variance.where(varies, 1)
    return explained.where(varies, (errors == 0).to(errors.dtype)).mean(dim=-1)


_OF_CLASSES: tuple[Feature, ...] = ("loss", "entropy", "density", "label", "margin", "history", "belief")
_OF_TARGETS: tuple[Feature, ...] = ("loss", "density", "history")

TASKS: dict[TaskName, Task] = {
    "classification": Task("classification", _OF_CLASSES, "accuracy", _class_losses, _right, _share),
    "multilabel": Task(
        "multilabel", ("loss", "entropy", "density", "history"), "macro_f1", _label_losses, _found, _macro_f1
    ),
    "regression": Task("regression", _OF_TARGETS, "r2", _target_losses(mse_loss), _errors, _r2),
    "huber": Task("huber", _OF_TARGETS, "r2", _target_losses(huber_loss), _errors, _r2),
    "tokens": Task(
        "tokens", _OF_CLASSES, "accuracy", _token_losses, _right, _share, counts=lambda labels: labels != IGNORED
    ),
}
