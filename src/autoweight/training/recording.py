"""What a training's record tells at a stage's end: how weights are spread, over whom, and what the losses are."""

from typing import Any

import torch
from torch import Tensor

from autoweight.data import Labelled
from autoweight.methods.record import Record

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_CLASSES = 100
"""Above, the mean weights of single classes are not written at every stage: nobody would look at them."""
_RARE = 0.5  # a class with less than this share of the mean class size is rare
_LOW = 0.5  # a weight below this share of the mean weight is low


def summary(record: Record, samples: Labelled) -> dict[str, Any]:
    """The last visits of all samples in a few numbers, as JSON takes them; empty where nothing was noted.

    `effective` is the effective sample size, (sum w)^2 / sum w^2, as a share of the samples. `groups` has the number,
    the mean weight and the mean loss of samples with right and with wrong labels, where some are known to be wrong; of
    those of rare and of other classes, where some are rare; and of those with low and with other weights.
    """
    labels = samples.labels.reshape(-1) if len(record.weight) == samples.labels.numel() else None
    seen = record.weight.isfinite() & record.loss.isfinite()
    if labels is not None and samples.has_classes:
        seen &= labels >= 0
    if not bool(seen.any()):
        return {}
    weights, losses = record.weight.double(), record.loss.double()
    numbers = _spread(weights[seen])
    if labels is not None and samples.has_classes and samples.num_classes <= MOST_CLASSES:
        numbers["by_class"] = _short(_class_means(weights[seen], labels[seen], samples.num_classes))
    groups = _groups(samples, labels, weights, seen)
    numbers["groups"] = {
        name: {
            "count": int(members.sum()),
            "weight": _short(weights[members].mean()),
            "loss": _short(losses[members].mean()),
        }
        for name, members in groups.items()
    }
    return numbers


def _spread(weights: Tensor) -> dict[str, Any]:
    """Mean, quantiles and effective sample size."""
    weights = weights.sort().values
    total, squares = weights.sum(), weights.square().sum()
    places = [round(share * (len(weights) - 1)) for share in QUANTILES]
    return {
        "mean": _short(total / len(weights)),
        "quantiles": _short(weights[places]),
        "effective": _short(total.square() / squares.clamp(min=1e-300) / len(weights)),
    }


def _groups(samples: Labelled, labels: Tensor | None, weights: Tensor, seen: Tensor) -> dict[str, Tensor]:
    """Who belongs to which group; of two groups both or none are there."""
    pairs: dict[tuple[str, str], Tensor] = {("low", "high"): weights < _LOW * weights[seen].mean()}
    if labels is not None:
        pairs["wrong", "right"] = labels != samples.true_labels.reshape(-1)
        if samples.has_classes:
            counts = samples.class_counts
            pairs["rare", "other"] = (counts < _RARE * counts.double().mean())[labels.clamp(min=0)]
    elif len(weights) == len(samples):
        pairs["wrong", "right"] = ~samples.clean
    found: dict[str, Tensor] = {}
    for names, first in pairs.items():
        both = (seen & first, seen & ~first)
        if all(bool(members.any()) for members in both):
            found |= dict(zip(names, both, strict=True))
    return found


def _class_means(weights: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    sums = torch.zeros(num_classes, dtype=weights.dtype, device=weights.device).index_add_(0, labels, weights)
    return sums / torch.bincount(labels, minlength=num_classes).clamp(min=1)


def _short(values: Tensor) -> Any:
    """Plain numbers of five digits: the lines are many."""
    numbers = values.tolist()
    return [float(f"{number:.5g}") for number in numbers] if isinstance(numbers, list) else float(f"{numbers:.5g}")
