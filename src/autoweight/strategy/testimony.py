"""What a training has thought of its labels all along, and not only in the end: for audits.

A network that memorises takes back what it said, and a running mean of margins forgets with it (docs/memory.md). So the
running means are averaged over all visits, each with one over its number as its factor: the first ten visits count as
much as the next hundred.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Testimony(NamedTuple):
    """Two entries a sample."""

    total: Tensor
    """The sum of the running means after each visit but the last, over the visits' numbers."""
    visits: Tensor

    @classmethod
    def empty(cls, num_samples: int, device: torch.device | str = "cpu") -> "Testimony":
        """Of samples that were never seen; float32 as the memory is, whatever torch's default."""
        return cls(*(torch.zeros(num_samples, dtype=torch.float32, device=device) for _ in cls._fields))

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return {"testimony": self.total, "visits": self.visits}

    def grown(self, num_samples: int) -> "Testimony":
        """With room for as many samples."""
        more = max(num_samples - len(self.total), 0)
        return Testimony(*(torch.cat([one, one.new_zeros(more)]) for one in self)) if more else self

    def note(self, margins: Tensor, places: Tensor, valid: Tensor) -> None:
        """Samples come once more, and had come to these running means, which are 0 before the first visit."""
        counts = valid.float()
        former = margins.gather(0, places) / self.visits.gather(0, places).clamp(min=1)
        self.total.index_add_(0, places, former * counts)
        self.visits.index_add_(0, places, counts)

    def margins(self, last: Tensor) -> Tensor:
        """The averages, with the running means after the `last` visit; NaN of samples never seen."""
        most = int(self.visits.max()) if len(self.visits) else 0
        numbers = torch.arange(1, most + 1, dtype=last.dtype, device=last.device)
        factors = torch.cat([last.new_zeros(1), (1 / numbers).cumsum(0)])
        return (self.total + last / self.visits) / factors[self.visits.long()]
