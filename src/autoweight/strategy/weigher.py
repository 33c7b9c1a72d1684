"""Weigher: what turns one batch's losses into sample weights, and the weighted loss made of them."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from autoweight.errors import require


class Weigher(ABC):
    """Gives every sample of a batch a weight of at least 0; weights of 1 change nothing."""

    capturable = True
    """Whether `weigh` can be captured in a CUDA graph: its host code decides nothing by the data or the progress."""

    @abstractmethod
    def weigh(
        self,
        losses: Tensor,
        logits: Tensor,
        labels: Tensor,
        progress: float | Tensor,
        indices: Tensor | None = None,
    ) -> Tensor:
        """Weights `[batch]`, without gradient.

        `progress` is the fraction of the training done, in [0, 1); a tensor where the step is captured in a CUDA
        graph, so that the host does not know it. `indices` are the samples' positions in the training set, for
        weighers that know or remember single samples.
        """

    def observe_accuracy(self, accuracy: float) -> None:  # noqa: B027 - most weighers have no use for it
        """Take in the running training's validation accuracy at a stage's end; weighers may ignore it."""

    def state_dict(self) -> dict[str, Any]:
        """What has to go into a checkpoint for training to go on as if never stopped; most weighers need nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {sorted(state)}")


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """Equation 7's weighted loss, `mean(weights * losses)`; all-ones weights give `losses.mean()` to the bit."""
    require(
        losses.shape == weights.shape,
        f"losses of shape {tuple(losses.shape)} do not fit weights of shape {tuple(weights.shape)}: compute them with "
        "reduction='none'.",
    )
    return (weights * losses).mean()
