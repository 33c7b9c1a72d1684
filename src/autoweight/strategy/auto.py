"""auto: one rule for every training, from a memory of each sample; no search, no trusted samples, no noise rate.

Idea    A sample is wrong with the probability that its averaged margin tells: `sigmoid(logit(pi) - 2 theta m)`, where
        the prior pi is the share of samples whose margin is negative, counted in the training itself. Its weight is the
        probability that it is right, scaled to a mean of 1 within its class, so that no class loses weight.
"""

import torch
from torch import Tensor

from autoweight.strategy.features import View
from autoweight.strategy.memory import FIXED_POINT, Memory
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.weigher import view_of

_STEEPNESS = 5.0
_RATE = 0.2
_LEAST_PRIOR, _LARGEST_PRIOR = 0.01, 0.9
_VISITS = 20.0  # of a class, over which its mean weight is averaged
_LEAST_MEAN = 0.05


class Auto(Remembering):
    """The shipped rule."""

    capturable = True

    def __init__(self) -> None:
        super().__init__()
        self.info: dict[str, object] = {"name": "auto"}

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The probability that a sample is right, relative to its class."""
        view = view_of(losses, logits, labels)
        memory, places = self._recall(view, losses, indices)
        weights = self._weigh(view, memory, places)
        return weights.where(view.valid, 0).view_as(losses).to(losses.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """The memory's, and what is counted over the set and in each class."""
        return {} if self.memory is None else super().tensors() | self.counted

    def _make_memory(self, num_samples: int, num_classes: int, device: torch.device | str) -> Memory:
        self.counted = {
            "class_margins": torch.zeros(num_classes, 2, dtype=torch.long, device=device),  # visited, their margins
            "negative": torch.zeros((), dtype=torch.long, device=device),
            "class_weights": torch.ones(num_classes, device=device),
        }
        return super()._make_memory(num_samples, num_classes, device)

    def _weigh(self, view: View, memory: Memory, places: Tensor) -> Tensor:
        labels = view.labels.long().clamp(min=0)
        old = memory.columns["margin"][places]
        rate = torch.full((), _RATE, device=old.device)
        margin = memory.margins(view.logits, labels, places, rate, view.valid)
        self._count(labels, old, margin, view.valid)
        visited, sums = self.counted["class_margins"].double().unbind(dim=-1)
        prior = (self.counted["negative"] / visited.sum().clamp(min=1)).clamp(_LEAST_PRIOR, _LARGEST_PRIOR)
        right = (2 * _STEEPNESS * margin - torch.logit(prior).float()).sigmoid()
        return right / self._class_means(right, labels, view.valid)[labels].clamp(min=_LEAST_MEAN)

    def _count(self, labels: Tensor, old: Tensor, new: Tensor, valid: Tensor) -> None:
        """Margins by class and how many are negative; 0 is what those never visited have."""
        first = (old == 0) & valid
        change = ((new.double() * FIXED_POINT).round() - (old.double() * FIXED_POINT).round()).long() * valid
        self.counted["class_margins"].index_add_(0, labels, torch.stack([first.long(), change], dim=-1))
        self.counted["negative"] += (((new < 0).long() - (old < 0).long()) * valid).sum()

    def _class_means(self, weights: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        means = self.counted["class_weights"]
        member = (labels.unsqueeze(-1) == torch.arange(len(means), device=labels.device)) & valid.unsqueeze(-1)
        count = member.sum(dim=0)
        now = (weights.unsqueeze(-1) * member).sum(dim=0) / count.clamp(min=1)
        means.lerp_(now, 1 - (1 - 1 / _VISITS) ** count)
        return means
