"""law: a searched strategy.

Idea    Weight `1 + tanh(theta_T . f + b)` from a sample's loss, entropy, density and label, normalised over the batch;
        theta_T, one for each stage of the training, was found by a search on validation accuracy.
Source  Li et al., Learning to Auto Weight, AAAI 2020.
Knobs   strategy: the file to use.
Told    Trusted samples, which its search looked at; in the training itself nothing.
Cost    Element-wise work on one batch of logits.
"""

from torch import Tensor

from autoweight.errors import UserError
from autoweight.strategy import Strategy


def law(class_counts: Tensor, strategy: str = "") -> Strategy:
    """The strategy of a file, for a training set with these class counts."""
    if not strategy:
        raise UserError("law needs a strategy: pass --strategy FILE, or find one with 'autoweight search'.")
    return Strategy.load(strategy, class_counts)
