"""The verdict on a run, in sentences: did weighting help, and could that be chance?"""

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from autoweight.config import RunConfig
from autoweight.report.gains import Gain, gain_over, recovered
from autoweight.report.words import chose_nothing, gain_sentence
from autoweight.runs.reading import RunView
from autoweight.runs.tested import AGREEMENT, name_of_score, samples_tested, tests_what_was_split_off

_NOT_OURS = ("uniform", "early_stop", "oracle")
_NO_TEST = (
    "Scores are on the training samples, since nothing was split off to test on: they say nothing of new samples."
)
_SEVERAL = "Several comparisons are made, without correction: the more there are, the likelier one misleads."
_SOME = 0.02  # wrong labels that are worth a word
_FEW = 4  # seeds, whose spread is hardly known
_FEW_SEEDS = (
    "So few seeds hardly tell how much seeds differ. Where they differ by much, the interval is wide, and still holds "
    "the truth in some 90 % of cases, not in 95 %. Take five or more."
)
_FIRST = ("law", "auto")  # what the page is about, where it was trained
_RIVALS = {"uniform": "training without weights", "early_stop": "stopping early by the trusted samples"}


class Comparison(NamedTuple):
    """A method beside one that does not weigh."""

    method: str
    rival: str
    gain: Gain


class Verdict(NamedTuple):
    """What the page says first of a run."""

    sentence: str
    comparisons: Sequence[Comparison] = ()
    notes: Sequence[str] = ()


def chosen_method(run: RunView) -> str | None:
    """The method that the page is about: the searched or the shipped strategy, else the best of the others."""
    methods = run.result.get("methods", {})
    for name in _FIRST:
        if name in methods:
            return name
    others = [name for name in methods if name not in _NOT_OURS]
    return max(others, key=lambda name: fmean(methods[name][run.score]), default=None)


def verdict(run: RunView) -> Verdict:
    """The verdict on a run: a sentence, the comparisons behind it, and notes."""
    if not run.result.get("methods", {}):
        return _search_verdict(run)
    said = _comparison_verdict(run)
    return said if samples_tested(run) == "test" else said._replace(notes=[*said.notes, _NO_TEST])


def on_test_labels(run: RunView, noise_rate: float) -> str:
    """What wrong labels do to the score if the test part of the user's own data has as many; empty where it has not."""
    if noise_rate < _SOME or not tests_what_was_split_off(run):
        return ""
    return (
        f"About {100 * noise_rate:.0f} % of the training labels look wrong. If as many of the test labels are, scores "
        f"stay below about {100 * (1 - noise_rate):.0f} %, and gains look smaller than they are."
    )


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
    ahead = [one.method for one in comparisons if one.rival == "uniform" and not one.gain.may_be_chance]
    closed = recovered(run)
    notes = [
        f"{name} closes {100 * closed[name]:.0f} % of the gap between no weighting and the oracle."
        for name in ahead
        if name in closed
    ]
    if any(1 < one.gain.seeds <= _FEW for one in comparisons):
        notes.append(_FEW_SEEDS)
    if comparisons[1:]:
        notes.append(_SEVERAL)
    return Verdict(sentence if run.finished else f"So far: {sentence}", comparisons, notes)


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
    inside = f"(95 % interval {gain.low:+z.1f} to {gain.high:+z.1f}, over {gain.over})"
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
    ended = run.ended_episodes()
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
