"""Where episodes run."""

import warnings
from math import prod

import torch
from torch import nn

from autoweight.data.inputs import each, parts
from autoweight.errors import first_line
from autoweight.ranks import ALONE, Ranks
from autoweight.training.checks import check_buffers
from autoweight.training.device import isolated
from autoweight.workers.base import Crew, Problem, StageOutcome, Workers
from autoweight.workers.distributed import DistributedWorkers
from autoweight.workers.graphed import GraphedWorkers
from autoweight.workers.sequential import SequentialWorkers
from autoweight.workers.several import SeveralWorkers, look_for_headroom
from autoweight.workers.stacked import StackedWorkers

__all__ = [
    "Crew",
    "DistributedWorkers",
    "GraphedWorkers",
    "Problem",
    "SequentialWorkers",
    "SeveralWorkers",
    "StackedWorkers",
    "StageOutcome",
    "Workers",
    "look_for_headroom",
    "make_crew",
    "make_workers",
]

_FAST: dict[str, tuple[type[Workers], str]] = {
    "cpu": (StackedWorkers, "cannot be stacked"),
    "cuda": (GraphedWorkers, "cannot be captured in a CUDA graph"),
}

_LARGEST_STACKED_IMAGE = 100
"""Pixels. Six small CNNs' step, stacked over one after the other, on two cores: 0.7 at 8 x 8, 1.2 at 12 x 12, 2.4 at
32 x 32 pixels: a CPU is slow at the grouped convolutions that stacking makes."""


def make_crew(problems: tuple[Problem, ...], num_workers: int, num_starts: int = 1, ranks: Ranks = ALONE) -> Crew:
    """The workers of one task, or of several side by side."""
    if len(problems) == 1:
        return make_workers(problems[0], num_workers, num_starts, ranks)
    return SeveralWorkers(problems, num_workers, num_starts, make_workers, ranks)


def make_workers(problem: Problem, num_workers: int, num_starts: int = 1, ranks: Ranks = ALONE) -> Workers:
    """The fastest workers for this problem, their networks dealt over the ranks where there are several."""
    local = _fastest(problem, num_workers, num_starts)
    return local if ranks.size == 1 else DistributedWorkers(local, ranks)


def _fastest(problem: Problem, num_workers: int, num_starts: int) -> Workers:
    """The fastest workers of one process; says so where its network rules them out."""
    kind, complaint = _FAST.get(torch.device(problem.device).type, _FAST["cpu"])
    if kind is StackedWorkers and _convolves_large_images(problem):
        return SequentialWorkers(problem, num_workers, num_starts)
    try:
        _probe(kind(problem, 2 * num_starts, num_starts))
    except torch.OutOfMemoryError:
        raise  # one after the other, they would find out later
    except RuntimeError as error:
        why = first_line(error)
        warnings.warn(f"this network {complaint}, so networks train one after the other: {why}", stacklevel=3)
        return SequentialWorkers(problem, num_workers, num_starts)
    return kind(problem, num_workers, num_starts)


def _convolves_large_images(problem: Problem) -> bool:
    sizes = [prod(part.shape[2:]) for part in parts(problem.train.head(1))]
    with isolated(problem.device):
        layers = list(problem.make_model().modules())
    return max(sizes) > _LARGEST_STACKED_IMAGE and any(isinstance(layer, nn.Conv2d) for layer in layers)


def _probe(workers: Workers) -> None:
    """Train one step and score once, with two different networks for each start, to see whether that works."""
    problem = workers.problem
    with isolated(problem.device):
        few = each(problem.train.head(2), lambda part: part.to(problem.device))
        check_buffers(problem.make_model().to(problem.device), few)
        workers.stage_starts = [0, 1]
        workers.begin(seed=0)
        workers.run_stage(0, torch.arange(workers.num_workers)[:, None].expand(-1, problem.num_params).float())
