"""From a network and data to a strategy: sets up workers and agent, runs Algorithm 2, and wraps what it found."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from autoweight.config import Augmentation, SearchConfig, TrainingConfig
from autoweight.data import check_training_data
from autoweight.data.convert import DataLike
from autoweight.data.digests import digests
from autoweight.data.mixing import mix
from autoweight.data.streamed import warn_of_skipped
from autoweight.errors import require
from autoweight.finding.agents import make_agent
from autoweight.finding.checks import check_search, warn_of_validation
from autoweight.finding.fingerprint import fingerprint
from autoweight.finding.loop import SearchLoop
from autoweight.finding.outcomes import Found, Progress
from autoweight.finding.tasks import SearchTask, check_together, samples_of, tasks_of
from autoweight.models import make_network
from autoweight.ranks import ALONE, Ranks, of_process_group
from autoweight.storage.shared import SharedCheckpointFile
from autoweight.strategy import Rule, Strategy
from autoweight.strategy.regime import Regime
from autoweight.training.checks import check_call, check_file, check_listen, check_training
from autoweight.training.device import few_threads, isolated
from autoweight.workers import Problem, look_for_headroom, make_crew, make_workers


def search(
    make_model: Callable[[], nn.Module] | Sequence[SearchTask],
    train_data: DataLike | None = None,
    val_data: DataLike | None = None,
    config: SearchConfig | None = None,
    *,
    training: TrainingConfig | None = None,
    augmentation: Augmentation = "none",
    seed: int = 0,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    listen: Callable[[Progress], Any] = lambda progress: None,
    distributed: bool = False,
) -> Strategy:
    """Find a weighting strategy for the networks that `make_model` returns; the choice looks at `val_data` alone.

    `training` is how the networks train; it must be long enough for them to memorise what is wrong in the training
    set, or there is nothing to find. With a `checkpoint`, the path of a file, a search that was killed goes on where it
    was when it is called again, and one that is done goes on where `num_episodes` is larger than before. To begin anew,
    delete the file and NAME.previous beside it, the checkpoint before. Where `listen` returns True, the search stops,
    and keeps the best so far.

    For a strategy that serves many tasks, pass a list of them in place of network and data,
    `search([SearchTask(make_model, train_data, val_data), ...], config=config)`: every episode trains on all.

    With `distributed`, the ranks of the process group that you have initialised share the work; all of them call this
    and get the same strategy. The first one's `listen` and `checkpoint` count.
    """
    job = prepare_search(
        make_model,
        train_data,
        val_data,
        config,
        training=training,
        augmentation=augmentation,
        seed=seed,
        device=device,
    )
    check_file(checkpoint)
    check_listen(listen)
    ranks = of_process_group() if distributed else ALONE
    job.check(ranks)
    return job.run(None if checkpoint is None else Path(checkpoint), listen, ranks)


class SearchJob(NamedTuple):
    """A search that was checked and can begin."""

    problems: tuple[Problem, ...]
    """What is trained: one problem a task."""
    config: SearchConfig
    trainings: tuple[TrainingConfig, ...]
    """The trainings that the proxies stand for."""
    seed: int
    knows_truth: bool = False
    """Whether the true labels of a single task are known, so that an oracle can tell how much there is to win."""

    def run(
        self,
        checkpoint: Path | None = None,
        listen: Callable[[Progress], Any] = lambda progress: None,
        ranks: Ranks = ALONE,
    ) -> Strategy:
        """Search, and return the strategy; all ranks have to call it."""
        problem, config = self.problems[0], self.config
        num_stages = problem.training.num_stages
        threads = few_threads(problem.make_model, problem.train, problem.training.batch_size, config.num_workers)
        with threads, isolated(problem.device):
            workers = make_crew(self.problems, config.num_workers, config.num_starts, ranks)
            agent = make_agent(config, num_stages, self.seed)
            begins = checkpoint is None or not checkpoint.exists()
            if self.knows_truth and begins:  # a search that goes on has said it already
                stages, seed = config.episode_stages(num_stages), mix(self.seed, 0)
                workers.network_steps += look_for_headroom(problem, config.num_starts, stages, seed, make_workers)
            file = None if checkpoint is None else SharedCheckpointFile(checkpoint.expanduser(), ranks)
            found = SearchLoop(workers, agent, config, self.seed, file, listen).run()
        for one in self.problems:
            warn_of_skipped(one.train)
        counts = problem.train.class_counts if len(self.problems) == 1 else None  # those of one task are not another's
        return Strategy(found.table, problem.rule, config.warmup_stages, counts, self._info(found))

    def check(self, ranks: Ranks) -> None:
        """Raise `UserError` where the ranks cannot do this search together."""
        if ranks.size == 1:
            return
        require(
            ranks.size <= self.config.num_workers,
            f"{ranks.size} ranks are more than the {self.config.num_workers} workers of this search: start fewer, or "
            "set search.num_workers to more.",
        )
        data = [digests(part) for problem in self.problems for part in (problem.train, problem.val)]
        configuration = [fingerprint(problem, self.config, self.seed) for problem in self.problems]
        ranks.check_alike(data=str(data), configuration=str(configuration))

    def _info(self, found: Found) -> dict[str, Any]:
        tasks = zip(self.problems, self.trainings, strict=True)
        regimes = [Regime.of(training, len(problem.train)) for problem, training in tasks]
        return {
            "agent": self.config.agent,
            "seed": self.seed,
            "reward": self.config.reward,
            "task": self.trainings[0].task,
            "num_tasks": len(self.problems),
            "validation_gain": found.gain,
            "validation_gain_error": found.gain_error,
            "validation_repeats": found.repeats,
            "candidates": found.candidates,
            "seconds": found.seconds,
            "episodes": found.episodes,
            "network_steps": found.network_steps,
            "dropped_trainings": found.dropped,
            "found_in": Regime.shared(regimes).as_dict(),
        }


def prepare_search(
    make_model: Callable[[], nn.Module] | Sequence[SearchTask],
    train_data: DataLike | None = None,
    val_data: DataLike | None = None,
    config: SearchConfig | None = None,
    *,
    training: TrainingConfig | None = None,
    augmentation: Augmentation = "none",
    seed: int = 0,
    device: str = "cpu",
) -> SearchJob:
    """A search that can begin; `UserError` where a setting or the data would end it."""
    config, training = config or SearchConfig(), training or TrainingConfig()
    require(isinstance(config, SearchConfig), f"config takes an aw.SearchConfig, but is {config!r}.")
    check_call(training, seed, device)
    tasks = tasks_of(make_model, train_data, val_data)
    trainings = tuple(task.training or training for task in tasks)
    problems = []
    for task, own in zip(tasks, trainings, strict=True):
        problems.append(_problem(task, own, task.augmentation or augmentation, config, device))
    check_together(problems, config)
    make_agent(config, trainings[0].num_stages, int(seed))  # to raise now what it would raise later
    knows_truth = len(tasks) == 1 and tasks[0].true_labels is not None
    return SearchJob(tuple(problems), config, trainings, int(seed), knows_truth)


def _problem(
    task: SearchTask, training: TrainingConfig, augmentation: Augmentation, config: SearchConfig, device: str
) -> Problem:
    """What a task's episodes train, checked."""
    make_model = task.make_model
    train, val = samples_of(task, training)
    check_training_data(train, val, training.batch_size)
    warn_of_validation(train, val)
    check_search(config, training)
    if config.proxy_network:
        make_model = partial(make_network, config.proxy_network, train.input_shape, train.num_classes)
    # Proxies are small and many, so compiling them does not pay.
    proxy = replace(training, epochs=config.proxy_epochs or training.epochs, compile=False, average=0.0)
    check_training(make_model, train, proxy, device)
    return Problem(
        make_model=make_model,
        train=train,
        val=val,
        training=proxy,
        rule=Rule.of(config),
        augmentation=augmentation,
        device=device,
        head_start=config.head_start,
        augment_stages=config.augment_stages,
    )
