"""Small files of own data, made where the test runs; each answers with its name."""

from pathlib import Path

import numpy as np
from PIL import Image

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
