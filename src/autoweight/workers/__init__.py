"""Where episodes run."""

import warnings

import torch

from autoweight.workers.base import Problem, StageOutcome, Workers
from autoweight.workers.graphed import GraphedWorkers
from autoweight.workers.sequential import SequentialWorkers
from autoweight.workers.stacked import StackedWorkers

__all__ = [
    "GraphedWorkers",
    "Problem",
    "SequentialWorkers",
    "StackedWorkers",
    "StageOutcome",
    "Workers",
    "make_workers",
]

_FAST: dict[str, tuple[type[Workers], str]] = {
    "cpu": (StackedWorkers, "cannot be stacked"),
    "cuda": (GraphedWorkers, "cannot be captured in a CUDA graph"),
}


def make_workers(problem: Problem, num_workers: int, num_starts: int = 1) -> Workers:
    """The fastest workers that can run this problem's network; says so where that is the plain loop."""
    kind, complaint = _FAST.get(torch.device(problem.device).type, _FAST["cpu"])
    try:
        _probe(kind(problem, 2))
    except RuntimeError as error:
        reason = str(error).splitlines()[0][:200]
        warnings.warn(f"this network {complaint}, so networks train one after the other: {reason}", stacklevel=2)
        return SequentialWorkers(problem, num_workers, num_starts)
    return kind(problem, num_workers, num_starts)


def _probe(workers: Workers) -> None:
    """One step and one look, with two different networks."""
    with torch.random.fork_rng():
        workers.stage_starts = [0, 1]
        workers.begin(seed=0)
        workers.run_stage(0, torch.tensor([[0.0], [1.0]]).expand(2, len(workers.problem.features) + 1))
