"""Images from files by Pillow, as tensors of one size."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autoweight.errors import UserError

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".webp", ".gif", ".tif", ".tiff"}
_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)  # ImageNet's, which pretrained networks expect
_STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def pillow() -> Any:
    """Pillow's images, or a sentence that says how to get it."""
    try:
        import_module("PIL.ImageOps")
        return import_module("PIL.Image")
    except ImportError as error:
        raise UserError("images are decoded by Pillow, which is missing: pip install 'autoweight[images]'.") from error


def decode(path: Path, resize: int, crop: int) -> Tensor:
    """The middle of an image whose shorter side was made `resize` pixels: standardised, `[3, crop, crop]`.

    What a camera noted about its orientation is heeded; grey, transparent and 16-bit images become three channels.
    """
    images = pillow()
    try:
        with images.open(path) as file:
            image = _eight_bits(import_module("PIL.ImageOps").exif_transpose(file), images).convert("RGB")
        width, height = image.size
        shorter = min(width, height)
        size = max(round(resize * width / shorter), crop), max(round(resize * height / shorter), crop)
        image = image.resize(size, images.Resampling.BILINEAR)
        left, top = (size[0] - crop) // 2, (size[1] - crop) // 2
        pixels = np.array(image.crop((left, top, left + crop, top + crop)))
    except Exception as error:  # decoders raise anything
        raise UserError(f"{path} cannot be read as an image: replace or remove it.") from error
    return (torch.from_numpy(pixels).permute(2, 0, 1) / 255 - _MEAN) / _STD


def shorter_side(path: Path) -> int | None:
    """The shorter side of an image in pixels, from its header; None where it cannot be read."""
    try:
        with pillow().open(path) as file:
            return min(file.size)
    except UserError:
        raise
    except Exception:  # decoders raise anything; whoever reads the image says so
        return None


def _eight_bits(image: Any, images: Any) -> Any:
    """16-bit and float grey values on the scale of eight bits; Pillow itself would cut them off."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image, dtype=np.float64)
    scale = 255 / 65535 if image.mode.startswith("I") and values.max(initial=0) > 255 else 1
    return images.fromarray((values * scale).clip(0, 255).astype(np.uint8))
