"""Remembered losses, and where one stands among those of all samples visited, or of its class."""

import torch
from torch import Tensor

from autoweight.strategy.columns import Columns
from autoweight.strategy.counting import FIXED_POINT, whole

_LEAST_SPREAD = 1e-3  # deviations of remembered losses below this count as none


class History:
    """Averaged losses, and sums over those of each class, in fixed point, so that the old value of a sample can go."""

    def __init__(self, columns: Columns, sums: Tensor) -> None:
        self.columns = columns
        self.sums = sums  # [classes, 3]: samples, losses, their squares

    def visit(self, losses: Tensor, labels: Tensor, indices: Tensor, rate: Tensor, valid: Tensor) -> Tensor:
        """Move the samples' averaged losses by `rate` towards the present ones, and give them; the first visit sets."""
        old, known = self.columns.at(indices, "loss", "label")
        visited = old >= 0
        new = self.columns.kept(torch.where(visited, torch.lerp(old, losses, rate), losses))
        self.columns.put("loss", indices, old, new, valid)
        self.columns.put("label", indices, known, labels, valid)
        self._count(labels, old.clamp(min=0), -(visited & valid).long())
        self._count(labels, new, valid.long())
        return new

    def standing(self, losses: Tensor, labels: Tensor, by_class: bool) -> Tensor:
        """Remembered losses as deviations from the mean over the samples visited, or over those of the same class."""
        sums = self.sums if by_class else self.sums.sum(dim=0, keepdim=True).expand_as(self.sums)
        count, total, squares = sums.double().unbind(dim=-1)
        count = count.clamp(min=1)
        mean = total / FIXED_POINT / count
        variance = squares / FIXED_POINT / count - mean.square()
        deviation = variance.clamp(min=_LEAST_SPREAD**2).sqrt()
        return (losses - mean[labels].float()) / deviation[labels].float()

    def _count(self, labels: Tensor, losses: Tensor, sign: Tensor) -> None:
        fixed = whole(torch.stack([losses, losses.square()], dim=-1).double()).long()
        row = torch.cat([torch.ones_like(fixed[..., :1]), fixed], dim=-1) * sign.unsqueeze(-1)
        self.sums.index_add_(0, labels.long(), row)
