"""What a training has thought of its labels all along, and not only in the end: for audits.

A network that memorises takes back what it said, and a running mean of margins forgets with it (docs/memory.md). So the
running means are averaged over all visits, each with one over its number as its factor: the first ten visits count as
much as the next hundred.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Testimony(NamedTuple):
    """One row a sample."""

    sums: Tensor
    """`[samples, 2]`: the sum of the running means, each over the number of its visit, and how many were noted."""

    @classmethod
    def empty(cls, num_samples: int, device: torch.device | str = "cpu") -> "Testimony":
        """Of samples that were never seen."""
        return cls(torch.zeros(num_samples, 2, device=device))

    def grown(self, num_samples: int) -> "Testimony":
        """With room for as many samples."""
        more = num_samples - len(self.sums)
        return self if more <= 0 else Testimony(torch.cat([self.sums, self.sums.new_zeros(more, 2)]))

    def note(self, margins: Tensor, labels: Tensor, places: Tensor, valid: Tensor) -> None:
        """Take in what samples that come once more had come to; those that came before have labels."""
        rows = self.sums[places]
        seen = ((labels[places] >= 0) & valid).float()
        self.sums[places] = rows + seen.unsqueeze(-1) * torch.stack(
            [margins[places] / (rows[:, 1] + 1), torch.ones_like(seen)], dim=-1
        )

    def margins(self, last: Tensor) -> Tensor:
        """The averages, the `last` running means included; these alone where a sample came once."""
        total, noted = self.sums.unbind(dim=-1)
        numbers = torch.arange(1, int(noted.max()) + 2 if len(noted) else 1, device=noted.device)
        factors = (1 / numbers).cumsum(0)
        return (total + last / (noted + 1)) / factors[noted.long()]
