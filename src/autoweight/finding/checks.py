"""Whether a search can find anything, said before it begins."""

import warnings

from autoweight.config import SearchConfig, TrainingConfig
from autoweight.data.dataset import Samples
from autoweight.data.inputs import row_hashes
from autoweight.data.labelled import Labelled
from autoweight.errors import require, unknown
from autoweight.strategy import Rule
from autoweight.strategy.rule import BOUNDS
from autoweight.training.checks import check_features

_FEW = 50
"""Validation samples; with as many, an accuracy is known to about seven points."""


def check_search(config: SearchConfig, training: TrainingConfig) -> None:
    """Raise `UserError` where search and training do not fit together."""
    rule = Rule.of(config)
    check_features(rule, training.task, "choose among these (search.features)")
    for name, value in config.start.items():
        if name not in BOUNDS:
            raise unknown("parameter in search.start", name, rule.param_names)
        require(
            name in rule.param_names,
            f"search.start names {name}, which is not among search.features: add it there, or leave it out here.",
        )
        box = BOUNDS[name]
        require(abs(value) <= box, f"search.start: {name} goes from -{box} to {box}, but is {value}.")
    begins_with_bias_alone = [name for name, value in config.start.items() if value] == ["bias"]
    require(
        config.normalise or not begins_with_bias_alone,
        "search.start with a bias alone is for normalised weights, since others would only slow the learning: "
        "leave it out, or set search.normalise, or begin with a feature too.",
    )
    require(
        config.warmup_stages < training.num_stages,
        f"a warm-up of {config.warmup_stages} stages leaves nothing of the training's {training.num_stages} to weigh.",
    )


def warn_of_validation(train: Labelled, val: Samples) -> None:
    """Say where a validation set is too small to choose by, or not apart from the training set."""
    if len(val) < _FEW:
        warnings.warn(
            f"{len(val)} validation samples tell little: strategies are chosen by luck. Trust some hundreds.",
            stacklevel=5,
        )
    shared = _shared(train, val) if isinstance(train, Samples) else 0  # streams are not read for that
    if shared > 0.01 * len(val):  # large sets of images have some twins
        warnings.warn(
            f"{shared} of {len(val)} validation samples are in the training set too: networks memorise them, and the "
            "search rewards that. Keep the two apart.",
            stacklevel=5,
        )


def _shared(train: Samples, val: Samples) -> int:
    """How many validation inputs are training inputs, to the last bit."""
    known = set(row_hashes(train.inputs))
    return sum(row in known for row in row_hashes(val.inputs))
