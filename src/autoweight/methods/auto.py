"""auto: the strategy that comes with the package.

Idea    Remembers what the network made of each sample, and weighs it by the probability that its label is right, which
        it reads off the training itself.
Told    Nothing: no search, no trusted samples, no noise rate.
Knobs   None.
Cost    Element-wise work on one batch of logits, and a few numbers a sample.
"""

from autoweight.strategy.auto import Auto

__all__ = ["Auto"]
