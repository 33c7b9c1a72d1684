"""Labelled samples as tensors, with what was done to each of them kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.config import TaskName
from autoweight.data.inputs import Inputs, each, parts, rows, shapes
from autoweight.data.labelled import Labelled
from autoweight.data.labels import check_labels
from autoweight.errors import require


@dataclass(frozen=True)
class Samples(Labelled):
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

    @property
    def input_shape(self) -> Any:
        """The shape of one sample's input, without the dimension of samples."""
        return shapes(self.inputs)

    def head(self, count: int) -> Inputs:
        """The inputs of the first few samples."""
        return rows(self.inputs, slice(count))

    def chunks(self, size: int) -> Iterator[tuple[Inputs, Tensor]]:
        """All inputs in order, some at a time, each with its labels."""
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield rows(self.inputs, part), self.labels[part]

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

    def to(self, device: torch.device | str) -> "Samples":
        """The same samples on another device."""
        return replace(
            self,
            inputs=each(self.inputs, lambda part: part.to(device)),
            labels=self.labels.to(device),
            true_labels=self.true_labels.to(device),
            source=self.source.to(device),
        )


def _check_inputs(inputs: Tensor, labels: Tensor) -> None:
    require(inputs.dim() > 1, "inputs need a dimension of samples and at least one of values.")
    require(len(inputs) == len(labels), f"there are {len(inputs)} inputs, but {len(labels)} labels.")
    bad = ~inputs.isfinite().flatten(1).all(dim=1) if inputs.is_floating_point() else torch.zeros(1, dtype=torch.bool)
    require(not bad.any(), f"sample {int(bad.int().argmax())} has a NaN or infinite input: clean or drop it.")
