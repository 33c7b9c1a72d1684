"""self_paced: easy samples first, harder ones as the training goes on.

Idea    Each sample's weight v minimises `v * loss + g(v; age)`. The regulariser g gives hard weights (1 where the loss
        is below the age), linear ones (falling from 1 at loss 0 to 0 at the age), or a mixture (1 up to a lower age,
        then falling to 0 at the age). The age grows, so that more and more samples enter.
Source  Kumar et al., Self-paced learning for latent variable models, NIPS 2010 (hard); Jiang et al., Easy samples
        first, ACM MM 2014 (linear, mixture).
Told    Nothing.
Knobs   regulariser: hard, linear or mixture; start and end: the share of the batch whose loss lies below the age at the
        beginning and at the end of the training; lower: the mixture's lower age, as a share of the age.
Cost    One sort of a batch's losses.

The age is set as a share of the batch, because losses shrink during a training and no fixed age suits it all.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from autoweight.errors import require, require_numbers, unknown
from autoweight.strategy import Weigher, check_batch
from autoweight.strategy.stages import check_progress

Regulariser = Literal["hard", "linear", "mixture"]


class SelfPaced(Weigher):
    """Weights in [0, 1] from the loss and a growing age."""

    capturable = True
    tasks = ("classification",)

    def __init__(
        self, regulariser: Regulariser = "hard", start: float = 0.5, end: float = 1.0, lower: float = 0.5
    ) -> None:
        if regulariser not in get_args(Regulariser):
            raise unknown("regulariser", regulariser, get_args(Regulariser))
        require_numbers("self_paced", start=start, end=end, lower=lower)
        require(0 < start <= end <= 1, f"self_paced needs 0 < start <= end <= 1, but has {start} and {end}.")
        require(0 < lower < 1, f"self_paced's lower is a share of the age, between 0 and 1, but is {lower}.")
        self.regulariser = regulariser
        self.start, self.end, self.lower = start, end, lower

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The regulariser's closed-form weights at the age that `progress` has brought."""
        check_batch(losses, logits, labels)
        check_progress(progress)
        share = self.start + (self.end - self.start) * progress
        age = quantile(losses.float(), share)
        weights = self_paced_weights(losses.float(), age, self.regulariser, self.lower)
        return weights.where(losses.isfinite(), 0).to(losses.dtype)


def quantile(values: Tensor, share: float | Tensor) -> Tensor:
    """The value below which a share of the finite `values` lies, linear between neighbours.

    `share` may live on the device.
    """
    finite = values.isfinite()
    ordered, last = values.where(finite, torch.inf).sort().values, (finite.sum() - 1).clamp(min=0)
    # A number is written onto the device by a kernel: a copy from the host cannot be captured.
    on_device = share.float() if isinstance(share, Tensor) else torch.full((), share, device=values.device)
    place = on_device * last
    left = place.long()
    neighbours = ordered[torch.stack([left, (left + 1).minimum(last)])]
    return neighbours[0] + (neighbours[1] - neighbours[0]) * (place - left)


def self_paced_weights(losses: Tensor, age: Tensor, regulariser: Regulariser, lower: float = 0.5) -> Tensor:
    """The weights in [0, 1] that minimise `v * loss + g(v; age)`, for each of the regularisers."""
    if regulariser == "hard":
        return (losses <= age).to(losses.dtype)
    tiny = torch.finfo(losses.dtype).tiny
    if regulariser == "linear":
        return (1 - losses / age.clamp(min=tiny)).clamp(0, 1)
    # zeta * (1 / loss - 1 / age) with zeta = age * low / (age - low), multiplied out so that a tiny loss stays finite
    low = lower * age
    falling = low * (age - losses) / ((age - low) * losses).clamp(min=tiny)
    return torch.where(losses <= low, torch.ones_like(losses), falling.clamp(0, 1))
