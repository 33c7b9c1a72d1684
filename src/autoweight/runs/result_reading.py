"""The result of a run, read back leniently from result.json, or, before that is there, from its metrics."""

import json
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from autoweight.config import RunConfig
from autoweight.methods.early_stop import EARLY_STOP
from autoweight.runs.result import recovered_fractions, score_key

Kind = TypeVar("Kind", list[Any], dict[str, Any])


def read_result(path: Path, missing: list[str]) -> dict[str, Any] | None:
    """What result.json says: nothing where it is damaged, None where there is none."""
    try:
        result = parse_json(path.read_text())
    except OSError:
        return None
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict) or not isinstance(result.get("methods"), dict):
        return {}
    score = str(result.get("score", "test_accuracy"))
    sound = {name: values for name, values in result["methods"].items() if _is_sound(values, score)}
    missing += [f"result.json: what {name} reached cannot be read." for name in result["methods"] if name not in sound]
    seeds = _or_empty(list, result.get("seeds"))
    count = max((len(values[score]) for values in sound.values()), default=0)
    known = {seed for seed in seeds if isinstance(seed, int)}
    if len(known) < count:
        missing.append("result.json: its seeds cannot be read; they are counted from 0 here.")
        seeds = list(range(count))
    for part, skipped in _or_empty(dict, result.get("skipped")).items():
        missing.append(f"{skipped} samples of the {part} part could not be read and were skipped.")
    return result | {
        "methods": sound,
        "seeds": seeds if known or count else [],
        "failed": _or_empty(list, result.get("failed")),
        "recovered": _or_empty(dict, result.get("recovered")),
        "search": _or_empty(dict, result.get("search")),
    }


def _or_empty(kind: type[Kind], value: Any) -> Kind:
    """A value, or an empty one where it is not of this kind."""
    return value if isinstance(value, kind) else kind()


def _is_sound(values: Any, score: str) -> bool:
    """Whether these are a method's scores and seconds."""
    columns = [values.get(score), values.get("train_seconds")] if isinstance(values, dict) else [None]
    return all(isinstance(column, list) and column and all(map(is_number, column)) for column in columns)


def result_so_far(lines: list[dict[str, Any]], config: RunConfig | None) -> dict[str, Any]:
    """As much of a result as trainings that have ended tell: of each method, the seeds that it has."""
    score = score_key(config) if config is not None else "test_accuracy"
    ended: dict[str, dict[int, tuple[Any, Any]]] = {}
    for line in lines:
        if line.get("event") != "trained":
            continue
        reached = {str(line.get("method")): line.get(score)}
        if "uniform" in reached:
            reached[EARLY_STOP] = line.get(f"best_{score}")
        seed, seconds = int(line.get("seed") or 0), line.get("train_seconds")
        for name, value in reached.items():
            if is_number(value):
                ended.setdefault(name, {})[seed] = (value, seconds if is_number(seconds) else 0.0)
    methods = {}
    for name, of_seeds in ended.items():
        seeds = sorted(of_seeds)
        scores, seconds = zip(*(of_seeds[seed] for seed in seeds), strict=True)
        methods[name] = {"seeds": seeds, score: list(scores), "train_seconds": list(seconds)}
    return {
        "recipe": config.recipe if config is not None else "",
        "seeds": sorted({seed for of_seeds in ended.values() for seed in of_seeds}),
        "score": score,
        "methods": methods,
        "recovered": _recovered_so_far(ended),
    }


def _recovered_so_far(ended: dict[str, dict[int, tuple[Any, Any]]]) -> dict[str, float]:
    """How much of the oracle's gap each method closes, on the seeds that it has in common with both ends."""
    recovered = {}
    for name in ended:
        among = {one: ended[one] for one in (name, "uniform", "oracle") if one in ended}
        seeds = sorted(set.intersection(*map(set, among.values())))
        scores = {one: [of_seeds[seed][0] for seed in seeds] for one, of_seeds in among.items()}
        if seeds and (found := recovered_fractions(scores)):
            recovered[name] = found[name]
    return recovered


def parse_json(text: str) -> Any:
    """What JSON says, with None for numbers that are not finite."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    return float(text) if isfinite(float(text)) else None


def is_number(value: Any) -> bool:
    """Whether a value read from a file can be used as a number."""
    return isinstance(value, int | float)
