"""Images in archives: a folder of `*.tar`, each with an index of its own, as one set."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.config import BadSamples
from autoweight.data.decoding import pillow
from autoweight.data.images import ArchivedImages
from autoweight.data.reading import SKIP
from autoweight.data.tars import index_of
from autoweight.errors import require

_SHOWN = 3


class Archived(NamedTuple):
    """The images of all archives, in the order of the archives' names."""

    places: dict[str, NDArray[Any]]
    """Of each image, its archive, where it begins there, and how many bytes it has."""
    labels: NDArray[np.str_]
    names: NDArray[np.str_]


def shards_in(path: Path) -> list[Path]:
    """The archives of a folder, by name; or the one archive itself."""
    if path.suffix.lower() == ".tar" and path.is_file():
        return [path]
    return sorted(own for own in path.glob("*.tar") if own.is_file()) if path.is_dir() else []


def read_archives(shards: list[Path], bad_samples: BadSamples) -> Archived:
    """Where all images lie; what is wrong with archives is refused, or left out and said."""
    indices = [index_of(shard) for shard in shards]
    complaints = [str(complaint) for index in indices for complaint in index.complaints]
    if complaints:
        require(bad_samples == "skip", f"{complaints[0]}: mend the archive, or {SKIP}.")
        more = f"; and {len(complaints) - _SHOWN} more" if len(complaints) > _SHOWN else ""
        warnings.warn(f"parts of archives are left out: {'; '.join(complaints[:_SHOWN])}{more}.", stacklevel=3)
    counts = [len(index.offsets) for index in indices]
    require(sum(counts) > 0, f"{shards[0].parent} holds no image in its archives.")
    places = {
        "shard": np.repeat(np.array(shards, dtype=object), counts),
        "offset": np.concatenate([index.offsets for index in indices]),
        "size": np.concatenate([index.sizes for index in indices]),
    }
    of_each = zip(shards, indices, strict=True)
    names = [f"{shard.name}/{name}" for shard, index in of_each for name in index.names.tolist()]
    return Archived(places, np.concatenate([index.labels for index in indices]), np.array(names, dtype=str))


class ImageShards(ArchivedImages):
    """A map-style data set of the images in tar archives, `[3, size, size]` standardised, and their classes.

    `path` is a folder of `*.tar` or one of them. Files with the same stem belong together, an image and its label
    (`000123.jpg`, `000123.cls`); without labels, folders inside the archives name the classes. What is wrong with an
    archive is refused; with `bad_samples="skip"` it is left out. `classes` names the classes, `targets` has all labels.
    """

    def __init__(self, path: str | Path, size: int = 64, bad_samples: BadSamples = "refuse") -> None:
        pillow()
        folder = Path(path).expanduser()
        shards = shards_in(folder)
        require(len(shards) > 0, f"there is no .tar archive in {folder}.")
        found = read_archives(shards, bad_samples)
        classes, numbers = np.unique(found.labels, return_inverse=True)
        order = np.argsort(_by_number(classes), kind="stable")
        self.classes = [str(name) for name in classes[order]]
        self.targets = np.argsort(order)[numbers]
        self.names = found.names
        super().__init__(found.places, size, self.targets)


def _by_number(classes: NDArray[np.str_]) -> NDArray[Any]:
    """What classes are sorted by: numbers by their size, all else by the alphabet."""
    try:
        return classes.astype(np.float64)
    except ValueError:
        return classes
