"""A control group: a few samples by which it is seen whether a network memorises all others.

What is contradicted in the group is left out at first, whether labels are wrong or not. So where labels of the others
are contradicted less often than the group's, they were memorised. And how hard a problem is shows there undisturbed: a
right label that is contradicted often is the second best guess, a wrong one is no more probable than others.

Networks that memorise within a few epochs leave no time for margins to part into two groups. So of larger sets it is
evidence enough that contradiction is firm and implausible, and that others are memorised. And where about half of it is
plausible, it is no evidence, however margins lie.
"""

import torch
from torch import Tensor

from autoweight.strategy.census import Sizes, Told
from autoweight.strategy.counting import follow_arms, follow_epoch, lacking, ramp

LEAST_SAMPLES = 5000
"""Of smaller sets too few are in the group, and clean ones, hard and memorised, look like noisy ones."""

PROBABLE = 0.1  # of a label: what is less probable is not taken for hard; with many classes, here, less will do
_MEMORISED = 0.05  # of the group's contradictions that others lack: enough to be known
_ERRORS = 1.0  # standard errors that are taken away from it
# Of the group's contradicted labels, those that are hard: 0.21 to 0.29 of noisy images, 0.31 to 0.44 of clean ones.
_PLAUSIBLE = (0.26, 0.30)
_HARD = (0.48, 0.53)  # of the same: from the second on, contradicted labels are no evidence
_VISITS = (12.0, 16.0)  # over which the group is taken back: who memorises fast has done so
_HALF = (0.4, 0.5)  # of the training, over which it is in any case


class Control:
    """Counts over about an epoch; its tensors change in place."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.control_arms = tensors["control_arms"]  # [2, 2]: visits, and those contradicted; of the group, of others
        self.plausible = tensors["plausible"]  # [2]: the group's contradicted labels, and those of them that are hard

    @classmethod
    def empty(cls, device: torch.device | str = "cpu") -> "Control":
        """Of a training that has not begun."""
        shapes = {"control_arms": (2, 2), "plausible": (2,)}
        return cls({name: torch.zeros(shape, dtype=torch.float32, device=device) for name, shape in shapes.items()})

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return dict(vars(self))

    def follow(self, contradicted: Tensor, control: Tensor, valid: Tensor, num_samples: Tensor) -> None:
        """Follow how often labels are contradicted at the present visit, in the group and elsewhere."""
        follow_arms(self.control_arms, control, contradicted, valid, num_samples)

    def doubt(self, contradicted: Tensor, right: Tensor, own: Tensor, valid: Tensor, sizes: Sizes) -> None:
        """Follow how many of the group are `contradicted`, and how many of these are hard: probable, rather `right`."""
        probable = own > min(PROBABLE, 1 / len(sizes.of_classes))
        seen = torch.stack([contradicted, right * probable * contradicted]).sum(dim=-1)
        follow_epoch(self.plausible, seen, valid.sum(), sizes.samples)

    def tell(self, visits: Tensor, progress: Tensor) -> Told:
        """What the group tells, after so many visits."""
        contradicted, hard = self.plausible
        plausible = hard / contradicted.clamp(min=1)
        memorising = ramp(lacking(self.control_arms, -_ERRORS), 0.0, _MEMORISED) * (1 - ramp(plausible, *_PLAUSIBLE))
        return Told(memorising, ramp(plausible, *_HARD), self.left_out(visits, progress))

    def left_out(self, visits: Tensor, progress: Tensor) -> Tensor:
        """How far the group is left out where it is contradicted, from 1 to 0."""
        return (1 - ramp(visits, *_VISITS)) * (1 - ramp(progress, *_HALF))
