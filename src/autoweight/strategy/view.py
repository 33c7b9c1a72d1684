"""What weighers see of a batch, and what is wrong with one that cannot be weighed."""

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.config import IGNORED
from autoweight.errors import UserError
from autoweight.strategy.weigher import check_tensors

_ONE_LOGIT = "For one logit z of two classes, [batch, 1], pass torch.cat([-z, z], dim=1) / 2."


class View(NamedTuple):
    """What a rule sees of a batch: one row a sample, no gradients, zeros where a sample is not valid."""

    losses: Tensor
    logits: Tensor
    labels: Tensor
    valid: Tensor
    label_values: Tensor | None = None
    progress: float | Tensor | None = None
    """How much of the training is done, where that is known."""


def check_batch(losses: Tensor, logits: Tensor, labels: Tensor, num_classes: int | None = None) -> None:
    """Raise `UserError` where a batch of classified samples cannot be weighed: torch would broadcast or wrap it.

    Labels have to lie below `num_classes`, or the number of logits. That is checked on a CPU only: a GPU would have to
    be waited for.
    """
    check_tensors(losses=losses, logits=logits, labels=labels)
    # Not by require, which would have every sentence made at every step.
    if losses.dim() != 1 or logits.dim() != 2 or not losses.shape == labels.shape == logits.shape[:1]:
        needed = "losses [batch] (reduction='none'), logits [batch, classes] and labels [batch]"
        raise UserError(f"weights need {needed}, but shapes are {_shapes(losses, logits, labels)}.")
    _check_numbers(losses)
    classes = logits.shape[1] if num_classes is None else num_classes
    check_classes(labels, classes, "Leave out samples without a label.")


def check_classes(labels: Tensor, classes: int, advice: str) -> None:
    """Raise `UserError` unless labels are classes below that number, which is looked at on a CPU only."""
    if labels.dtype not in (torch.int64, torch.int32):
        raise UserError(f"labels must be int64, but are {labels.dtype}: use .long().")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling() and labels.numel():
        last = classes - 1
        if not torch.equal(labels.clamp(0, last), labels):
            lowest, highest = map(int, labels.aminmax())
            wrong = lowest if lowest < 0 else highest
            known = "1 class" if classes == 1 else f"{classes} classes"
            advice = _ONE_LOGIT if classes == 1 else advice
            raise UserError(f"label {wrong} is out of range: with {known}, labels go from 0 to {last}. {advice}")


def view_of(
    losses: Tensor, logits: Tensor, labels: Tensor, label_values: Tensor | None = None, *, checked: bool = False
) -> View:
    """A batch, one row a sample; where its classes were `checked` beforehand, nobody looks at them again.

    Whole labels are classes, `[batch]`, or those of tokens, `[batch, tokens]`, each of which is a sample unless its
    label is -100. Float labels are targets of the outputs' shape: several labels, or regression. A sample whose loss or
    logits are no numbers does not count; a logit of -inf, a class that is masked out, is one.
    """
    check_tensors(losses=losses, logits=logits, labels=labels)
    losses, logits, counts = losses.detach(), logits.detach(), None
    if labels.is_floating_point() and logits.numel() == labels.numel():
        _check_targets(losses, logits, labels)
        logits, labels = logits.reshape(len(losses), -1), labels.reshape(len(losses), -1)
    elif labels.dim() == 2 and logits.dim() == 3:
        _check_tokens(losses, logits, labels)
        if not checked:
            _check_token_labels(labels, logits.shape[-1])
        losses, logits, labels = losses.reshape(-1), logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        counts = labels != IGNORED
    elif not checked:
        check_batch(losses, logits, labels, None if label_values is None else len(label_values))
    losses, logits = losses.float(), logits.float()
    valid = (losses + logits.amax(dim=-1)).abs() < inf  # not so of NaN; isfinite() takes twice the operations
    valid = valid if counts is None else valid & counts
    return View(losses.where(valid, 0), logits.where(valid.unsqueeze(-1), 0), labels, valid, label_values)


def _check_targets(losses: Tensor, logits: Tensor, labels: Tensor) -> None:
    if losses.dim() != 1 or not losses.shape == labels.shape[:1] == logits.shape[:1]:
        raise UserError(
            "weights need losses [batch] (the mean over a sample's labels), and outputs and labels of one shape, "
            f"[batch, ...], but shapes are {_shapes(losses, logits, labels)}."
        )
    _check_numbers(losses)


def _check_tokens(losses: Tensor, logits: Tensor, labels: Tensor) -> None:
    if losses.shape != labels.shape or logits.shape[:2] != labels.shape:
        needed = "losses [batch, tokens], logits [batch, tokens, classes] and labels [batch, tokens]"
        raise UserError(f"weights of tokens need {needed}, but shapes are {_shapes(losses, logits, labels)}.")
    _check_numbers(losses)


def _check_token_labels(labels: Tensor, classes: int) -> None:
    on_host = labels.device.type == "cpu" and not torch.compiler.is_compiling()
    own = labels[labels != IGNORED] if on_host else labels
    check_classes(own, classes, f"Tokens to ignore have the label {IGNORED}.")


def _shapes(losses: Tensor, logits: Tensor, labels: Tensor) -> str:
    return f"{tuple(losses.shape)}, {tuple(logits.shape)} and {tuple(labels.shape)}"


def _check_numbers(losses: Tensor) -> None:
    if not losses.is_floating_point():
        raise UserError(f"losses must be real numbers, but are {losses.dtype}.")
    if losses.numel() == 0:
        raise UserError("the batch is empty: there is nothing to weigh.")
