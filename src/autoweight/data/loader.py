"""Device-resident loading: the whole set stays on the device; a batch is a row of an epoch's plan."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.config import Augmentation
from autoweight.data.augmentation import AUGMENTATIONS
from autoweight.data.dataset import Samples
from autoweight.data.inputs import Inputs, each
from autoweight.data.labelled import Labelled
from autoweight.data.mixing import mix
from autoweight.data.threads import one_thread
from autoweight.errors import look_up, require


class Batch(NamedTuple):
    """One training batch; `indices` are positions in the training set."""

    inputs: Inputs
    labels: Tensor
    indices: Tensor


class EpochPlan(NamedTuple):
    """All that is random about an epoch's batches, `[steps, batch, ...]` each; drawn on the CPU for any device."""

    indices: Tensor
    window: Tensor
    """What is seen of an augmented image, `[steps, batch, numbers]`: see augmentation.py."""
    flip: Tensor

    def row(self, step: int | Tensor) -> "EpochPlan":
        """One step's row; a tensor chooses on the device, without the host knowing."""
        if isinstance(step, int):
            return EpochPlan(*(part[step] for part in self))
        return EpochPlan(*(part.index_select(0, step.view(1)).squeeze(0) for part in self))


class Loader:
    """Batches of a set in an order that depends on the seed and the step alone.

    Every epoch is a fresh shuffle, whose last incomplete batch is left out so that all batches have one size. Since
    nothing is remembered from batch to batch, a training can start at any step and sees what it would have seen.
    """

    def __init__(self, samples: Labelled, batch_size: int, seed: int, augmentation: Augmentation = "none") -> None:
        self.augmentation, self.augment = augmentation, look_up("augmentation", augmentation, AUGMENTATIONS)
        shape = samples.input_shape
        images = isinstance(shape, tuple) and len(shape) == 3
        require(augmentation == "none" or images, f"only images can be augmented, not inputs of shape {shape}.")
        self.samples = samples
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = len(samples) // batch_size

    def plan(self, epoch: int) -> EpochPlan:
        """An epoch's plan, on the set's device."""
        return EpochPlan(*(_send(part, self.samples.device) for part in self.draw(epoch)))

    @one_thread()  # several would wait for the cores that workers use, and the steps for them
    def draw(self, epoch: int) -> EpochPlan:
        """An epoch's plan, on the CPU."""
        generator = torch.Generator().manual_seed(mix(self.seed, epoch))
        shape = (self.steps_per_epoch, self.batch_size)
        indices = torch.randperm(len(self.samples), generator=generator)[: shape[0] * shape[1]].view(shape)
        return EpochPlan(indices, *self.augment.draw(shape, self.samples.input_shape, generator))

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The batches of steps `start` to `stop - 1`, counted over the whole training."""
        for _, row in self._rows(start, stop, self.plan):
            yield self.batch(row)

    def batch(self, row: EpochPlan) -> Batch:
        """The batch that a row of a plan describes."""
        assert isinstance(self.samples, Samples), "only what lies on the device can be picked by a row alone"
        inputs = each(self.samples.inputs, lambda part: part[row.indices])
        return Batch(self.augmented(inputs, row), self.samples.labels[row.indices], row.indices)

    def augmented(self, inputs: Inputs, row: EpochPlan) -> Inputs:
        """Inputs of a row, augmented as it says."""
        return each(inputs, lambda images: self.augment.apply(images, row.window, row.flip))

    def look(self) -> Inputs:
        """Inputs of some samples, as networks get them."""
        return self.batch(self.plan(0).row(0)).inputs

    def _rows(self, start: int, stop: int, make_plan: Callable[[int], EpochPlan]) -> Iterator[tuple[int, EpochPlan]]:
        """The epoch of each of these steps, and its row of that epoch's plan, which is made once."""
        plan, plan_epoch = None, -1
        for step in range(start, stop):
            epoch, place = divmod(step, self.steps_per_epoch)
            if plan is None or epoch != plan_epoch:
                plan, plan_epoch = make_plan(epoch), epoch
            yield epoch, plan.row(place)


@one_thread()
def _send(part: Tensor, device: torch.device) -> Tensor:
    """To a GPU without waiting for what it is doing."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else part.to(device)
