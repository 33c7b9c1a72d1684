"""constant: one theta for the whole training after the warm-up.

Idea    LAW without stages: `1 + tanh(theta . f + b)` with fixed theta and b. The yardstick of any search: a stage-wise
        strategy that does not beat the best constant at the same cost has found nothing.
Knobs   loss, entropy, density, label, margin, history, belief: theta of each feature (0 leaves it out); bias: b;
        warmup: the share of the training that is not weighted; memory_rate: by how much a memory moves at a visit.
Told    What somebody set by hand.
Cost    As LAW: element-wise work on one batch of logits.
"""

import torch
from torch import Tensor

from autoweight.config import Feature
from autoweight.errors import require, require_numbers
from autoweight.strategy import Rule, Strategy
from autoweight.strategy.features import FEATURES

_STAGES = 100  # fine enough for any warm-up share in whole percents


class Constant(Strategy):
    """A strategy whose theta is the same at every stage."""

    def __init__(
        self,
        loss: float = -8.0,
        entropy: float = 0.0,
        density: float = 0.0,
        label: float = 0.0,
        margin: float = 0.0,
        history: float = 0.0,
        belief: float = 0.0,
        bias: float = -2.0,
        warmup: float = 0.1,
        memory_rate: float = 0.2,
        class_counts: Tensor | None = None,
    ) -> None:
        values = (loss, entropy, density, label, margin, history, belief)
        thetas: dict[str, float] = dict(zip(FEATURES, values, strict=True))
        require_numbers("constant", **thetas, bias=bias, warmup=warmup, memory_rate=memory_rate)
        require(0 <= warmup <= 1, f"constant's warmup is a share of the training, from 0 to 1, but is {warmup}.")
        used: tuple[Feature, ...] = tuple(name for name in FEATURES if thetas[name] != 0) or ("loss",)
        rule = Rule(used, memory_rate=memory_rate)
        by_name: dict[str, float] = {**thetas, "bias": bias, "memory": 0.0}
        row = torch.tensor([by_name[name] for name in rule.param_names])
        super().__init__(row.repeat(_STAGES, 1), rule, round(warmup * _STAGES), class_counts)
