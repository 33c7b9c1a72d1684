"""What sets of labelled samples share, whether they lie in memory (`Samples`) or are read as they come (`Streamed`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.data.inputs import Inputs


class Labelled(ABC):
    """A set of samples whose labels are known. Those to train on may have been corrupted: `true_labels` then differ."""

    labels: Tensor
    """Classes `[n]`, classes of tokens `[n, tokens]`, or float targets `[n]` or `[n, targets]`."""
    true_labels: Tensor
    source: Tensor
    """Each sample's position in the set that it was taken from."""
    num_classes: int
    """How many classes, or targets."""
    names: NDArray[np.str_] | None
    """What users call each sample, such as its file, where it has a name."""
    class_names: tuple[str, ...]
    """What users call each class, where they have names."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def device(self) -> torch.device:
        """Where the samples are, or where their batches go."""
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

    def class_name(self, label: int) -> str:
        """What users call a class: its name, or its number."""
        return self.class_names[label] if self.class_names else str(label)

    def relabel(self, labels: Tensor) -> Self:
        """The same samples with other labels to train on; the true ones stay known."""
        return replace(self, labels=labels)  # type: ignore[type-var]

    def trusted(self) -> Self:
        """The same samples with their true labels, as if somebody had checked each."""
        return self.relabel(self.true_labels)

    @property
    @abstractmethod
    def input_shape(self) -> Any:
        """The shape of one sample's input, without the dimension of samples."""

    @abstractmethod
    def head(self, count: int) -> Inputs:
        """The inputs of the first few samples."""

    @abstractmethod
    def chunks(self, size: int) -> Iterator[tuple[Inputs, Tensor]]:
        """All inputs in order, some at a time, each with its labels."""

    @abstractmethod
    def take(self, positions: Tensor) -> Self:
        """The samples at these positions."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """The same samples on another device."""
