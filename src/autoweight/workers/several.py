"""Several tasks at once: one crew of workers a task, and a gain that can be compared between tasks."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from autoweight.data.mixing import mix
from autoweight.ranks import ALONE, Ranks
from autoweight.strategy import Rule
from autoweight.strategy.memory import Memory
from autoweight.strategy.view import View
from autoweight.workers.base import Problem, StageOutcome, Workers

_HEADROOM = 0.02  # gap below which there is nothing to win
_LEAST_GAP = 0.05  # gap to divide by at least: with less, the luck of a validation set would count most
_HARM = 2.0  # how many times a loss counts where there is nothing to win
_WORST = -4.0  # least gain of one task, so that a collapse on one does not drown the others


def comparable_gain(gain: Tensor, gap: Tensor) -> Tensor:
    """What a gain over the reference is worth, where an oracle's would be `gap`, so that it compares between tasks.

    It is the share of the gap. Where there is nothing to win it is the gain itself, on the scale of a small gap, and a
    loss counts double: who does harm there has no excuse.
    """
    share = gain / gap.clamp(min=_LEAST_GAP)
    lost = (gap < _HEADROOM) & (gain < 0)
    return torch.where(lost, _HARM * share, share).clamp(min=_WORST)


@dataclass(frozen=True, eq=False)
class OracleRule(Rule):
    """Weighs wrong labels by 0 and others by 1, whatever the parameters; a rule, so that any workers can train it."""

    clean: Tensor = field(default_factory=lambda: torch.ones(0))

    @property
    def remembers(self) -> bool:
        """It knows samples by their places."""
        return True

    def weigh(
        self, strategy_params: Tensor, view: View, memory: Memory | None = None, indices: Tensor | None = None
    ) -> Tensor:
        """1 for samples whose label is right."""
        assert indices is not None, "an oracle needs indices"
        return self.clean[indices].where(view.valid, 0)


def oracle_of(problem: Problem) -> Problem | None:
    """The same problem for networks that know which labels are wrong; None where none is known to be."""
    clean = problem.train.clean
    if bool(clean.all()) or problem.train.labels.dim() > 1:  # places are those of single labels
        return None
    return replace(problem, rule=OracleRule(("loss",), clean=clean.float().to(problem.device)))


class SeveralWorkers:
    """One `Workers` a task, which all use the same strategy parameters, and an oracle beside each, where it is known.

    They answer like a single task's workers. The score is the mean of the references plus the mean of the tasks'
    comparable gains, so that the difference between the two, which Algorithm 2 rewards, is that mean.
    """

    def __init__(
        self,
        problems: tuple[Problem, ...],
        num_workers: int,
        num_starts: int,
        make_workers: Callable[..., Workers],
        ranks: Ranks = ALONE,
    ) -> None:
        self.problems, self.num_workers, self.num_starts = problems, num_workers, num_starts
        self.tasks = [make_workers(problem, num_workers, num_starts, ranks) for problem in problems]
        # As many workers as starts: as long as all parameters are 0, one network a start is trained; by every rank.
        self.oracles = [
            None if own is None else make_workers(own, num_starts, num_starts) for own in map(oracle_of, problems)
        ]
        self.largest_gaps: list[float] = []
        self._said_headroom = False
        self._steps_before = 0  # those of a search that goes on from a checkpoint

    @property
    def problem(self) -> Problem:
        """The first task's; stages and rule are those of all."""
        return self.problems[0]

    @property
    def run_beside_the_host(self) -> bool:
        """Whether the host is free while a stage trains."""
        return all(workers.run_beside_the_host for workers in self.tasks)

    @property
    def score_error(self) -> float:
        """Standard error of one mean gain at worst."""
        return sqrt(sum(workers.score_error**2 for workers in self.tasks)) / len(self.tasks) / _LEAST_GAP

    @property
    def network_steps(self) -> int:
        """Steps of all networks, those of oracles included."""
        return self._steps_before + sum(workers.network_steps for workers in [*self.tasks, *self.oracles] if workers)

    @network_steps.setter
    def network_steps(self, steps: int) -> None:
        self._steps_before += steps - self.network_steps

    def begin(self, seed: int) -> None:
        """Start an episode of every task; after the first, say where nothing can be won."""
        if self.largest_gaps and not self._said_headroom:
            self._said_headroom = True
            self._say_headroom()
        self.largest_gaps = [0.0] * len(self.tasks)
        for place, workers in enumerate([*self.tasks, *self.oracles]):
            if workers is not None:
                workers.begin(mix(seed, place % len(self.tasks)))  # an oracle starts as its task's networks do

    def run_stage(
        self, stage: int, strategy_params: Tensor, meanwhile: Callable[[], Any] = lambda: None
    ) -> StageOutcome:
        """Train all tasks' networks through a stage; the mean outcome over the tasks."""
        first, *others = self.tasks
        outcomes = [first.run_stage(stage, strategy_params, meanwhile)]
        outcomes += [workers.run_stage(stage, strategy_params) for workers in others]
        gaps = [self._gap(place, stage, outcome) for place, outcome in enumerate(outcomes)]
        gains = [comparable_gain(own.score - own.reference_score, gap) for own, gap in zip(outcomes, gaps, strict=True)]
        mean = StageOutcome(*(torch.stack(column).mean(dim=0) for column in zip(*outcomes, strict=True)))
        return mean._replace(score=mean.reference_score + torch.stack(gains).mean(dim=0))

    def agreed(self, stop: bool) -> bool:
        """Whether to stop, the same on all ranks."""
        return self.tasks[0].agreed(stop)

    def _gap(self, place: int, stage: int, outcome: StageOutcome) -> Tensor:
        """How far a task's oracle is ahead of its references, `[workers]`; 0 without an oracle."""
        oracle = self.oracles[place]
        if oracle is None:
            return torch.zeros_like(outcome.score)
        nothing = torch.zeros(self.num_starts, oracle.problem.num_params)
        known = oracle.run_stage(stage, nothing).score[self.tasks[place].group_of_worker]
        gap = known - outcome.reference_score
        self.largest_gaps[place] = max(self.largest_gaps[place], float(gap.max()))
        return gap

    def _say_headroom(self) -> None:
        for place, (oracle, gap) in enumerate(zip(self.oracles, self.largest_gaps, strict=True)):
            if oracle is not None:
                _warn_without_headroom(f"task {place + 1}", gap, ", or count it as a guard against harm")


def look_for_headroom(
    problem: Problem, num_starts: int, num_stages: int, seed: int, make_workers: Callable[..., Workers]
) -> int:
    """Warn where a single task leaves nothing to win, by training an oracle beside a reference; the steps that took."""
    oracle = oracle_of(problem)
    if oracle is None:
        return 0
    both = [make_workers(own, num_starts, num_starts) for own in (problem, oracle)]
    for workers in both:
        workers.begin(seed)
    nothing, gap = torch.zeros(num_starts, problem.num_params), 0.0
    for stage in range(num_stages):
        plain, known = (workers.run_stage(stage, nothing).score for workers in both)
        gap = max(gap, float((known - plain).max()))
    _warn_without_headroom("the task", gap)
    return sum(workers.network_steps for workers in both)


def _warn_without_headroom(task: str, gap: float, else_: str = "") -> None:
    if gap < _HEADROOM:
        better = f"training without its wrong labels is at most {100 * gap:.1f} points better"
        warnings.warn(f"{task} leaves nothing to win: {better}. Train it longer{else_}.", stacklevel=5)
