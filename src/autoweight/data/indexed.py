"""A data set that tells each sample's position, for weighers that remember samples."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset

from autoweight.errors import require


class Indexed(Dataset[Any]):
    """Adds the index to what a map-style data set yields: `(x, y)` becomes `(x, y, index)`, a dict gets an `index`.

    A list of indices asks for a whole batch, where the data set reads so, as with `DataLoader(batch_size=None)`.

    >>> list(Indexed([("a", 0), ("b", 1)]))
    [('a', 0, 0), ('b', 1, 1)]
    """

    def __init__(self, dataset: Any) -> None:
        map_style = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        require(
            map_style and not isinstance(dataset, IterableDataset),
            "aw.Indexed takes a map-style data set, with __getitem__ and __len__: an iterable one has no positions.",
        )
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        require(not isinstance(index, slice), "aw.Indexed takes an index, or a list of them, but not a slice.")
        if isinstance(index, list):
            places = [self._place(one) for one in index]
            return _with_index(self.dataset[places], torch.tensor(places))
        place = self._place(index)
        return _with_index(self.dataset[place], place)

    def _place(self, index: int) -> int:
        """The position, counted from the end as with lists, but a sample has one index alone."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range: the data set has {len(self)} samples.")
        return index % len(self)


def _with_index(sample: Any, index: Any) -> Any:
    """A sample, or a batch of them, with its index."""
    if isinstance(sample, Mapping):
        require("index" not in sample, "samples have an 'index' of their own: rename it, aw.Indexed adds another.")
        return {**sample, "index": index}
    return (*sample, index) if isinstance(sample, tuple | list) else (sample, index)
