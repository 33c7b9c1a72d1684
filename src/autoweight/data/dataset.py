"""Labelled samples as tensors, with what was done to each of them kept."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from autoweight.errors import UserError, require


@dataclass(frozen=True)
class Samples:
    """A set of samples. `labels` are those to train on; where they were corrupted, `true_labels` differ."""

    inputs: Tensor
    labels: Tensor
    true_labels: Tensor
    source: Tensor
    """Each sample's position in the set that it was taken from."""
    num_classes: int

    @classmethod
    def of(cls, inputs: Tensor, labels: Tensor, num_classes: int | None = None) -> "Samples":
        """Checked samples; without `num_classes` the largest label tells how many there are."""
        _check(inputs, labels, num_classes)
        labels = labels.long()
        classes = num_classes if num_classes is not None else int(labels.max()) + 1
        return cls(inputs, labels, labels, torch.arange(len(labels)), classes)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def clean(self) -> Tensor:
        """Which samples carry their true label, `[n]` of bool."""
        return self.labels == self.true_labels

    @property
    def class_counts(self) -> Tensor:
        """How many samples carry each label, `[classes]`."""
        return torch.bincount(self.labels, minlength=self.num_classes)

    def take(self, positions: Tensor) -> "Samples":
        """The samples at these positions."""
        return replace(
            self,
            inputs=self.inputs[positions],
            labels=self.labels[positions],
            true_labels=self.true_labels[positions],
            source=self.source[positions],
        )

    def relabel(self, labels: Tensor) -> "Samples":
        """The same samples with other labels to train on; the true ones stay known."""
        return replace(self, labels=labels)

    def trusted(self) -> "Samples":
        """The same samples with their true labels, as if somebody had checked each."""
        return self.relabel(self.true_labels)

    def to(self, device: torch.device | str) -> "Samples":
        """The same samples on another device."""
        return replace(
            self,
            inputs=self.inputs.to(device),
            labels=self.labels.to(device),
            true_labels=self.true_labels.to(device),
            source=self.source.to(device),
        )


DataLike = Samples | tuple[Tensor, Tensor] | TorchDataset[tuple[Tensor, int]]


def as_samples(data: DataLike, num_classes: int | None = None) -> Samples:
    """Samples from what users hold: `Samples`, a pair of tensors, or a map-style PyTorch `Dataset`."""
    if isinstance(data, Samples):
        return data
    is_pair = isinstance(data, tuple) or (
        isinstance(data, list) and len(data) == 2 and isinstance(data[0], Tensor | np.ndarray)
    )
    if not is_pair:
        require(hasattr(data, "__getitem__"), "pass tensors or a map-style Dataset, not a DataLoader or an iterable.")
        require(hasattr(data, "__len__") and len(data) > 0, "the data set is empty or has no length.")
    try:
        columns: Any = data if is_pair else _columns(data)
        inputs, labels = (torch.as_tensor(part) for part in columns)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise UserError(
            "data are a pair of tensors, inputs and labels, or a Dataset of such pairs, all inputs of one shape and "
            f"labels integers; these are not: {error}."
        ) from error
    return Samples.of(_single(inputs), labels, num_classes)


def _columns(data: Any) -> tuple[Tensor, list[Any]]:
    """Inputs and labels of a map-style data set."""
    pairs = [data[position] for position in range(len(data))]
    inputs = torch.stack([torch.as_tensor(sample) for sample, _ in pairs])
    return inputs, [label.item() if isinstance(label, Tensor) else label for _, label in pairs]


def _single(inputs: Tensor) -> Tensor:
    """Double precision, as NumPy has it, in the single precision of networks."""
    return inputs.float() if inputs.dtype == torch.float64 else inputs


def check_training_data(train: Samples, val: Samples, batch_size: int) -> None:
    """Raise `UserError` where a training on these sets could not give a meaningful classifier."""
    require(len(train) > 0, "the training set is empty.")
    require(len(val) > 0, "the validation set is empty: hold out some trusted samples.")
    require(
        train.num_classes == val.num_classes,
        f"the training set has {train.num_classes} classes, but the validation set has {val.num_classes}.",
    )
    kinds = [f"{part.inputs.dtype} of shape {tuple(part.inputs.shape[1:])}" for part in (train, val)]
    require(kinds[0] == kinds[1], f"training inputs are {kinds[0]}, but validation inputs {kinds[1]}: make them alike.")
    missing = (train.class_counts == 0).nonzero().flatten().tolist()
    require(
        not missing,
        f"class {missing[0] if missing else ''} has no training sample, but labels go up to {train.num_classes - 1}: "
        "add samples (or raise data.train_size), drop the class, or correct a label that is too large.",
    )
    require(
        batch_size <= len(train),
        f"a batch of {batch_size} is larger than the training set of {len(train)}: use a smaller batch_size.",
    )


def _check(inputs: Tensor, labels: Tensor, num_classes: int | None) -> None:
    require(labels.numel() > 0, "the data set is empty.")
    require(
        not (labels.is_floating_point() or labels.is_complex()) and labels.dtype != torch.bool and labels.dim() == 1,
        f"labels must be whole numbers in one dimension, but are {labels.dtype} of shape {tuple(labels.shape)}.",
    )
    require(inputs.dim() > 1, "inputs need a dimension of samples and at least one of values.")
    require(len(inputs) == len(labels), f"there are {len(inputs)} inputs, but {len(labels)} labels.")
    lowest, highest = int(labels.long().min()), int(labels.long().max())
    require(lowest >= 0, f"labels count from 0, but one is {lowest}.")
    require(
        num_classes is None or highest < num_classes,
        f"label {highest} is out of range: with {num_classes} classes, labels go from 0 to {(num_classes or 0) - 1}.",
    )
    bad = ~inputs.isfinite().flatten(1).all(dim=1) if inputs.is_floating_point() else torch.zeros(1, dtype=torch.bool)
    require(not bad.any(), f"sample {int(bad.int().argmax())} has a NaN or infinite input: clean or drop it.")
