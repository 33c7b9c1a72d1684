"""Device-resident loading: the whole set stays on the device; a batch is a row of indices."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.config import Augmentation
from autoweight.data.dataset import Samples


class Batch(NamedTuple):
    """One training batch; `indices` are positions in the training set."""

    inputs: Tensor
    labels: Tensor
    indices: Tensor


def mix(*numbers: int) -> int:
    """One well-spread seed made of several numbers, such as a run's seed and a step."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ number) * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) % 2**64
        state ^= state >> 31
    return state % 2**63


class Loader:
    """Batches of a set in an order that depends on the seed and the step alone.

    Every epoch is a fresh shuffle, whose last incomplete batch is left out so that all batches have one size. Since
    nothing is remembered from batch to batch, a training can start at any step and sees what it would have seen.
    """

    def __init__(self, samples: Samples, batch_size: int, seed: int, augmentation: Augmentation = "none") -> None:
        self.samples = samples
        self.batch_size = batch_size
        self.seed = seed
        self.augmentation = augmentation
        self.steps_per_epoch = len(samples) // batch_size

    def epoch_indices(self, epoch: int) -> Tensor:
        """The batches of an epoch as rows of indices, `[steps_per_epoch, batch_size]`."""
        generator = torch.Generator().manual_seed(mix(self.seed, epoch))
        order = torch.randperm(len(self.samples), generator=generator)
        used = order[: self.steps_per_epoch * self.batch_size]
        return used.view(self.steps_per_epoch, self.batch_size).to(self.samples.labels.device)

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The batches of steps `start` to `stop - 1`, counted over the whole training."""
        rows, rows_epoch = None, -1
        for step in range(start, stop):
            epoch, row = divmod(step, self.steps_per_epoch)
            if rows is None or epoch != rows_epoch:
                rows, rows_epoch = self.epoch_indices(epoch), epoch
            yield self._batch(rows[row], step)

    def _batch(self, indices: Tensor, step: int) -> Batch:
        inputs = self.samples.inputs[indices]
        if self.augmentation == "crop_flip":
            inputs = crop_flip(inputs, torch.Generator(inputs.device).manual_seed(mix(self.seed, step, 1)))
        return Batch(inputs, self.samples.labels[indices], indices)


def crop_flip(images: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Shift each image `[batch, channels, height, width]` by up to `padding` pixels over zeros; flip half of them."""
    batch, _, height, width = images.shape
    device = images.device
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    top = torch.randint(2 * padding + 1, (batch, 1), generator=generator, device=device)
    left = torch.randint(2 * padding + 1, (batch, 1), generator=generator, device=device)
    flip = torch.rand((batch, 1), generator=generator, device=device) < 0.5
    rows = top + torch.arange(height, device=device)
    columns = torch.arange(width, device=device)
    columns = left + torch.where(flip, columns.flip(0), columns)
    picked = padded[torch.arange(batch, device=device)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2).contiguous()
