"""What the gauntlet compares: weighers by name, each made for one training set."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

import autoweight as aw
from autoweight.methods.elr import regularised

TRUE_LABELS = "oracle"


class Gated(aw.Weigher):
    """The rival set by hand: averaged predictions' margin, weights within classes, gated by who is contradicted."""

    def __init__(self, samples: int, classes: int) -> None:
        self.means = torch.zeros(samples, classes)
        self.margins = torch.zeros(samples)
        self.class_weights = torch.ones(classes)

    @torch.no_grad()
    def weigh(self, losses, logits, labels, progress, indices=None):
        """`1 + g (bold - 1)`: g rises from 0 to 1 as the share of margins below -0.3 does from 0.03 to 0.12."""
        means = self.means[indices].lerp(logits.softmax(-1), 0.2)
        self.means[indices] = means
        own = means.gather(1, labels[:, None])[:, 0]
        margins = own - means.scatter(1, labels[:, None], -1.0).amax(1)
        self.margins[indices] = margins
        bold = 1 + torch.tanh(6 * margins)
        sums = torch.zeros_like(self.class_weights).index_add_(0, labels, bold)
        visits = torch.bincount(labels, minlength=len(sums))
        moved = 0.95**visits
        self.class_weights.mul_(moved).add_((1 - moved) * sums / visits.clamp(min=1))
        bold = bold / self.class_weights[labels].clamp(min=0.05)
        gate = (((self.margins < -0.3).float().mean() - 0.03) / 0.09).clamp(0, 1)
        return 1 + gate * (bold - 1)


class ELR(aw.Weigher):
    """Weights of 1, and the term that early-learning regularisation adds to the loss, with the source's numbers."""

    def __init__(self, samples: int, classes: int, strength: float = 3.0, keep: float = 0.7) -> None:
        self.targets, self.strength, self.keep = torch.zeros(samples, classes), strength, keep

    def weigh(self, losses, logits, labels, progress, indices=None):
        """No weights: its term does the work."""
        return torch.ones_like(losses)

    def term(self, logits: Tensor, indices: Tensor) -> Tensor:
        """What comes to the mean loss of a batch."""
        terms, self.targets[indices] = regularised(logits, self.targets[indices], self.keep)
        return self.strength * terms.mean()


class Kept(aw.Weigher):
    """Samples count, or do not, all along."""

    def __init__(self, kept: Tensor) -> None:
        self.kept = kept.float()

    def weigh(self, losses, logits, labels, progress, indices=None):
        """1 for those that are kept."""
        return self.kept[indices]


class Setting(NamedTuple):
    """What a method may know of a training set; the true labels are for the oracle alone."""

    given: Tensor
    true: Tensor
    classes: int
    out_of_fold: Callable[[], Tensor]
    """Probabilities, `[samples, classes]`, by five more networks, none of which trained on the sample."""


def cleanlab(setting: Setting) -> aw.Weigher:
    """What cleanlab finds by out-of-fold probabilities of the same network is left out."""
    from cleanlab.filter import find_label_issues

    found = find_label_issues(setting.given.numpy(), setting.out_of_fold().double().numpy(), n_jobs=1)
    return Kept(~torch.from_numpy(found))


METHODS: dict[str, Callable[[Setting], aw.Weigher]] = {
    "uniform": lambda setting: aw.Uniform(),
    "gated": lambda setting: Gated(len(setting.given), setting.classes),
    "auto": lambda setting: aw.load("auto"),
    "noise": lambda setting: aw.load("noise"),
    "rare": lambda setting: aw.load("rare"),
    "class_balanced": lambda setting: aw.ClassBalanced(
        torch.bincount(setting.given, minlength=setting.classes).clamp(min=1)
    ),
    "gce": lambda setting: aw.GCE(),
    "elr": lambda setting: ELR(len(setting.given), setting.classes),
    "cleanlab": cleanlab,
    TRUE_LABELS: lambda setting: aw.Oracle(setting.given == setting.true),
}
