"""Rule: what turns one batch into weights, given theta: features, their normalisation and K(f, theta) (equation 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import get_args

import torch
from torch import Tensor

from autoweight.config import Feature, LabelFeature, SearchConfig
from autoweight.config.search import HistoryScale, MarginScale
from autoweight.errors import require, unknown
from autoweight.strategy.belief import belief
from autoweight.strategy.features import OF_THE_BATCH, REMEMBERED, check_features, normalise
from autoweight.strategy.memory import Memory
from autoweight.strategy.view import View

# Half-widths of the box that bounds the parameters. Without bounds the actor runs off to infinity within a few
# updates; beyond these, tanh is flat for all but a sliver of the batch.
BOUNDS: dict[str, float] = {
    "loss": 10.0,
    "entropy": 5.0,
    "density": 5.0,
    "label": 5.0,
    "margin": 10.0,
    "history": 10.0,
    "belief": 2.0,
    "bias": 5.0,
    "memory": 3.0,
}


@dataclass(frozen=True)
class Rule:
    """Which features, how they are normalised, and the weight function; strategies and workers weigh by it alike.

    `strategy_params` is theta, a number for each feature, then the bias and, where a feature remembers, a shift of the
    memory's rate. All zeros give weights of exactly 1; with `within_class`, only while a class's mean weight is 1 too,
    as it is until other parameters have been used.
    """

    features: tuple[Feature, ...] = ("loss", "entropy")
    label_feature: LabelFeature = "log_frequency"
    margin_scale: MarginScale = "own"
    history_scale: HistoryScale = "class"
    memory_rate: float = 0.2
    normalised: bool = False
    within_class: bool = False

    def __post_init__(self) -> None:
        check_features(self.features)
        choices = {"label_feature": LabelFeature, "margin_scale": MarginScale, "history_scale": HistoryScale}
        for name, kind in choices.items():
            if getattr(self, name) not in get_args(kind):
                raise unknown(name.replace("_", " "), getattr(self, name), get_args(kind))
        require(0 < self.memory_rate < 1, f"memory_rate lies between 0 and 1, but is {self.memory_rate}.")
        require(
            not self.within_class or self.remembers,
            f"weights are followed within classes by a memory: choose a feature that has one, {', '.join(REMEMBERED)}.",
        )

    @classmethod
    def of(cls, search: SearchConfig) -> "Rule":
        """The rule that a search looks for parameters of."""
        return cls(
            features=search.features,
            label_feature=search.label_feature,
            margin_scale=search.margin_scale,
            history_scale=search.history_scale,
            memory_rate=search.memory_rate,
            normalised=search.normalise,
            within_class=search.within_class,
        )

    @property
    def remembers(self) -> bool:
        """Whether a feature needs a memory of each sample."""
        return any(name in REMEMBERED for name in self.features)

    @property
    def param_names(self) -> tuple[str, ...]:
        """What each strategy parameter belongs to."""
        return (*self.features, "bias", *(["memory"] if self.remembers else []))

    @property
    def bounds(self) -> Tensor:
        """Half-widths of the box for the strategy parameters."""
        return torch.tensor([BOUNDS[name] for name in self.param_names])

    def place(self, values: Mapping[str, float]) -> Tensor:
        """Strategy parameters with these values by name; those not named are 0."""
        return torch.tensor([float(values.get(name, 0.0)) for name in self.param_names])

    @property
    def relative(self) -> bool:
        """Whether weights depend on who else is in the batch."""
        own_scale = {"margin": self.margin_scale == "own", "history": self.history_scale != "batch", "belief": True}
        own_scale["label"] = self.label_feature == "class_frequency"
        return self.normalised or not all(own_scale.get(name, False) for name in self.features)

    def weigh(
        self, strategy_params: Tensor, view: View, memory: Memory | None = None, indices: Tensor | None = None
    ) -> Tensor:
        """Weights `[batch]` for parameters `[P]`; samples that are not valid get 0."""
        theta_and_bias = strategy_params[: len(self.features) + 1]
        columns = {name: self._column(name, view) for name in self.features if name not in REMEMBERED}
        if not self.remembers:
            features = torch.stack([columns[name] for name in self.features], dim=-1)
            return weigh(features, theta_and_bias, self.normalised, view.valid)
        assert memory is not None, "this rule remembers samples"
        assert indices is not None, "a memory needs indices"
        labels = view.labels if not view.labels.is_floating_point() else torch.zeros_like(indices)
        labels = labels.long().clamp(min=0)  # those to ignore are not valid, and looked past
        remembered = self._remembered(strategy_params[-1], view, labels, memory, indices)
        features = torch.stack([(columns | remembered)[name] for name in self.features], dim=-1)
        weights = weigh(features, theta_and_bias, self.normalised, view.valid)
        return memory.census.within_class(weights, labels, view.valid) if self.within_class else weights

    def _column(self, name: Feature, view: View) -> Tensor:
        column = OF_THE_BATCH[name](view)
        if name == "label" and self.label_feature == "class_frequency":
            return column
        return normalise(column, view.valid)

    def _remembered(
        self, shift: Tensor, view: View, labels: Tensor, memory: Memory, indices: Tensor
    ) -> dict[Feature, Tensor]:
        rate = (log(self.memory_rate / (1 - self.memory_rate)) + shift).sigmoid()
        columns: dict[Feature, Tensor] = {}
        if "margin" in self.features or "belief" in self.features:
            margin = memory.margins(memory.look(view.logits, labels), labels, indices, rate, view.valid)
            columns["margin"] = margin if self.margin_scale == "own" else normalise(margin, view.valid)
        if "belief" in self.features:
            columns["belief"] = belief(memory, margin, labels, indices, view.valid, view.progress)
        if "history" in self.features:
            history = memory.history.visit(view.losses, labels, indices, rate, view.valid)
            if self.history_scale == "batch":
                columns["history"] = normalise(history, view.valid)
            else:
                columns["history"] = memory.history.standing(history, labels, self.history_scale == "class")
        return columns


def weigh(features: Tensor, strategy_params: Tensor, normalised: bool = False, valid: Tensor | None = None) -> Tensor:
    """Equation 3: `1 + tanh(theta . f + b)`, in [0, 2], for `features` `[batch, F]` and `strategy_params` `[F + 1]`.

    The last parameter is the bias b. `normalised` weights are scaled to a mean of 1 over the batch, so that they choose
    among its samples without changing the size of a step; if all are 0, they stay so. All-zero parameters give weights
    of exactly 1 either way. Samples that are not `valid` get 0.

    `2 sigmoid(2 x)` is the same as `1 + tanh(x)`, but tells small weights apart, which are all that normalised ones are
    made of. And there is no matrix product, which an autocast of the user's would round to half precision.
    """
    theta, bias = strategy_params[:-1], strategy_params[-1]
    weights = 2 * (2 * ((features * theta).sum(dim=-1) + bias)).sigmoid()
    weights = weights if valid is None else weights.where(valid, 0)
    if not normalised:
        return weights
    count = weights.shape[0] if valid is None else valid.sum()
    return weights * count / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
