"""Did it help, and could that be chance: differences between methods with their intervals, and a sentence on them."""

from math import comb, erfc, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.report.intervals import half_width
from autoweight.report.words import gain_sentence
from autoweight.runs.reading import RunView
from autoweight.runs.tested import Tested, samples_tested

_NORMAL = 1.96
_LITTLE = 0.05  # a smaller probability is no longer called chance
_ROUNDING = 1e-9  # points; equal differences differ by less
_NOT_OURS = ("uniform", "early_stop", "oracle")
_NO_TEST = (
    "Scores are on the training samples, since nothing was split off to test on: they say nothing of new samples."
)
_FIRST = ("law", "auto")  # what the page is about, where it was trained


class Gain(NamedTuple):
    """One method's score less another's, in points, with a 95 % interval."""

    mean: float
    low: float
    high: float
    over: str
    """What the interval is over, in words; empty where there is none."""
    chance: float | None = None
    """How probable so large a difference is by chance alone, where that is counted exactly."""

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
    """How far a method is ahead of another: over seeds, or, of one seed, over the test samples, always in pairs."""
    methods = run.result.get("methods", {})
    if method not in methods or rival not in methods or method == rival:
        return None
    own, others = run.scores(method), run.scores(rival)
    differences = {seed: 100 * (score - others[seed]) for seed, score in own.items() if seed in others}
    if len(differences) != 1:
        return over_seeds(list(differences.values())) if differences else None
    ((seed, difference),) = differences.items()
    answers = [_answers(run, name, seed) for name in (method, rival)]
    if answers[0] is None or answers[1] is None or len(answers[0]) != len(answers[1]) or not len(answers[0]):
        return Gain(difference, difference, difference, "")
    return over_samples(answers[0], answers[1], samples_tested(run))


def over_seeds(differences: list[float]) -> Gain:
    """Student's interval for the mean of paired differences."""
    count, mean = len(differences), fmean(differences)
    half = half_width(stdev(differences) / sqrt(count), count)
    return Gain(mean, mean - half, mean + half, f"{count} seeds")


def over_samples(own: NDArray[np.bool_], others: NDArray[np.bool_], tested: Tested = "test") -> Gain:
    """The difference of two shares of right answers to the same questions, and McNemar's exact test of it."""
    differences = own.astype(float) - others.astype(float)
    mean, half = 100 * differences.mean(), 100 * _NORMAL * differences.std() / sqrt(len(differences))
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    over = f"{len(differences):,} {tested} samples, one seed"
    return Gain(mean, mean - half, mean + half, over, mcnemar(won, lost))


def mcnemar(won: int, lost: int) -> float:
    """The chance that a fair coin falls as unevenly as this, either way."""
    count, fewer = won + lost, min(won, lost)
    if count > 1000:  # the binomial is normal by then
        return min(1.0, float(erfc((abs(won - lost) - 1) / sqrt(2 * count))))
    return min(1.0, 2 * sum(comb(count, k) for k in range(fewer + 1)) / 2**count)


def chosen_method(run: RunView) -> str | None:
    """The method that the page is about: the searched or the shipped strategy, else the best of the others."""
    methods = run.result.get("methods", {})
    for name in _FIRST:
        if name in methods:
            return name
    others = [name for name in methods if name not in _NOT_OURS]
    return max(others, key=lambda name: fmean(methods[name][run.score]), default=None)


def verdict(run: RunView) -> list[str]:
    """What a run came to, in sentences."""
    if not run.result.get("methods", {}):
        return _search_verdict(run)
    return _comparison_verdict(run) + ([] if samples_tested(run) == "test" else [_NO_TEST])


def _comparison_verdict(run: RunView) -> list[str]:
    """How the methods compare."""
    methods = run.result["methods"]
    method = chosen_method(run)
    if method is None:
        shown = ", ".join(f"{name} {100 * fmean(values[run.score]):.1f}" for name, values in methods.items())
        return [f"Nothing was weighed that could be judged: {shown} %."]
    judged = [name for name in _FIRST if name in methods] or [method]
    sentences = []
    for name in judged:
        gains = [(rival, gain_over(run, name, rival)) for rival in ("uniform", "early_stop")]
        found = [_sentence(name, rival, gain) for rival, gain in gains if gain is not None]
        sentences += found + (_recovered(run, name) if found else [])
    if not sentences:
        reached = 100 * fmean(methods[method][run.score])
        return [f"{method} reaches {reached:.1f} %; no training without weights is there to compare with."]
    return sentences if run.finished else [f"So far: {sentences[0]}", *sentences[1:]]


def _recovered(run: RunView, method: str) -> list[str]:
    """How much of the oracle's gap a method closes, where there is one that is hardly chance."""
    share, gap = run.result.get("recovered", {}).get(method), gain_over(run, "oracle", "uniform")
    if not isinstance(share, int | float) or gap is None:
        return []
    if gap.may_be_chance:
        return [f"The oracle's lead over no weighting could be chance: what {method} closes of it cannot be told."]
    return [f"{method} closes {100 * share:.0f} % of the gap between no weighting and the oracle."]


def _sentence(method: str, rival: str, gain: Gain) -> str:
    names = {"uniform": "training without weights", "early_stop": "stopping early by the trusted samples"}
    side = "ahead of" if gain.mean >= 0 else "behind"
    apart = f"{abs(gain.mean):.1f} points"
    start = f"{method} is {'level with' if apart == '0.0 points' else f'{apart} {side}'} {names[rival]}"
    if gain.chance == 1 and not gain.has_interval:
        return f"{method} and {names[rival]} are right on the very same of {gain.over}: another seed may differ."
    if not gain.over:
        return f"{start}; one seed, and no record of its answers, cannot tell whether that is chance."
    if not gain.has_interval:
        return f"{start}, the same on each of {gain.over}; that tells no interval, nor whether it is chance."
    inside = f"(95 % interval {gain.low:+.1f} to {gain.high:+.1f}, over {gain.over})"
    return f"{start} {inside}: {'it could be chance' if gain.may_be_chance else 'hardly chance'}."


def _search_verdict(run: RunView) -> list[str]:
    search: dict[str, Any] = run.result.get("search") or {}
    found: dict[str, Any] = {key: value for key, value in search.items() if isinstance(value, int | float)}
    if "validation_gain" not in found:
        return ["No record of a training that has ended, so there is nothing to judge."]
    if run.config is not None:
        found |= {"num_tasks": 1 + len(run.config.tasks), "reward": run.config.search.reward}
    said = gain_sentence(found)
    return [
        f"In the search's proxies, the strategy that was found came to this: {said[0].lower()}{said[1:]}",
        "No network was trained with it in this run, so that says nothing of a test set yet.",
    ]


def _answers(run: RunView, method: str, seed: int) -> NDArray[np.bool_] | None:
    """On which test samples a method was right."""
    stopped = method == "early_stop"
    columns = run.samples("uniform" if stopped else method, seed)
    return None if columns is None else columns.get("best_right" if stopped else "test_right")
