"""Small files of own data, made where the test runs, which answer with their names; and small streams."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import IterableDataset

from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed

ROWS = "size,colour,label\n" + "".join(f"{place / 3},{'rgb'[place % 3]},{'ab'[place % 2]}\n" for place in range(30))


def rows(text: str = ROWS, name: str = "rows.csv") -> str:
    Path(name).write_text(text)
    return name


def arrays(**parts: object) -> str:
    np.savez("a.npz", **parts)
    return "a.npz"


def folder(name: str = "photos", classes: tuple[str, ...] = ("ant", "bee"), count: int = 3) -> str:
    for label in classes:
        Path(name, label).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (9, 9), number).save(Path(name, label, f"{number}.png"))
    return name


def bad_folder() -> str:
    Path(folder(), "bee", "1.png").write_bytes(b"no image")
    return "photos"


def marked(marks: str) -> str:
    lines = ROWS.splitlines()
    return rows("\n".join([lines[0] + ",checked", *(f"{line},{marks}" for line in lines[1:])]) + "\n")


def bytes_file(name: str, content: bytes) -> str:
    Path(name).write_bytes(content)
    return name


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(2), 0


def stream(data: list[object], **how: object) -> Streamed:
    return Streamed.of(data, Reading(**how))


PAIRS = [(torch.zeros(2), place % 3) for place in range(20)]
