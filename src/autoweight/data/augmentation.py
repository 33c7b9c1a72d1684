"""What is done to training images, on their device and inside captured steps: a new kind is a line in `AUGMENTATIONS`.

All that is random is drawn on the CPU, for a whole epoch at a time, so that it is the same on any device.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from autoweight.config import Augmentation

_PADDING = 4
_AREA = 0.08, 1.0
_RATIO = 3 / 4, 4 / 3
_TRIES = 10


class Augment(NamedTuple):
    """A way to change images."""

    draw: Callable[[tuple[int, ...], tuple[int, ...], torch.Generator], tuple[Tensor, Tensor]]
    """Windows and flips of a number of images, from their number, `(steps, batch)`, and the shape of one."""
    apply: Callable[[Tensor, Tensor, Tensor], Tensor]
    """Images `[batch, channels, height, width]`, seen through their windows, some flipped."""


def crop_flip(images: Tensor, window: Tensor, flip: Tensor) -> Tensor:
    """Shift each image by up to 4 pixels over zeros; flip half of them."""
    height, width = images.shape[2:]
    padded = pad(images, (_PADDING,) * 4)
    rows = window[:, :1] + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device)
    columns = window[:, 1:] + torch.where(flip[:, None], columns.flip(0), columns)
    image = torch.arange(len(images), device=images.device)
    picked = padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)  # in memory channels come last, as GPUs like it


def resized_crop_flip(images: Tensor, window: Tensor, flip: Tensor) -> Tensor:
    """Enlarge a random part of each image to its whole size, between pixels; flip half of them."""
    top, left, height, width = (part[:, None] for part in window.unbind(-1))
    flipped = torch.where(flip[:, None], -width, width)
    columns = 2 * left + width - 1 + flipped * _middles(images.shape[3], images.device)  # -1 and 1 are the edges
    rows = 2 * top + height - 1 + height * _middles(images.shape[2], images.device)
    grid = torch.stack(torch.broadcast_tensors(columns[:, None, :], rows[:, :, None]), dim=-1)
    seen = grid_sample(images.float(), grid, padding_mode="border", align_corners=False)
    return seen.contiguous(memory_format=torch.channels_last)


def _middles(count: int, device: torch.device) -> Tensor:
    """The middles of pixels in a row, whose edges are -1 and 1."""
    return (2 * torch.arange(count, device=device) + 1) / count - 1


def _draw_shifts(count: tuple[int, ...], shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where windows begin in the padded image, `[steps, batch, 2]`: rows and columns."""
    top, left = torch.randint(2 * _PADDING + 1, (2, *count), generator=generator)
    return torch.stack([top, left], dim=-1), torch.rand(count, generator=generator) < 0.5


def _draw_parts(count: tuple[int, ...], shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Top, left, height and width as shares of the image's, `[steps, batch, 4]`: 8 to 100 % of it, 3:4 to 4:3.

    Parts that do not fit are drawn again, ten times at most; then the whole image is taken.
    """
    number = torch.Size(count).numel()
    sides = torch.ones(2, number)
    missing = torch.arange(number)
    for _ in range(_TRIES):
        area, ratio = torch.rand(2, len(missing), generator=generator)
        area = _AREA[0] + (_AREA[1] - _AREA[0]) * area
        ratio = torch.exp(log(_RATIO[0]) + (log(_RATIO[1]) - log(_RATIO[0])) * ratio) * shape[-2] / shape[-1]
        drawn = torch.stack([(area / ratio).sqrt(), (area * ratio).sqrt()])
        fits = (drawn <= 1).all(dim=0)
        sides[:, missing[fits]] = drawn[:, fits]
        missing = missing[~fits]
    begin = torch.rand(2, number, generator=generator) * (1 - sides)
    flip = torch.rand(count, generator=generator) < 0.5
    return torch.cat([begin, sides]).T.reshape(*count, 4).contiguous(), flip


def _draw_nothing(count: tuple[int, ...], shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    return torch.zeros(*count, 1, dtype=torch.uint8), torch.zeros(count, dtype=torch.bool)


AUGMENTATIONS: dict[Augmentation, Augment] = {
    "none": Augment(_draw_nothing, lambda images, window, flip: images),
    "crop_flip": Augment(_draw_shifts, crop_flip),
    "resized_crop_flip": Augment(_draw_parts, resized_crop_flip),
}
