"""How probable it is that labels are right: from margins, and from the evidence that any are wrong."""

import torch
from torch import Tensor

from autoweight.strategy.census import Evidence
from autoweight.strategy.memory import Memory
from autoweight.strategy.visits import Taken

SLOPE = 16.0  # log-odds of a right label per unit of margin

_LEAST = 1e-30  # of the prior, whose logit has to be a number: below it, no margin makes a label wrong


def doubt(evidence: Evidence, taken: Taken) -> tuple[Tensor, Tensor]:
    """The log-odds that labels are wrong, but for sparing, and how much of them a margin takes away: for `auto`."""
    strength = evidence.against(taken.on_trial, taken.control)
    slope = _slope(strength)
    return _prior_odds(strength, evidence.prior.gather(0, taken.believed)) - slope * taken.relative, slope


def probability_wrong(margins: Tensor, strength: Tensor, share: Tensor) -> Tensor:
    """The probability that labels are wrong; without evidence that any is, it is improbable beforehand."""
    return (_prior_odds(strength, share) - _slope(strength) * margins).sigmoid()


def _prior_odds(strength: Tensor, share: Tensor) -> Tensor:
    """Log-odds that a label is wrong, whatever its margin."""
    return torch.logit((strength * share).clamp(min=_LEAST))


def _slope(strength: Tensor) -> Tensor:
    """What a margin takes away from them; with evidence of two groups these lie apart, so that it says more."""
    return SLOPE * (1 + strength)


def belief(
    memory: Memory, margins: Tensor, labels: Tensor, indices: Tensor, valid: Tensor, progress: float | Tensor | None
) -> Tensor:
    """The feature: log-odds that labels are right, by margins and how many are contradicted, times how far to trust."""
    taken = memory.relative(margins, labels, indices, valid)
    evidence = memory.census.evidence(taken.sizes)
    log_odds = evidence.against(taken.on_trial, taken.control) * (
        SLOPE * taken.relative - torch.logit(evidence.prior).gather(0, taken.believed)
    )
    return _raised(log_odds, memory.spared(log_odds.sigmoid(), taken, labels, indices, valid, progress))


def _raised(log_odds: Tensor, right: Tensor) -> Tensor:
    """Log-odds of labels, where sparing has raised their probability those of that; never less."""
    return torch.where(right > log_odds.sigmoid(), torch.logit(right, eps=1e-6).maximum(log_odds), log_odds)
