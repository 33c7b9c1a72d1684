"""Biases put into training sets on purpose, wrong labels and rare classes, as pure functions with a seed."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from autoweight.config import DataConfig, Imbalance, Noise
from autoweight.data.labelled import Labelled
from autoweight.errors import require

Set = TypeVar("Set", bound=Labelled)


def corrupt(train: Labelled, config: DataConfig, seed: int) -> Labelled:
    """A training set with the configured bias: rare classes first, then wrong labels."""
    return NOISES[config.noise](IMBALANCES[config.imbalance](train, config, seed), config, seed)


def uniform_noise(samples: Set, noise_rate: float, seed: int, *, redraw_true: bool = True) -> Set:
    """Each label, with probability `noise_rate`, becomes a class drawn uniformly.

    With `redraw_true` (the paper's and its authors' convention) the true class may be drawn again, so that a share of
    `noise_rate * (1 - 1 / classes)` ends up wrong; without it, `noise_rate` does. Float targets, one or several, are
    exchanged for those of a sample drawn uniformly.
    """
    generator, changed = _draw_changed(samples, noise_rate, seed)
    labels = samples.labels
    if not samples.has_classes:
        other = labels[torch.randint(len(samples), (len(samples),), generator=generator)]
        return samples.relabel(torch.where(changed.view(-1, *[1] * (labels.dim() - 1)), other, labels))
    if redraw_true:
        drawn = torch.randint(samples.num_classes, labels.shape, generator=generator)
    else:
        require(samples.num_classes > 1, "wrong labels need at least two classes.")
        offset = torch.randint(1, samples.num_classes, labels.shape, generator=generator)
        drawn = (labels + offset) % samples.num_classes
    return samples.relabel(torch.where(changed & (labels >= 0), drawn, labels))


def asymmetric_noise(samples: Set, noise_rate: float, seed: int, mapping: Tensor | None = None) -> Set:
    """Each label, with probability `noise_rate`, becomes the class that `mapping` sends it to; by default the next."""
    require(samples.has_classes, "asymmetric noise mistakes one class for another: these labels are no classes.")
    if mapping is None:
        mapping = (torch.arange(samples.num_classes) + 1) % samples.num_classes
    require(
        len(mapping) == samples.num_classes and int(mapping.min()) >= 0 and int(mapping.max()) < samples.num_classes,
        f"a mapping sends each of the {samples.num_classes} classes to one of them.",
    )
    _, changed = _draw_changed(samples, noise_rate, seed)
    mistaken = mapping[samples.labels.clamp(min=0)]
    return samples.relabel(torch.where(changed & (samples.labels >= 0), mistaken, samples.labels))


CIFAR10_MISTAKES = torch.tensor([0, 1, 0, 5, 7, 3, 6, 7, 8, 1])
"""Bird to airplane, cat and dog swapped, deer to horse, truck to automobile; the others stay."""


def cifar10_asymmetric_noise(samples: Set, noise_rate: float, seed: int) -> Set:
    """The mistakes between alike classes of CIFAR-10 that the literature agrees on."""
    require(samples.num_classes == 10, f"cifar10_asymmetric is for ten classes, not {samples.num_classes}.")
    return asymmetric_noise(samples, noise_rate, seed, CIFAR10_MISTAKES)


def step_imbalance(samples: Set, rare_classes: tuple[int, ...], factor: float, seed: int) -> Set:
    """Cut the `rare_classes` to `1 / factor` of their size (the paper: classes 0 and 1, factor 25); keep the others."""
    for label in rare_classes:
        require(0 <= label < samples.num_classes, f"rare class {label} is not among the {samples.num_classes} classes.")
    shares = torch.ones(samples.num_classes)
    shares[list(rare_classes)] = 1 / _checked_factor(factor)
    return _keep_shares(samples, shares, seed)


def long_tail(samples: Set, factor: float, seed: int) -> Set:
    """Cut class c to `factor ** (-c / (classes - 1))` of its size, so that the first is `factor` times the last."""
    ranks = torch.arange(samples.num_classes) / max(samples.num_classes - 1, 1)
    return _keep_shares(samples, _checked_factor(factor) ** -ranks, seed)


NOISES: dict[Noise, Callable[[Labelled, DataConfig, int], Labelled]] = {
    "none": lambda samples, config, seed: samples,
    "uniform": lambda samples, config, seed: uniform_noise(samples, config.noise_rate, seed),
    "uniform_other": lambda samples, config, seed: uniform_noise(samples, config.noise_rate, seed, redraw_true=False),
    "asymmetric": lambda samples, config, seed: asymmetric_noise(samples, config.noise_rate, seed),
    "cifar10_asymmetric": lambda samples, config, seed: cifar10_asymmetric_noise(samples, config.noise_rate, seed),
}

IMBALANCES: dict[Imbalance, Callable[[Labelled, DataConfig, int], Labelled]] = {
    "none": lambda samples, config, seed: samples,
    "step": lambda samples, config, seed: step_imbalance(samples, config.rare_classes, config.imbalance_factor, seed),
    "longtail": lambda samples, config, seed: long_tail(samples, config.imbalance_factor, seed),
}


def _draw_changed(samples: Labelled, noise_rate: float, seed: int) -> tuple[torch.Generator, Tensor]:
    """Which labels are to change: one draw a sample, or a token."""
    require(0 <= noise_rate <= 1, f"noise_rate is a probability, from 0 to 1, but was {noise_rate}.")
    generator = torch.Generator().manual_seed(seed)
    shape = samples.labels.shape if samples.has_classes else samples.labels.shape[:1]
    return generator, torch.rand(shape, generator=generator) < noise_rate


def _checked_factor(factor: float) -> float:
    require(factor >= 1, f"imbalance_factor is largest over smallest class, so at least 1, but was {factor}.")
    return factor


def _keep_shares(samples: Set, shares: Tensor, seed: int) -> Set:
    """Keep a random share of each class, at least one sample of each, in the original order."""
    require(samples.has_classes and samples.labels.dim() == 1, "only classes of samples can be made rare.")
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))
    shuffled = samples.labels[order]
    kept = []
    for label in range(samples.num_classes):
        members = order[shuffled == label]
        kept.append(members[: max(round(len(members) * float(shares[label])), 1)])
    return samples.take(torch.cat(kept).sort().values)
