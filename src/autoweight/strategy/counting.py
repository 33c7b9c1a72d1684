"""Counting in fixed point: sums of whole numbers are exact, and do not depend on the order in which a GPU adds."""

import torch
from torch import Tensor

FIXED_POINT = 2**20  # sums are whole multiples of 1 / this


def ramp(value: Tensor, low: float | Tensor, high: float | Tensor) -> Tensor:
    """From 0 at `low` to 1 at `high`, whichever is larger, and no further."""
    return ((value - low) / (high - low)).clamp(0, 1)


def on_device(number: float | Tensor, device: torch.device) -> Tensor:
    """A number where it is needed, without waiting for a GPU."""
    if isinstance(number, Tensor):
        return number.to(device, torch.float32)
    return torch.full((), float(number), dtype=torch.float32, device=device)


def follow_epoch(counts: Tensor, seen: Tensor, visited: Tensor, num_samples: Tensor) -> None:
    """Counts of about the last epoch, in place: what was `seen` comes in, among as many as were `visited`."""
    counts.mul_(1 - (visited / num_samples).clamp(max=1)).add_(seen)


def follow_arms(arms: Tensor, group: Tensor, contradicted: Tensor, valid: Tensor, num_samples: Tensor) -> None:
    """Visits of about an epoch, and those contradicted, `[2, 2]`: of a group's samples, and of all others."""
    seen = torch.stack([group, ~group]) & valid
    follow_epoch(arms, torch.stack([seen, seen & contradicted]).sum(dim=-1), valid.sum(), num_samples)


def lacking(arms: Tensor, errors: float) -> Tensor:
    """Of a group's contradictions, the share that others lack, and so many standard errors more."""
    seen, contradicted = arms
    seen = seen.clamp(min=1)
    group, others = (contradicted / seen).clamp(min=1e-3)
    return 1 - others / group + errors * ((1 - group) / (group * seen[0])).sqrt()


def whole(values: Tensor) -> Tensor:
    """Numbers in fixed point, still as floats: these hold them exactly."""
    return (values * FIXED_POINT).round()


def counted(margins: Tensor, raw: Tensor) -> Tensor:
    """What is counted of a sample, in fixed point: itself, whether its margin, and its `raw` one, is below 0, how far.

    Then come four powers of its margin.
    """
    square = margins.square()
    below = margins < 0, raw < 0, margins.clamp(max=0)
    powers = margins, square, square * margins, square.square()
    return whole(torch.stack([torch.ones_like(margins), *below, *powers], dim=-1)).long()


def bimodality(moments: Tensor) -> Tensor:
    """Sarle's coefficient, given the means of the first four powers."""
    mean = moments[0]
    variance, third, fourth = moments[1:] - mean * moments[:-1]  # means of powers times the distance from the mean
    shift = mean * variance
    skew, spread = third - 2 * shift, fourth - 3 * mean * (third - shift)
    variance = variance.clamp(min=1e-8)
    return (skew**2 / variance + variance**2) / spread.clamp(min=1e-16)
