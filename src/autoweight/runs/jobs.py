"""The trainings of a comparison, and what the lines of its folder tell of those that have ended."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from autoweight.errors import RunError
from autoweight.methods.early_stop import EARLY_STOP
from autoweight.runs.folder import RunFolder


class Job(NamedTuple):
    """One training of a comparison."""

    method: str
    seed: int


def ended(folder: RunFolder, job: Job) -> dict[str, Any] | None:
    """The line that a training ends with, if it has ended."""
    lines = (folder.find(event=event, **job._asdict()) for event in ("trained", "failed"))
    return next((line for line in lines if line), None)


def collect(folder: RunFolder, methods: Sequence[str], seeds: Sequence[int], score: str) -> dict[str, Any]:
    """The `methods` of a result, and those that `failed`, if any: what each method's trainings ended with, by seed.

    What stops early is read off the trainings of uniform.
    """
    results: dict[str, Any] = {}
    failed: list[str] = []
    for method in methods:
        trained = "uniform" if method == EARLY_STOP else method
        lines = [ended(folder, Job(trained, seed)) or {} for seed in seeds]
        whys = [line["why"] for line in lines if "why" in line]
        if whys:
            failed += [why for why in whys if why not in failed]
        elif method == EARLY_STOP:
            best = {score: f"best_{score}", "train_seconds": "train_seconds", "best_stage": "best_stage"}
            results[method] = {name: [line[key] for line in lines] for name, key in best.items()}
        else:
            keys = [key for key in lines[0] if key.startswith(score) or key == "train_seconds"]
            results[method] = {key: [line[key] for line in lines] for key in keys}
    if not results:
        raise RunError(failed[0])
    return {"methods": results, **({"failed": failed} if failed else {})}
