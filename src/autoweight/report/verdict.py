"""Did it help, and could that be chance: differences between methods with their intervals, and a sentence on them."""

import re
from collections.abc import Sequence
from math import comb, erfc, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.config import RunConfig
from autoweight.report.intervals import combined_half_width, half_width
from autoweight.report.words import chose_nothing, gain_sentence
from autoweight.runs.reading import RunView
from autoweight.runs.tested import AGREEMENT, Tested, name_of_score, samples_tested

_NORMAL = 1.96
_LITTLE = 0.05  # a smaller probability is no longer called chance
_ROUNDING = 1e-9  # points; equal differences differ by less
_NOT_OURS = ("uniform", "early_stop", "oracle")
_NO_TEST = (
    "Scores are on the training samples, since nothing was split off to test on: they say nothing of new samples."
)
UNSURE_GAP = "The oracle's lead over no weighting could be chance: what others close of it cannot be told."
_SEVERAL = "Several comparisons are made, without correction: the more there are, the likelier one misleads."
_FEW = 4  # seeds, whose spread is hardly known
_FEW_SEEDS = "So few seeds hardly tell how much seeds differ, and that makes intervals wide: five or more narrow them."
_FIRST = ("law", "auto")  # what the page is about, where it was trained
_RIVALS = {"uniform": "training without weights", "early_stop": "stopping early by the trusted samples"}
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


class Comparison(NamedTuple):
    """A method beside one that does not weigh."""

    method: str
    rival: str
    gain: Gain


class Verdict(NamedTuple):
    """What a run came to."""

    sentence: str
    comparisons: Sequence[Comparison] = ()
    notes: Sequence[str] = ()


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
    half = 100 * _NORMAL * float(differences.std()) / sqrt(len(differences))
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


def verdict(run: RunView) -> Verdict:
    """What a run came to: a sentence, the comparisons behind it, and what else there is to say."""
    if not run.result.get("methods", {}):
        return _search_verdict(run)
    said = _comparison_verdict(run)
    return said if samples_tested(run) == "test" else said._replace(notes=[*said.notes, _NO_TEST])


def _comparison_verdict(run: RunView) -> Verdict:
    """How the methods compare."""
    methods = run.result["methods"]
    method = chosen_method(run)
    if method is None:
        shown = ", ".join(f"{name} {100 * fmean(values[run.score]):.1f}" for name, values in methods.items())
        return Verdict(f"Nothing was weighed that could be judged: {shown} %.")
    judged = [name for name in _FIRST if name in methods] or [method]
    gains = [(name, rival, gain_over(run, name, rival)) for name in judged for rival in _RIVALS]
    comparisons = [Comparison(name, rival, gain) for name, rival, gain in gains if gain is not None]
    if not comparisons:
        reached = 100 * fmean(methods[method][run.score])
        if name_of_score(run) == AGREEMENT:
            return Verdict(f"{method} agrees with {reached:.1f} % of the given labels, wrong ones among them.")
        return Verdict(f"{method} reaches {reached:.1f} %; no training without weights is there to compare with.")
    sentence = _sentence(*comparisons[0])
    notes = [note for name in dict.fromkeys(one.method for one in comparisons) for note in _recovered(run, name)]
    if any(one.gain.may_be_chance and 1 < one.gain.seeds <= _FEW for one in comparisons):
        notes.append(_FEW_SEEDS)
    if comparisons[1:]:
        notes.append(_SEVERAL)
    return Verdict(sentence if run.finished else f"So far: {sentence}", comparisons, notes)


def recovered(run: RunView) -> dict[str, float]:
    """How much of the oracle's gap each method closes; nothing where that gap could be chance."""
    found = run.result.get("recovered", {})
    return {} if gap_is_unsure(run) else {name: one for name, one in found.items() if isinstance(one, int | float)}


def gap_is_unsure(run: RunView) -> bool:
    """Whether the oracle's lead over no weighting could be chance: what is closed of it cannot be told then."""
    gap = gain_over(run, "oracle", "uniform")
    return gap is not None and gap.may_be_chance


def _recovered(run: RunView, method: str) -> list[str]:
    """How much of the oracle's gap a method closes, where there is one that is hardly chance."""
    shares = [share for name, share in recovered(run).items() if name == method]
    return [f"{method} closes {100 * share:.0f} % of the gap between no weighting and the oracle." for share in shares]


def _sentence(name: str, rival: str, gain: Gain) -> str:
    """A comparison in words."""
    side = "ahead of" if gain.mean >= 0 else "behind"
    apart = f"{abs(gain.mean):.1f} points"
    start = f"{name} is {'level with' if apart == '0.0 points' else f'{apart} {side}'} {_RIVALS[rival]}"
    if gain.chance == 1 and not gain.has_interval:
        return f"{name} and {_RIVALS[rival]} are right on the very same of {gain.over}: another seed may differ."
    if not gain.over:
        return f"{start}; one seed, and no record of its answers, cannot tell whether that is chance."
    if not gain.has_interval:
        return f"{start}, the same on each of {gain.over}; that tells no interval, nor whether it is chance."
    inside = f"(95 % interval {gain.low:+.1f} to {gain.high:+.1f}, over {gain.over})"
    return f"{start} {inside}: {'it could be chance' if gain.may_be_chance else 'hardly chance'}."


def _search_verdict(run: RunView) -> Verdict:
    search: dict[str, Any] = run.result.get("search") or {}
    found: dict[str, Any] = {key: value for key, value in search.items() if isinstance(value, int | float)}
    if "validation_gain" not in found:
        return _unfinished_search(run)
    if run.config is not None:
        found |= {"num_tasks": 1 + len(run.config.tasks), "reward": run.config.search.reward}
    said, *more = re.split(r"(?<=\.) (?=[A-Z])", gain_sentence(found))
    if not chose_nothing(found):
        said = f"In the search's proxies, the strategy that was found came to this: {said[0].lower()}{said[1:]}"
    nothing_yet = "No network was trained with it in this run, so that says nothing of a test set yet."
    return Verdict(said, notes=[*more, nothing_yet])


def _unfinished_search(run: RunView) -> Verdict:
    """How far a search has come that has no result yet."""
    ended = [line for line in run.of("search") if isinstance(line.get("returns"), list) and line["returns"]]
    if not ended or run.config is None:
        return Verdict("No record of a training that has ended, so there is nothing to judge.")
    last, of = ended[-1], run.config.search.num_episodes
    sentence = f"The search has ended {min(int(last.get('episode') or 0) + 1, of)} of {of} episodes"
    guesses = [line["returns"][0] for line in ended if line.get("doing") == "searching"]
    known = [guess for guess in guesses if isinstance(guess, int | float)]
    if known:
        sentence += f"; the best return of a guess so far is {100 * max(known):.1f} {_unit(run.config)}"
    if last.get("doing") == "choosing":
        sentence += ", and it is choosing among the candidates"
    note = "The command at the end of this page goes on with it; with --finish, it keeps the best so far."
    return Verdict(f"{sentence}.", notes=["One return is mostly luck.", note])


def _unit(config: RunConfig) -> str:
    """What returns are in."""
    if config.tasks:
        return "% of the gap between no weighting and an oracle"
    return "% right" if config.search.reward == "plain" else "points over no weighting"


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
