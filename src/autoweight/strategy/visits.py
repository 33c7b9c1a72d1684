"""What a memory makes of a batch that it is shown, and which samples it holds."""

from typing import NamedTuple

import torch
from torch import Tensor

from autoweight.strategy.census import Sizes


class Visit(NamedTuple):
    """What `margins` saw of the batch at hand, for `relative` and `spared`."""

    now: Tensor
    """Margins, before they are averaged."""
    own: Tensor
    """The labels' probabilities."""
    means: Tensor
    """The averaged margins, `[2, batch]`: before this visit, and with it."""
    rivals: Tensor
    """The classes that beat the labels last, `[2, batch]`."""
    sizes: Sizes


class Taken(NamedTuple):
    """What samples are taken for."""

    relative: Tensor
    """Margins relative to their classes."""
    believed: Tensor
    """The classes believed in."""
    on_trial: Tensor
    """Which samples are on trial."""
    telling: Tensor
    """Which are valid, and their labels not far rarer than the classes believed in: others are never on trial."""
    sizes: Sizes


class Part(NamedTuple):
    """Which samples a memory holds, where it is not all of a set; others keep the rest."""

    indices: Tensor
    """Theirs in the set, `[places]`."""
    num_samples: int
    """In the set."""
    precision: torch.dtype
    """In which real numbers are kept between visits: counts have to be of these."""
