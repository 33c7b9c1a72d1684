"""Images from files by Pillow, as tensors of one size."""

from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.errors import UserError

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".webp", ".gif", ".tif", ".tiff"}
_MEAN = (0.485, 0.456, 0.406)  # ImageNet's, which pretrained networks expect
_STD = (0.229, 0.224, 0.225)
_ORIENTATION = 0x0112  # where a camera notes how it was held


class UnreadableImageError(UserError):
    """A file that is no whole image."""

    def __init__(self, name: str) -> None:
        self.name, self.clause = name, f"{name} cannot be read as an image"
        super().__init__(f"{self.clause}: replace or remove it.")


def pillow() -> Any:
    """Pillow's images, or a sentence that says how to get it."""
    try:
        import_module("PIL.ImageOps")
        return import_module("PIL.Image")
    except ImportError as error:
        raise UserError("images are decoded by Pillow, which is missing: pip install 'autoweight[images]'.") from error


def decode(path: Path, resize: int, crop: int) -> Tensor:
    """The middle of an image whose shorter side was made `resize` pixels: standardised, `[3, crop, crop]`."""
    return standardised(torch.from_numpy(pixels(path, str(path), resize, crop)).unsqueeze(0))[0]


def pixels(file: Path | BytesIO, name: str, resize: int, crop: int) -> NDArray[np.uint8]:
    """The middle of an image whose shorter side was made `resize` pixels: bytes, `[crop, crop, 3]`.

    What a camera noted about its orientation is heeded; grey, transparent and 16-bit images become three channels. A
    JPEG of more than twice the size is decoded at a half, a quarter or an eighth of it, which saves most of the time.
    """
    images = pillow()
    try:
        with images.open(file) as image:
            image.draft(None, (2 * resize, 2 * resize))  # of JPEGs alone, and never below that
            return np.array(_middle(_upright(image, images), images, resize, crop))
    except Exception as error:  # decoders raise anything
        raise UnreadableImageError(name) from error


def standardised(images: Tensor) -> Tensor:
    """Bytes `[n, height, width, 3]` as what networks are fed, `[n, 3, height, width]`; in memory channels stay last."""
    mean, std = (_filled(values, images.device) for values in (_MEAN, _STD))
    return (images.permute(0, 3, 1, 2) / 255 - mean) / std


def _filled(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Made on the device, one by one: a CUDA graph cannot copy from the host."""
    return torch.stack([torch.full((), value, device=device) for value in values]).view(3, 1, 1)


def shorter_side(file: Path | BytesIO) -> int | None:
    """The shorter side of an image in pixels, from its header; None where it cannot be read."""
    try:
        with pillow().open(file) as image:
            return min(image.size)
    except UserError:
        raise
    except Exception:  # decoders raise anything; whoever reads the image says so
        return None


def _upright(image: Any, images: Any) -> Any:
    """Three channels of eight bits, turned as the camera was held."""
    if image.getexif().get(_ORIENTATION, 1) != 1:
        image = import_module("PIL.ImageOps").exif_transpose(image)
    return image if image.mode == "RGB" else _eight_bits(image, images).convert("RGB")


def _middle(image: Any, images: Any, resize: int, crop: int) -> Any:
    width, height = image.size
    shorter = min(width, height)
    size = max(round(resize * width / shorter), crop), max(round(resize * height / shorter), crop)
    left, top = (size[0] - crop) // 2, (size[1] - crop) // 2
    if size == image.size:
        return image if size == (crop, crop) else image.crop((left, top, left + crop, top + crop))
    across, down = width / size[0], height / size[1]  # only what is kept is scaled
    box = (left * across, top * down, min((left + crop) * across, width), min((top + crop) * down, height))
    return image.resize((crop, crop), images.Resampling.BILINEAR, box)


def _eight_bits(image: Any, images: Any) -> Any:
    """16-bit and float grey values on the scale of eight bits; Pillow itself would cut them off."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image, dtype=np.float64)
    scale = 255 / 65535 if image.mode.startswith("I") and values.max(initial=0) > 255 else 1
    return images.fromarray((values * scale).clip(0, 255).astype(np.uint8))
