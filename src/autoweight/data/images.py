"""Images of one size as map-style data sets, in files of their own or in archives (tar)."""

from abc import abstractmethod
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autoweight.data.decoding import pixels, shorter_side, standardised
from autoweight.data.inputs import Inputs, each
from autoweight.data.reading import Raw


class Images(Raw):
    """Images and their classes; streams carry bytes, which are standardised where they are used."""

    def __init__(self, size: int, labels: NDArray[Any] | None = None, resize: int = 0) -> None:
        self.size, self.resize, self.labels = size, resize or size, labels

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        image, label = self.raw(position)
        return standardised(image.unsqueeze(0))[0], label

    def raw(self, position: int) -> tuple[Tensor, int]:
        """Bytes `[size, size, 3]`, and the class; 0 where none was given."""
        image = pixels(*self._file(position), self.resize, self.size)
        return torch.from_numpy(image), 0 if self.labels is None else int(self.labels[position])

    def finish(self, inputs: Inputs) -> Inputs:
        """A batch of bytes as what networks are fed."""
        return each(inputs, standardised)

    def shorter_side(self, position: int) -> int | None:
        """Of the image as it was stored."""
        return shorter_side(self._file(position)[0])

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _file(self, position: int) -> tuple[Path | BytesIO, str]:
        """Something to read an image from, and what to call it."""


class ImageFiles(Images):
    """Images in files of their own."""

    def __init__(self, paths: list[Path], size: int, labels: NDArray[Any] | None = None, resize: int = 0) -> None:
        super().__init__(size, labels, resize)
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def _file(self, position: int) -> tuple[Path, str]:
        return self.paths[position], str(self.paths[position])


class ArchivedImages(Images):
    """Images in archives: each a number of bytes at a place of a file, which is opened for every read.

    So processes and threads share nothing, however many of them read.
    """

    def __init__(self, places: dict[str, NDArray[Any]], size: int, labels: NDArray[Any] | None = None) -> None:
        super().__init__(size, labels)
        self.shards, self.offsets, self.sizes = places["shard"], places["offset"], places["size"]

    def __len__(self) -> int:
        return len(self.offsets)

    def _file(self, position: int) -> tuple[BytesIO, str]:
        shard, offset, size = self.shards[position], int(self.offsets[position]), int(self.sizes[position])
        with shard.open("rb", buffering=0) as file:
            file.seek(offset)
            return BytesIO(file.read(size)), f"the image at byte {offset} of {shard}"


class Placed(Raw):
    """Images that are asked for by their places in the data set that they were taken from, in its order."""

    def __init__(self, images: Images, places: NDArray[np.int64]) -> None:
        self.images, self.places = images, places

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        return self.images[self._own(position)]

    def raw(self, position: int) -> tuple[Tensor, int]:
        """What the images give."""
        return self.images.raw(self._own(position))

    def finish(self, inputs: Inputs) -> Inputs:
        """As the images have it."""
        return self.images.finish(inputs)

    def _own(self, position: int) -> int:
        return int(np.searchsorted(self.places, position))


def image_set(content: Any, size: int) -> Images:
    """Images without labels, from paths or from places in archives."""
    if isinstance(content, dict):
        return ArchivedImages(content, size)
    return ImageFiles(np.asarray(content).tolist(), size)
