"""Biases put into training sets on purpose, wrong labels and rare classes, as pure functions with a seed."""

import torch
from torch import Tensor

from autoweight.config import DataConfig
from autoweight.data.dataset import Samples
from autoweight.errors import require


def corrupt(train: Samples, config: DataConfig, seed: int) -> Samples:
    """A training set with the configured bias: rare classes first, then wrong labels."""
    match config.imbalance:
        case "step":
            train = step_imbalance(train, config.rare_classes, config.imbalance_factor, seed)
        case "longtail":
            train = long_tail(train, config.imbalance_factor, seed)
    match config.noise:
        case "uniform":
            train = uniform_noise(train, config.noise_rate, seed)
        case "uniform_other":
            train = uniform_noise(train, config.noise_rate, seed, redraw_true=False)
        case "asymmetric":
            train = asymmetric_noise(train, config.noise_rate, seed)
    return train


def uniform_noise(samples: Samples, noise_rate: float, seed: int, *, redraw_true: bool = True) -> Samples:
    """Each label, with probability `noise_rate`, becomes a class drawn uniformly.

    With `redraw_true` (the paper's and its authors' convention) the true class may be drawn again, so that a share of
    `noise_rate * (1 - 1 / classes)` ends up wrong; without it, `noise_rate` does.
    """
    generator, changed = _draw_changed(samples, noise_rate, seed)
    if redraw_true:
        drawn = torch.randint(samples.num_classes, (len(samples),), generator=generator)
    else:
        require(samples.num_classes > 1, "wrong labels need at least two classes.")
        offset = torch.randint(1, samples.num_classes, (len(samples),), generator=generator)
        drawn = (samples.labels + offset) % samples.num_classes
    return samples.relabel(torch.where(changed, drawn, samples.labels))


def asymmetric_noise(samples: Samples, noise_rate: float, seed: int, mapping: Tensor | None = None) -> Samples:
    """Each label, with probability `noise_rate`, becomes the class that `mapping` sends it to; by default the next."""
    if mapping is None:
        mapping = (torch.arange(samples.num_classes) + 1) % samples.num_classes
    require(
        len(mapping) == samples.num_classes and int(mapping.min()) >= 0 and int(mapping.max()) < samples.num_classes,
        f"a mapping sends each of the {samples.num_classes} classes to one of them.",
    )
    _, changed = _draw_changed(samples, noise_rate, seed)
    return samples.relabel(torch.where(changed, mapping[samples.labels], samples.labels))


def step_imbalance(samples: Samples, rare_classes: tuple[int, ...], factor: float, seed: int) -> Samples:
    """Cut the `rare_classes` to `1 / factor` of their size (the paper: classes 0 and 1, factor 25); keep the others."""
    for label in rare_classes:
        require(0 <= label < samples.num_classes, f"rare class {label} is not among the {samples.num_classes} classes.")
    shares = torch.ones(samples.num_classes)
    shares[list(rare_classes)] = 1 / _checked_factor(factor)
    return _keep_shares(samples, shares, seed)


def long_tail(samples: Samples, factor: float, seed: int) -> Samples:
    """Cut class c to `factor ** (-c / (classes - 1))` of its size, so that the first is `factor` times the last."""
    ranks = torch.arange(samples.num_classes) / max(samples.num_classes - 1, 1)
    return _keep_shares(samples, _checked_factor(factor) ** -ranks, seed)


def _draw_changed(samples: Samples, noise_rate: float, seed: int) -> tuple[torch.Generator, Tensor]:
    require(0 <= noise_rate <= 1, f"noise_rate is a probability, from 0 to 1, but was {noise_rate}.")
    generator = torch.Generator().manual_seed(seed)
    return generator, torch.rand(len(samples), generator=generator) < noise_rate


def _checked_factor(factor: float) -> float:
    require(factor >= 1, f"imbalance_factor is largest over smallest class, so at least 1, but was {factor}.")
    return factor


def _keep_shares(samples: Samples, shares: Tensor, seed: int) -> Samples:
    """Keep a random share of each class, at least one sample of each, in the original order."""
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))
    shuffled = samples.labels[order]
    kept = []
    for label in range(samples.num_classes):
        members = order[shuffled == label]
        kept.append(members[: max(round(len(members) * float(shares[label])), 1)])
    return samples.take(torch.cat(kept).sort().values)
