"""From a network and data to a strategy: sets up workers and agent, runs Algorithm 2, and wraps what it found."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from autoweight.config import Augmentation, SearchConfig, TrainingConfig
from autoweight.data import as_samples, check_training_data
from autoweight.data.convert import DataLike
from autoweight.data.dataset import Samples
from autoweight.errors import UserError, require
from autoweight.finding.agents import make_agent
from autoweight.finding.checks import check_search, warn_of_validation
from autoweight.finding.fingerprint import digests, fingerprint
from autoweight.finding.loop import Found, Progress, SearchLoop
from autoweight.models import make_network
from autoweight.ranks import ALONE, Ranks, of_process_group
from autoweight.storage.shared import SharedCheckpointFile
from autoweight.strategy import Rule, Strategy
from autoweight.strategy.regime import Regime
from autoweight.training.checks import check_training
from autoweight.training.device import check_device, few_threads, isolated
from autoweight.workers import Problem, make_workers


def search(
    make_model: Callable[[], nn.Module],
    train_data: DataLike,
    val_data: DataLike,
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
    was when it is called again, and one that is done goes on where `num_episodes` is larger than before. Where
    `listen` returns True, the search stops, and keeps the best so far.

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
    require(
        checkpoint is None or not Path(checkpoint).is_dir(), f"checkpoint takes a file, but {checkpoint!r} is a folder."
    )
    ranks = of_process_group() if distributed else ALONE
    job.check(ranks)
    return job.run(None if checkpoint is None else Path(checkpoint), listen, ranks)


class SearchJob(NamedTuple):
    """A search that was checked and can begin."""

    problem: Problem
    config: SearchConfig
    training: TrainingConfig
    """The training that the proxies stand for."""
    seed: int

    def run(
        self,
        checkpoint: Path | None = None,
        listen: Callable[[Progress], Any] = lambda progress: None,
        ranks: Ranks = ALONE,
    ) -> Strategy:
        """The strategy; all ranks have to call it."""
        problem, config = self.problem, self.config
        threads = few_threads(problem.make_model, problem.train, problem.training.batch_size, config.num_workers)
        with threads, isolated(problem.device):
            workers = make_workers(problem, config.num_workers, config.num_starts, ranks)
            agent = make_agent(config, problem.training.num_stages, self.seed)
            file = None if checkpoint is None else SharedCheckpointFile(checkpoint.expanduser(), ranks)
            found = SearchLoop(workers, agent, config, self.seed, file, listen).run()
        return Strategy(found.table, problem.rule, config.warmup_stages, problem.train.class_counts, self._info(found))

    def check(self, ranks: Ranks) -> None:
        """Raise `UserError` where the ranks cannot do this search together."""
        if ranks.size == 1:
            return
        require(
            ranks.size <= self.config.num_workers,
            f"{ranks.size} ranks are more than the {self.config.num_workers} workers of this search: start fewer, or "
            "set search.num_workers to more.",
        )
        data = [*digests(self.problem.train), *digests(self.problem.val)]
        ranks.check_alike(data=str(data), configuration=fingerprint(self.problem, self.config, self.seed))

    def _info(self, found: Found) -> dict[str, Any]:
        training = self.training
        regime = Regime(
            epochs=training.epochs,
            steps=len(self.problem.train) // training.batch_size * training.epochs,
            batch_size=training.batch_size,
            optimizer=training.optimizer,
            weight_decay=training.weight_decay,
            schedule=training.schedule if isinstance(training.schedule, str) else "own",
        )
        return {
            "agent": self.config.agent,
            "seed": self.seed,
            "reward": self.config.reward,
            "task": training.task,
            "validation_gain": found.gain,
            "validation_gain_error": found.gain_error,
            "seconds": found.seconds,
            "episodes": found.episodes,
            "network_steps": found.network_steps,
            "dropped_trainings": found.dropped,
            "found_in": regime.as_dict(),
        }


def prepare_search(
    make_model: Callable[[], nn.Module],
    train_data: DataLike,
    val_data: DataLike,
    config: SearchConfig | None = None,
    *,
    training: TrainingConfig | None = None,
    augmentation: Augmentation = "none",
    seed: int = 0,
    device: str = "cpu",
) -> SearchJob:
    """Everything that a search needs, checked; `UserError` for what would end it."""
    config, training = config or SearchConfig(), training or TrainingConfig()
    require(isinstance(config, SearchConfig), f"config takes an aw.SearchConfig, but is {config!r}.")
    require(isinstance(training, TrainingConfig), f"training takes an aw.TrainingConfig, but is {training!r}.")
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    require(whole and 0 <= seed < 2**31, f"seed goes from 0 to 2147483647, but is {seed!r}.")
    check_device(device)
    train, val = _samples("training", train_data, training), _samples("validation", val_data, training)
    num_classes = max(train.num_classes, val.num_classes)
    train, val = replace(train, num_classes=num_classes), replace(val, num_classes=num_classes)
    check_training_data(train, val, training.batch_size)
    warn_of_validation(train, val)
    check_search(config, training)
    if config.proxy_network:
        make_model = partial(make_network, config.proxy_network, train.input_shape, num_classes)
    # Proxies are small and many, so compiling them does not pay.
    proxy = replace(training, epochs=config.proxy_epochs or training.epochs, compile=False, average=0.0)
    check_training(make_model, train, proxy, device)
    make_agent(config, training.num_stages, int(seed))  # says what it lacks
    problem = Problem(
        make_model,
        train,
        val,
        proxy,
        Rule.of(config),
        augmentation,
        device,
        config.head_start,
        config.augment_stages,
    )
    return SearchJob(problem, config, training, int(seed))


def _samples(part: str, data: DataLike, training: TrainingConfig) -> Samples:
    try:
        return as_samples(data, task=training.task)
    except UserError as error:
        raise UserError(f"the {part} data cannot be used: {error}") from error
