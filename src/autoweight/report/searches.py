"""Figures of a search: returns of its episodes, its references, and the loss gap along a few episodes."""

from math import isfinite
from statistics import fmean, stdev
from typing import Any

from autoweight.report.lines import Series, line_figure
from autoweight.report.strategies import warmup_shade
from autoweight.report.svg import Figure
from autoweight.runs.reading import RunView

_MOST_DOTS = 3000
_MOST_EPISODES = 400
_GAPS = 3
_ONE_DOT = "One dot is one training."
_SHADED = "Shaded is from the worst to the best training."


def search_figures(run: RunView) -> list[Figure]:
    """Every episode's returns with the best so far, and the references' scores."""
    figures = [_returns(run), _references(run)]
    return [figure for figure in figures if figure is not None]


def loss_gap_figure(run: RunView) -> Figure | None:
    """The paper's figure: mean batch loss of the weighted network less its reference's, along three episodes."""
    episodes = _by_episode(run)
    if not episodes:
        return None
    numbers = sorted(episodes)
    chosen = sorted({numbers[round(k * (len(numbers) - 1) / (_GAPS - 1))] for k in range(_GAPS)})
    stages = sorted({int(line.get("stage") or 0) for number in chosen for line in episodes[number]})
    series = []
    for number in chosen:
        gaps = {int(line.get("stage") or 0): line.get("loss_gap") for line in episodes[number]}
        series.append(Series(f"episode {number + 1}", [_sound(gaps.get(stage)) for stage in stages]))
    shade = None if run.config is None else warmup_shade(run.config.search.warmup_stages)
    xs = [stage + 1.0 for stage in stages]
    look_for = (
        "Mean batch loss of the agent's guess less its reference's. Where labels are wrong, look for lines above zero: "
        "the guess leaves unlearned what its reference memorises. The paper's own fall below zero on noisy data, the "
        "later the episode the further, and stay near zero on clean data."
    )
    title = "Loss gap along episodes of the search"
    return line_figure(title, look_for, xs, series, y_name="loss gap", shade=shade, zero=True)


def noise_sentence(run: RunView) -> str:
    """How much of the difference between returns is luck: the same candidates, trained again."""
    lines = run.ended_episodes("choosing")
    total = lines[-1].get("total") if lines else None  # another one in rounds of a choice before the search went on
    rounds = [[_sound(value) for value in line["returns"]] for line in lines if line.get("total") == total]
    if len(rounds) < 2:
        return "How much of the returns is luck cannot be told: no record of a candidate that was trained twice."
    spreads = []
    for column in zip(*rounds, strict=False):
        values = [value for value in column if value is not None]
        if len(values) > 1 and any(values):  # no weighting is level with its reference in every round
            spreads.append(stdev(values))
    tried = [
        value for line in run.ended_episodes("searching") for value in map(_sound, line["returns"]) if value is not None
    ]
    if not spreads or len(tried) < 2:
        return "How much of the returns is luck cannot be told: too few trainings stayed sound."
    return (
        f"The same candidate, trained again from another start, differs by {100 * fmean(spreads):.1f} points (standard "
        f"deviation); all returns of the search differ by {100 * stdev(tried):.1f}. The nearer the two, the more luck."
    )


def _returns(run: RunView) -> Figure | None:
    lines = run.ended_episodes("searching")
    if not lines:
        return None
    guesses = [_sound(line["returns"][0]) for line in lines]
    best: list[float | None] = []
    for guess in guesses:  # of all episodes, also those that are not drawn
        known = [value for value in (guess, best[-1] if best else None) if value is not None]
        best.append(max(known, default=None))
    lines, guesses, best = _thinned(lines), _thinned(guesses), _thinned(best)
    xs = [float(int(line.get("episode") or 0) + 1) for line in lines]
    rows = [[value for value in map(_sound, line["returns"]) if value is not None] for line in lines]
    mean, least, most = ([100 * make(row) if row else None for row in rows] for make in (fmean, min, max))
    few = sum(map(len, rows)) <= _MOST_DOTS
    series = [
        Series("the agent's guess", _percent(guesses)),
        Series("best guess so far", _percent(best)),
        Series("mean of all workers", mean, None if few else (least, most)),
    ]
    dots = [(x, 100 * value) for x, row in zip(xs, rows, strict=True) for value in row] if few else []
    look_for = (
        f"{_ONE_DOT if few else _SHADED} Above zero is ahead of the unweighted reference (or, where a search looks at "
        "plain scores, the score itself). A mean that rises says that the agent learns; a lone high dot is mostly luck."
    )
    return line_figure(
        "Returns of the search",
        look_for,
        xs,
        series,
        x_name="episode",
        y_name="return, points",
        zero=True,
        dots=dots,
        dots_name="one training",
    )


def _references(run: RunView) -> Figure | None:
    episodes = _by_episode(run)
    ends = {number: lines[-1] for number, lines in episodes.items()}
    numbers = _thinned(sorted(ends))
    if not numbers:
        return None
    reference = [_sound(ends[number].get("reference_score")) for number in numbers]
    greedy = [_sound(ends[number].get("greedy_gain")) for number in numbers]
    guess = [a + b if a is not None and b is not None else None for a, b in zip(reference, greedy, strict=True)]
    series = [Series("reference", _percent(reference)), Series("the agent's guess", _percent(guess))]
    xs = [number + 1.0 for number in numbers]
    look_for = (
        "How far the proxies get by the end of an episode, without weights and with the agent's guess. Each episode "
        "starts afresh, so the reference only wobbles; that wobble is how much a start matters."
    )
    title, y_name = "The proxies and their references", "validation score, %"
    return line_figure(title, look_for, xs, series, x_name="episode", y_name=y_name)


def _thinned(values: list[Any]) -> list[Any]:
    """About as many of the values as a chart can show, evenly spaced, the last among them."""
    return values[:: -max(1, len(values) // _MOST_EPISODES)][::-1]


def _by_episode(run: RunView) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for line in run.of("search"):
        if line.get("doing") == "searching":
            found.setdefault(int(line.get("episode") or 0), []).append(line)
    return found


def _sound(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def _percent(values: list[float | None]) -> list[float | None]:
    return [None if value is None else 100 * value for value in values]
