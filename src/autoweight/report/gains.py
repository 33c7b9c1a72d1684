"""Differences between methods with their intervals: over seeds and over test samples, always in pairs."""

from collections.abc import Sequence
from math import comb, erfc, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.report.intervals import NORMAL, combined_half_width, half_width
from autoweight.runs.reading import RunView
from autoweight.runs.tested import Tested, samples_tested

_LITTLE = 0.05  # a smaller probability is no longer called chance
_ROUNDING = 1e-9  # points; equal differences differ by less
UNSURE_GAP = "The oracle's lead over no weighting could be chance: what others close of it cannot be told."
Answer = NDArray[np.bool_]
"""Which of the test samples a training got right."""


class Gain(NamedTuple):
    """One method's score less another's, in points, with a 95 % interval."""

    mean: float
    low: float
    high: float
    over: str
    """What the interval is over, in words; empty where there is none."""
    chance: float | None = None
    """How probable so large a difference is by chance alone, where that is counted exactly."""
    seeds: int = 1

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval to tell; differences that are all equal, as two seeds' may be, give none."""
        return bool(self.over) and (self.high - self.low > _ROUNDING or self.chance not in (None, 1))

    @property
    def may_be_chance(self) -> bool:
        """Whether the interval holds 0, or nothing is known."""
        unlikely = self.chance is None or self.chance < _LITTLE
        return not self.has_interval or self.low <= 0 <= self.high or not unlikely


def gain_over(run: RunView, method: str, rival: str) -> Gain | None:
    """How far a method is ahead of another, always in pairs: over seeds and test samples, as far as both are known."""
    methods = run.result.get("methods", {})
    if method not in methods or rival not in methods or method == rival:
        return None
    own, others = run.scores(method), run.scores(rival)
    differences = {seed: 100 * (score - others[seed]) for seed, score in own.items() if seed in others}
    if not differences:
        return None
    answers = _pairs(run, method, rival, list(differences))
    if len(differences) > 1:
        return over_seeds(list(differences.values()), answers, samples_tested(run))
    (difference,) = differences.values()
    if not answers:
        return Gain(difference, difference, difference, "")
    return over_samples(*answers[0], samples_tested(run))


def over_seeds(
    differences: list[float], answers: Sequence[tuple[Answer, Answer]] = (), tested: Tested = "test"
) -> Gain:
    """The interval of a mean of paired differences; with every seed's answers of both, also over the test samples."""
    count, mean = len(differences), fmean(differences)
    of_seeds, over = stdev(differences) / sqrt(count), f"{count} seeds"
    if answers:
        half = combined_half_width(of_seeds, _samples_error(answers), count)
        over += f" and {min(len(own) for own, _ in answers):,} {tested} samples"
    else:
        half = half_width(of_seeds, count)
    return Gain(mean, mean - half, mean + half, over, seeds=count)


def _samples_error(answers: Sequence[tuple[Answer, Answer]]) -> float:
    """The standard error of the mean over seeds that comes from the samples, in points.

    Samples in the same place are averaged over seeds: where the test set is one, what is common to all seeds stays;
    where each seed drew its own, nothing is common, and the error shrinks with their number.
    """
    size = min(len(own) for own, _ in answers)  # they may differ by a few where each seed drew its own
    means = np.mean([own[:size].astype(float) - other[:size] for own, other in answers], axis=0)
    return 100 * float(means.std()) / sqrt(size)


def over_samples(own: Answer, others: Answer, tested: Tested = "test") -> Gain:
    """The difference of two shares of right answers to the same questions, and McNemar's exact test of it."""
    differences = own.astype(float) - others.astype(float)
    mean = 100 * float(differences.mean())
    half = 100 * NORMAL * float(differences.std()) / sqrt(len(differences))
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    over = f"{len(differences):,} {tested} samples, one seed"
    return Gain(mean, mean - half, mean + half, over, mcnemar(won, lost))


def mcnemar(won: int, lost: int) -> float:
    """The chance that a fair coin falls as unevenly as this, either way."""
    count, fewer = won + lost, min(won, lost)
    if count > 1000:  # the binomial is normal by then
        return min(1.0, float(erfc((abs(won - lost) - 1) / sqrt(2 * count))))
    return min(1.0, 2 * sum(comb(count, k) for k in range(fewer + 1)) / 2**count)


def recovered(run: RunView) -> dict[str, float]:
    """How much of the oracle's gap each method closes; nothing where that gap could be chance."""
    found = run.result.get("recovered", {})
    return {} if gap_is_unsure(run) else {name: one for name, one in found.items() if isinstance(one, int | float)}


def gap_is_unsure(run: RunView) -> bool:
    """Whether the oracle's lead over no weighting could be chance: what is closed of it cannot be told then."""
    gap = gain_over(run, "oracle", "uniform")
    return gap is not None and gap.may_be_chance


def _pairs(run: RunView, method: str, rival: str, seeds: list[int]) -> list[tuple[Answer, Answer]]:
    """Both methods' answers on each seed; nothing unless all seeds have them, to the same samples."""
    pairs = []
    for seed in seeds:
        own, other = answers_of(run, method, seed), answers_of(run, rival, seed)
        if own is None or other is None or len(own) != len(other) or not len(own):
            return []
        pairs.append((own, other))
    return pairs


def answers_of(run: RunView, method: str, seed: int) -> Answer | None:
    """On which test samples a method was right."""
    stopped = method == "early_stop"
    name = "best_right" if stopped else "test_right"
    columns = run.samples("uniform" if stopped else method, seed, only=(name, "test_count"))
    return None if columns is None else columns.get(name)
