"""Samples' indices: what they may be, which places in a memory they stand for, and what comes twice in a batch."""

from numbers import Integral

import torch
from torch import Tensor

from autoweight.errors import UserError, require
from autoweight.strategy.weigher import Weigher, check_device


def weigh_once(
    weigher: Weigher, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor
) -> Tensor | None:
    """Weights of a batch in which samples come several times, each by the row in which it comes first.

    None where none does.
    """
    if any(one.shape[:1] != losses.shape[:1] for one in (logits, labels, indices)) or not losses.dim():
        return None  # which is refused further on
    if indices.unique().numel() == indices.numel():
        return None
    places = indices.to(losses.device)
    samples, sample_of = torch.unique(places, dim=0, return_inverse=True)
    if len(samples) == len(places):
        return None
    rows = torch.arange(len(places), device=places.device)
    first = torch.full_like(rows[: len(samples)], len(rows)).scatter_reduce(0, sample_of, rows, "amin")
    once = losses[first], logits[first], labels[first]
    if not labels.is_floating_point() and not torch.equal(labels[first][sample_of], labels):
        raise UserError(
            "an index comes twice in this batch, with two labels: indices are positions in the whole training set, so "
            "wrap that in aw.Indexed, not its parts."
        )
    return weigher.weigh(*once, progress=progress, indices=places[first])[sample_of]


def places_of(indices: Tensor | None, losses: Tensor) -> Tensor:
    """A place for each loss: a sample's index, or, for tokens, the sample's block of as many places as tokens."""
    if indices is None:
        raise UserError(
            "this strategy remembers samples: pass their positions, weigh(..., indices=indices); "
            "aw.Indexed(dataset) yields them with each sample."
        )
    check_whole(indices)
    if indices.shape == losses.shape:
        return indices.reshape(-1).long()
    if indices.shape != losses.shape[:1]:
        raise UserError(f"there must be one index a sample, {len(losses)}, but their shape is {tuple(indices.shape)}.")
    tokens = torch.arange(losses.shape[1], device=indices.device)
    return (indices.long().unsqueeze(-1) * losses.shape[1] + tokens).reshape(-1)


def check_place(num_samples: int, num_classes: int, device: torch.device | str) -> None:
    """Raise `UserError` where there cannot be a memory of these sizes on this device."""
    require(
        all(isinstance(size, Integral) and size >= 0 for size in (num_samples, num_classes)),
        "a memory is of whole numbers of samples and classes, those of the training set, but was to be of "
        f"{num_samples!r} and {num_classes!r}.",
    )
    check_device(device)


def check_range(lowest: int, highest: int, num_samples: int | None) -> None:
    """Raise `UserError` where indices cannot be positions in a set of that many samples, if that is known."""
    if lowest < 0:
        raise UserError(f"index {lowest} is negative: indices are positions in the training set, from 0 on.")
    if num_samples is not None and highest >= num_samples:
        raise UserError(
            f"index {highest} is out of range: the memory is of {num_samples} samples, those of the training set."
        )


def check_whole(indices: Tensor) -> None:
    """Raise `UserError` where indices are no whole numbers: a mask is none."""
    if indices.is_floating_point() or indices.dtype == torch.bool:
        raise UserError(
            f"indices must be whole numbers, but are {indices.dtype}: pass positions in the training set, as "
            "aw.Indexed(dataset) yields them."
        )
