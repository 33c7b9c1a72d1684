"""Small tar archives of images, made where a test runs."""

import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def png(seed: int, side: int = 12) -> bytes:
    """A random image."""
    pixels = np.random.default_rng(seed).integers(256, size=(side, side, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def tar(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of these files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def pairs(numbers: range, classes: int = 3) -> dict[str, bytes]:
    """Images and their labels by stem: 00012.png, 00012.cls."""
    members = {}
    for number in numbers:
        members |= {f"{number:05}.png": png(number), f"{number:05}.cls": f"{number % classes}\n".encode()}
    return members


def class_folders(count: int, classes: tuple[str, ...] = ("ant", "bee", "cat")) -> dict[str, bytes]:
    """Images in class folders, bee/3.png."""
    return {
        f"{name}/{number}.png": png(100 * place + number)
        for place, name in enumerate(classes)
        for number in range(count)
    }
