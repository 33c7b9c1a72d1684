"""Record: the weight and the loss of every sample at its last visit, kept on the device, to report on a training."""

import torch
from torch import Tensor

from autoweight.strategy.indices import places_of


class Record:
    """One entry a sample: the weight that it was given last, and its loss then; NaN before the first visit.

    Writing them is two small operations a step, which a captured step takes along; nothing reads them while it runs.
    """

    def __init__(self, num_samples: int, device: torch.device | str) -> None:
        self.weight = torch.full((num_samples,), float("nan"), device=device)
        self.loss = self.weight.clone()

    def note(self, losses: Tensor, weights: Tensor | None, indices: Tensor) -> None:
        """Take in one batch; without weights, each is 1."""
        places = places_of(indices, losses).to(self.loss.device)
        losses = losses.detach().reshape(-1).float()
        self.loss[places] = losses
        self.weight[places] = torch.ones_like(losses) if weights is None else weights.detach().reshape(-1).float()

    def tensors(self) -> dict[str, Tensor]:
        """What `note` changes, by name."""
        return {"record.weight": self.weight, "record.loss": self.loss}
