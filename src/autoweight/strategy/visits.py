"""What a network makes of a batch, and what a memory makes of that."""

from typing import NamedTuple

from torch import Tensor

from autoweight.strategy.census import Sizes


class Look(NamedTuple):
    """What a network makes of samples, `[batch]` each."""

    own: Tensor
    """The probability of the label."""
    strongest: Tensor
    """That of the strongest other class."""
    strongest_class: Tensor

    @classmethod
    def at(cls, logits: Tensor, labels: Tensor, num_classes: int) -> "Look":
        """By logits; a network may have outputs to spare, which are no classes."""
        probabilities = logits.softmax(dim=-1)[..., :num_classes]
        classes = labels.unsqueeze(-1)
        own = probabilities.gather(-1, classes).squeeze(-1)
        return cls(own, *probabilities.scatter(-1, classes, -1.0).max(dim=-1))

    def margins(self) -> Tensor:
        """From -1 to 1."""
        return self.own - self.strongest


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
    control: Tensor
    """Which are in the control group, with which all others but those on trial are compared."""
    telling: Tensor
    """Which are valid, and their labels not far rarer than the classes believed in: others are never on trial."""
    sizes: Sizes
