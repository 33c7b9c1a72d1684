"""Stages of a training (3SM): a stage is a fraction of the training, so a strategy fits any number of steps."""

from math import ceil
from numbers import Real
from typing import Any

from torch import Tensor

from autoweight.errors import UserError, require


def stage_at(progress: float, num_stages: int) -> int:
    """The stage, counted from 0, that `progress` in [0, 1] lies in; the very end belongs to the last stage."""
    check_progress(progress)
    # The tiny nudge undoes rounding: step / total_steps * num_stages can land just below a whole number.
    return min(int(progress * num_stages * (1 + 1e-12)), num_stages - 1)


def check_progress(progress: Any) -> None:
    """Raise `UserError` unless `progress` is a share; a tensor's is not looked at, since a GPU has to be waited for."""
    if isinstance(progress, Tensor):
        require(not progress.dim(), f"progress is one number, but is a tensor of shape {tuple(progress.shape)}.")
        return
    if isinstance(progress, Real) and 0 <= float(progress) <= 1:
        return
    raise UserError(f"progress is the fraction of the training done, from 0 to 1, but was {progress!r}.")


def stage_of(progress: Tensor, num_stages: int) -> Tensor:
    """`stage_at` for a progress that only the device knows."""
    return (progress.double() * (num_stages * (1 + 1e-12))).long().clamp(0, num_stages - 1)


def stage_starts(total_steps: int, num_stages: int) -> list[int]:
    """The first step of every stage, and `total_steps` as the end of the last: `[num_stages + 1]`."""
    require(
        total_steps >= num_stages,
        f"a training of {total_steps} steps cannot be cut into {num_stages} stages: raise training.epochs or lower "
        "training.num_stages.",
    )
    return [ceil(stage * total_steps / num_stages) for stage in range(num_stages + 1)]
