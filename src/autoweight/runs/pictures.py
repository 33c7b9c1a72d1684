"""Small pictures of the samples that an audit will show, taken while the images are at hand."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from autoweight.data import Labelled

_LARGEST = 64  # pixels a side
_CLASSES, _OF_A_CLASS = 12, 5
_OVERALL = 20


def pictures_of(samples: Labelled, margins: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Small images of the samples with the smallest margins, over all and in the classes that have the worst.

    `pictures` are `[n, height, width, channels]` of 0 to 255, `pictured` the samples' positions; empty unless inputs
    are images.
    """
    shape = samples.input_shape
    if not (isinstance(shape, tuple) and len(shape) == 3 and shape[0] in (1, 3)):
        return {}
    order = np.argsort(margins, kind="stable")[: np.isfinite(margins).sum()]  # who never came up may be unreadable
    labels = samples.labels.cpu().numpy()[order]
    chosen = list(order[:_OVERALL])
    for label in list(dict.fromkeys(labels.tolist()))[:_CLASSES]:
        chosen += list(order[labels == label][:_OF_A_CLASS])
    positions = np.array(list(dict.fromkeys(map(int, chosen))))
    images, _ = next(samples.take(torch.as_tensor(positions)).chunks(len(positions)))
    if not isinstance(images, Tensor):
        return {}
    images = images.detach().float().cpu()
    return {"pictured": positions.astype(np.uint32), "pictures": _as_bytes(images)}


def _as_bytes(images: Tensor) -> NDArray[np.uint8]:
    """Each image from its darkest to its brightest value: how they were standardised is not known."""
    side = max(images.shape[2:])
    if side > _LARGEST:
        images = interpolate(images, [max(1, size * _LARGEST // side) for size in images.shape[2:]], mode="area")
    flat = images.flatten(1)
    low = flat.amin(dim=1).view(-1, 1, 1, 1)
    spread = (flat.amax(dim=1).view(-1, 1, 1, 1) - low).clamp(min=1e-6)
    scaled = ((images - low) / spread * 255).round().to(torch.uint8)
    return np.ascontiguousarray(scaled.permute(0, 2, 3, 1).numpy())
