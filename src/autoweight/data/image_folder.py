"""Images in folders named after their classes, laid out as ImageNet is; decoded by torchvision."""

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autoweight.data.dataset import Samples
from autoweight.errors import UserError, require

_ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".webp"}
_RESIZE, _CROP = 256, 224
_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)  # ImageNet's, which pretrained networks expect
_STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def image_folder(folder: Path | None = None) -> tuple[Samples, Samples]:
    """Your own images, or a part of ImageNet: DIR/train/CLASS/*.jpg to train on and DIR/val/CLASS/*.jpg to test on.

    Each image's shorter side becomes 256 pixels and its middle 224 x 224 are kept. All images are held in memory, at
    0.6 MB each, so that this suits some ten thousand of them and not the whole of ImageNet.
    """
    if folder is None:
        raise UserError("images are read from a folder: pass --data-dir DIR with DIR/train/CLASS/ and DIR/val/CLASS/.")
    return _load(folder.expanduser().resolve())


@lru_cache(maxsize=1)  # so that every seed of a run does not decode them again
def _load(folder: Path) -> tuple[Samples, Samples]:
    train, test = _files(folder / "train"), _files(folder / "val")
    differing = sorted(set(train) ^ set(test))
    require(
        not differing,
        f"{folder} has a class in only one of train/ and val/: {', '.join(differing[:5])}; both need the same classes.",
    )
    require(
        len(train) > 1, f"{folder / 'train'} has one class only ({''.join(train)}): there is nothing to tell apart."
    )
    torchvision = _torchvision()
    return _decode_all(torchvision, train), _decode_all(torchvision, test)


def _files(part: Path) -> dict[str, list[Path]]:
    """The images of each class, in alphabetical order."""
    require(part.is_dir(), f"{part} is not a folder: images are expected as {part}/CLASS/*.jpg.")
    folders = sorted(path for path in part.iterdir() if path.is_dir() and not path.name.startswith("."))
    require(len(folders) > 0, f"{part} holds no class folders: images are expected as {part}/CLASS/*.jpg.")
    files = {path.name: sorted(p for p in path.iterdir() if p.suffix.lower() in _ENDINGS) for path in folders}
    for name, images in files.items():
        require(
            len(images) > 0, f"{part / name} holds no image ({', '.join(sorted(_ENDINGS))}): add some or remove it."
        )
    return files


def _torchvision() -> Any:
    try:
        import_module("torchvision.datasets.folder")
        import_module("torchvision.transforms.functional")
        return import_module("torchvision")
    except ModuleNotFoundError as error:
        raise UserError(
            "images are decoded by torchvision, which is missing: pip install 'autoweight[images]'."
        ) from error
    except (ImportError, RuntimeError) as error:
        message = f"images are decoded by torchvision, which does not fit torch {torch.__version__}: install its build."
        raise UserError(message) from error


def _decode_all(torchvision: Any, files: dict[str, list[Path]]) -> Samples:
    paths = [path for images in files.values() for path in images]
    labels = torch.tensor([label for label, images in enumerate(files.values()) for _ in images])
    inputs = torch.empty(len(paths), 3, _CROP, _CROP)
    for position, path in enumerate(paths):
        inputs[position] = (_decode(torchvision, path) / 255 - _MEAN) / _STD
    names = np.array([str(path) for path in paths])
    return Samples(inputs, labels, labels, torch.arange(len(labels)), len(files), names, tuple(files))


def _decode(torchvision: Any, path: Path) -> Tensor:
    """The middle of an image, `[3, 224, 224]` from 0 to 255."""
    tools = torchvision.transforms.functional
    try:
        image = tools.resize(torchvision.datasets.folder.default_loader(str(path)), _RESIZE)
        pixels: Tensor = tools.pil_to_tensor(tools.center_crop(image, [_CROP, _CROP]))
    except Exception as error:  # decoders raise anything
        raise UserError(f"{path} cannot be read as an image: replace or remove it.") from error
    shape = tuple(pixels.shape)
    require(shape == (3, _CROP, _CROP), f"{path} came out of another size, {shape}: replace or remove it.")
    return pixels
