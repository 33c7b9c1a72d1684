"""Sample features of a batch (equation 6): loss, entropy, density and label, each normalised over the batch.

All functions are free of data-dependent control flow, so that many networks' batches can be computed as one
(`torch.vmap`), and give finite numbers for any batch: samples that are not `valid`, because their loss is not finite or
their label says to ignore them, are looked past.
"""

from collections.abc import Callable
from typing import get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from autoweight.config import Feature, LabelFeature
from autoweight.errors import require, unknown
from autoweight.strategy.view import View

FEATURES: tuple[Feature, ...] = get_args(Feature)
REMEMBERED: tuple[Feature, ...] = ("margin", "history", "belief")
"""Features that need a memory of each sample."""

_RELATIVE_EPSILON = 1e-6  # spreads below this fraction of the largest value count as rounding, not as a difference


def check_features(features: tuple[str, ...]) -> None:
    """Raise `UserError` unless `features` is a non-empty choice of known names without repetition."""
    require(len(features) > 0, f"choose at least one feature of: {', '.join(FEATURES)}.")
    for name in features:
        if name not in FEATURES:
            raise unknown("feature", name, FEATURES)
    require(len(set(features)) == len(features), "a feature is named twice.")


def normalise(values: Tensor, valid: Tensor | None = None) -> Tensor:
    """Zero mean and unit deviation over the batch's valid samples; all zeros where these have no spread."""
    valid = torch.ones_like(values, dtype=torch.bool) if valid is None else valid
    values = values.where(valid, 0)
    count = valid.sum().clamp(min=1)
    scaled = _scale_to_one(values)  # squares of large losses would overflow
    centred = (scaled - scaled.sum() / count).where(valid, 0)
    deviation = (centred.square().sum() / count).sqrt()
    return centred / (deviation + _RELATIVE_EPSILON)


def entropy(logits: Tensor, labels: Tensor | None = None) -> Tensor:
    """Entropy of the predicted probabilities, `[batch]`; 0 where they are saturated.

    Where each of several labels is predicted on its own (float labels), the mean of the labels' entropies.
    """
    if labels is not None and labels.is_floating_point():
        probabilities = logits.sigmoid()
        own = probabilities * logsigmoid(logits) + (1 - probabilities) * logsigmoid(-logits)
        return -own.mean(dim=-1)
    return torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)


def density(logits: Tensor) -> Tensor:
    """Mean dot product of a sample's logits with those of the others in the batch, up to the batch's scale.

    The rows of Lo Lo^T are summed without forming the matrix. A lone sample has density 0.
    """
    logits = _scale_to_one(logits)
    others = logits.sum(dim=0, keepdim=True) - logits
    return (logits * others).sum(dim=-1) / max(logits.shape[0] - 1, 1)


def label_values(class_counts: Tensor, kind: LabelFeature) -> Tensor:
    """What each class is worth as a feature, `[classes]`: its log frequency, or the paper's raw class index.

    That of `class_frequency` is normalised over the classes already, so that a sample's value does not depend on who
    else is in the batch. Over a batch of 128, a lone sample of a rare class would lie eleven deviations from the rest.
    """
    if kind == "raw":
        return torch.arange(len(class_counts), dtype=torch.float32, device=class_counts.device)
    counts = class_counts.to(torch.float32)
    logs = (counts.clamp(min=1) / counts.sum().clamp(min=1)).log()
    return normalise(logs) if kind == "class_frequency" else logs


def _label(view: View) -> Tensor:
    assert view.label_values is not None, "the label feature needs label_values"
    return view.label_values[view.labels.clamp(min=0)]  # those to ignore are not valid


OF_THE_BATCH: dict[str, Callable[[View], Tensor]] = {
    "loss": lambda view: view.losses,
    "entropy": lambda view: entropy(view.logits, view.labels),
    "density": lambda view: density(view.logits),
    "label": _label,
}
"""The features that the batch alone tells, before they are normalised, `[batch]`."""


def _scale_to_one(values: Tensor) -> Tensor:
    return values / values.abs().amax().clamp(min=torch.finfo(values.dtype).tiny)
