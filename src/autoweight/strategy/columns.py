"""The columns of a memory: an entry a sample, which a visit reads and writes."""

from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.strategy.waiting import NOTHING_WAITS

NONE = -2.0  # stands where no relative margin, from -1 to 1, is counted
NEVER_LOW = 2.0  # stands where no margin, from -1 to 1, is kept

_EMPTY: dict[str, tuple[torch.dtype, float | tuple[float, ...]]] = {
    "label": (torch.int32, -1),
    "margin": (torch.float32, 0),
    "lowest": (torch.float32, NEVER_LOW),
    "rival_class": (torch.int32, -1),
    "relative": (torch.float32, NONE),
    "taken_for": (torch.int32, -1),
    "own": (torch.float32, -1),
    "loss": (torch.float32, -1),
    "waiting": (torch.float32, NOTHING_WAITS),
}
"""Their types, and what stands there before the first visit, a number or several."""


class Part(NamedTuple):
    """Which samples a memory holds, where it is not all of a set; others keep the rest."""

    indices: Tensor
    """Theirs in the set, `[places]`."""
    num_samples: int
    """In the set."""
    precision: torch.dtype
    """In which real numbers are kept between visits: counts have to be of these."""


class Columns:
    """Tensors by name, which change in place."""

    def __init__(self, tensors: dict[str, Tensor], part: Part | None = None) -> None:
        self._tensors = {name: tensors[name] for name in _EMPTY}
        self._precision = None if part is None else part.precision

    @classmethod
    def empty(cls, num_samples: int, device: torch.device | str) -> "Columns":
        """Those of samples that were never seen."""
        tensors = {}
        for name, (dtype, empty) in _EMPTY.items():
            row = torch.tensor(empty, dtype=dtype, device=device)
            tensors[name] = row.expand(num_samples, *row.shape).clone()
        return cls(tensors)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def tensors(self) -> dict[str, Tensor]:
        """All of them, by name."""
        return dict(self._tensors)

    @property
    def room(self) -> int:
        """For how many samples there is some."""
        return self["label"].shape[0]  # a tensor's len() takes five times as long

    def at(self, indices: Tensor, *names: str) -> list[Tensor]:
        """What the columns of these names hold of samples."""
        return [self[name].gather(0, indices) for name in names]

    def put(self, name: str, indices: Tensor, old: Tensor, new: Tensor, valid: Tensor) -> Tensor:
        """Put what is `new` of the valid samples into a column, and give what it holds of all."""
        kept = self.kept(torch.where(valid, new, old))
        self[name].index_put_((indices,), kept.to(self[name].dtype))
        return kept

    def kept(self, values: Tensor) -> Tensor:
        """Numbers as they will be found at the next visit."""
        if self._precision is None or not values.is_floating_point():
            return values
        most = torch.finfo(self._precision).max
        return values.clamp(-most, most).to(self._precision).to(values.dtype)
