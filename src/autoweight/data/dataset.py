"""Labelled samples as tensors, with what was done to each of them kept."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import TaskName
from autoweight.data.inputs import Inputs, each, parts, shapes
from autoweight.data.labels import check_labels
from autoweight.errors import require


@dataclass(frozen=True)
class Samples:
    """A set of samples. `labels` are those to train on; where they were corrupted, `true_labels` differ."""

    inputs: Inputs
    labels: Tensor
    """Classes `[n]`, classes of tokens `[n, tokens]`, or float targets `[n]` or `[n, targets]`."""
    true_labels: Tensor
    source: Tensor
    """Each sample's position in the set that it was taken from."""
    num_classes: int
    """How many classes, or targets."""
    names: NDArray[np.str_] | None = None
    """What users call each sample, such as its file, where it has a name."""
    class_names: tuple[str, ...] = ()
    """What users call each class, where they have names."""

    @classmethod
    def of(
        cls, inputs: Inputs, labels: Tensor, num_classes: int | None = None, task: TaskName = "classification"
    ) -> "Samples":
        """Checked samples; without `num_classes` the largest label tells how many there are."""
        labels, classes = check_labels(labels, num_classes, task)
        for part in parts(inputs):
            _check_inputs(part, labels)
        return cls(inputs, labels, labels, torch.arange(len(labels)), classes)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self.labels.device

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, not float targets."""
        return not self.labels.is_floating_point()

    @property
    def clean(self) -> Tensor:
        """Which samples carry their true label, `[n]` of bool."""
        equal = self.labels == self.true_labels
        return equal if equal.dim() == 1 else equal.flatten(1).all(dim=1)

    @property
    def class_counts(self) -> Tensor:
        """How many samples carry each label, `[classes]`; of float targets, how many samples there are."""
        if not self.has_classes:
            return torch.full((self.num_classes,), len(self), device=self.device)
        labels = self.labels.flatten()
        return torch.bincount(labels[labels >= 0], minlength=self.num_classes)

    @property
    def input_shape(self) -> Any:
        """The shape of one sample's input, without the dimension of samples."""
        return shapes(self.inputs)

    def take(self, positions: Tensor) -> "Samples":
        """The samples at these positions."""
        return replace(
            self,
            inputs=each(self.inputs, lambda part: part[positions]),
            labels=self.labels[positions],
            true_labels=self.true_labels[positions],
            source=self.source[positions],
            names=None if self.names is None else self.names[positions.cpu().numpy()],
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
            inputs=each(self.inputs, lambda part: part.to(device)),
            labels=self.labels.to(device),
            true_labels=self.true_labels.to(device),
            source=self.source.to(device),
        )


def check_training_data(train: Samples, val: Samples, batch_size: int) -> None:
    """Raise `UserError` where a training on these sets could not give a meaningful network."""
    require(len(train) > 0, "the training set is empty.")
    require(len(val) > 0, "the validation set is empty: hold out some trusted samples.")
    require(
        train.num_classes == val.num_classes,
        f"the training set has {train.num_classes} classes, but the validation set has {val.num_classes}.",
    )
    kinds = [f"{_dtypes(part.inputs)} of shape {part.input_shape}" for part in (train, val)]
    require(kinds[0] == kinds[1], f"training inputs are {kinds[0]}, but validation inputs {kinds[1]}: make them alike.")
    missing = (train.class_counts == 0).nonzero().flatten().tolist()
    require(
        not missing,
        f"class {missing[0] if missing else ''} has no training sample, but labels go up to {train.num_classes - 1}: "
        "add samples, drop the class, or correct labels that are too large or do not count from 0.",
    )
    require(
        batch_size <= len(train),
        f"a batch of {batch_size} is larger than the training set of {len(train)}: use a smaller batch_size.",
    )


def _check_inputs(inputs: Tensor, labels: Tensor) -> None:
    require(inputs.dim() > 1, "inputs need a dimension of samples and at least one of values.")
    require(len(inputs) == len(labels), f"there are {len(inputs)} inputs, but {len(labels)} labels.")
    bad = ~inputs.isfinite().flatten(1).all(dim=1) if inputs.is_floating_point() else torch.zeros(1, dtype=torch.bool)
    require(not bad.any(), f"sample {int(bad.int().argmax())} has a NaN or infinite input: clean or drop it.")


def _dtypes(inputs: Inputs) -> str:
    return ", ".join(str(part.dtype) for part in parts(inputs))
