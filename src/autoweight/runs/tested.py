"""Which samples the scores are on: those of a test set, or, where there is none, those that were trained on."""

from typing import Literal

import numpy as np

from autoweight.data.own import OWN
from autoweight.runs.audit import trainings_of
from autoweight.runs.reading import RunView

AGREEMENT = "agreement with the given labels"
Tested = Literal["test", "training"]


def samples_tested(run: RunView) -> Tested:
    """Whether a run's scores are on test samples, or on its training samples since nothing was split off."""
    data = None if run.config is None else run.config.data
    if data is None or data.dataset != OWN or data.test or data.test_share > 0:
        return "test"
    for method, seed in trainings_of(run.path)[:1]:
        columns = run.samples(method, seed) or {}
        if {"test_count", "index"} <= columns.keys() and columns["test_count"] < len(np.unique(columns["index"])):
            return "test"  # the data have a part to test on: what is trained on would be tested whole
    return "training"


def tests_what_was_split_off(run: RunView) -> bool:
    """Whether scores are on the user's own data, as they came: no file was named to test on, no label made wrong."""
    data = None if run.config is None else run.config.data
    as_it_came = data is not None and data.dataset == OWN and not data.test and data.noise == "none"
    return as_it_came and samples_tested(run) == "test"


def name_of_score(run: RunView) -> str:
    """What the score is called; where it is on the very labels that an audit suspects, it is no accuracy."""
    suspects = run.is_audit and run.score_name == "accuracy" and samples_tested(run) == "training"
    return AGREEMENT if suspects else run.score_name
