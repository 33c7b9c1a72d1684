"""The labels of a map-style data set: told, or read once."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

from autoweight.data.reading import Reading, Ticket, random_numbers_kept, read, split_row
from autoweight.errors import require

_AT_A_TIME = 64


def known_labels(dataset: Any, labels: Any, reading: Reading, bad: dict[int, str]) -> tuple[Any, Tensor]:
    """All labels, and the positions that they are of."""
    everywhere = torch.arange(len(dataset))
    if labels is not None:
        require(len(labels) == len(dataset), f"there are {len(labels)} labels, but {len(dataset)} samples.")
        return labels, everywhere
    told = _told_labels(dataset)
    if told is not None and len(told) == len(dataset) and _agrees(told, dataset, reading):
        return told, everywhere
    return _read_labels(dataset, reading, bad)


def _told_labels(dataset: Any) -> Any:
    """The labels that a data set tells without reading a sample, as torchvision's do."""
    if isinstance(dataset, Subset):
        whole = _told_labels(dataset.dataset)
        return None if whole is None else np.asarray(whole)[np.asarray(dataset.indices)]
    told = getattr(dataset, "targets", getattr(dataset, "labels", None))
    return told if isinstance(told, list | tuple | Tensor | np.ndarray) else None


def _agrees(told: Any, dataset: Any, reading: Reading) -> bool:
    """Whether the first samples have these labels: a target transform may change them."""
    with random_numbers_kept():
        try:
            return all(
                np.array_equal(np.asarray(split_row(dataset[place], reading.label_key)[1]), np.asarray(told[place]))
                for place in range(min(3, len(dataset)))
            )
        except Exception:  # a sample that cannot be read says nothing about labels
            return True


def _read_labels(dataset: Any, reading: Reading, bad: dict[int, str]) -> tuple[list[Any], Tensor]:
    """Read the whole set once, for its labels."""
    places = torch.arange(len(dataset)).split(_AT_A_TIME)
    tickets = (Ticket(part.tolist()) for part in places)
    labels, positions = [], []
    for part, batch in zip(places, read(dataset, tickets, reading, labels_only=True), strict=True):
        for one in batch.bad:
            if reading.bad_samples == "refuse":
                raise one.refused()
            bad[one.position] = one.why
        labels += batch.labels
        positions += part[batch.kept].tolist()
    require(len(labels) > 0, f"no sample of the data set can be read: {next(iter(bad.values()), '')}.")
    return labels, torch.tensor(positions)
