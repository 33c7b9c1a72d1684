"""From a network and data to a strategy: sets up workers and agent, runs Algorithm 2, and wraps what it found."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

from torch import nn

from autoweight.checkpoint import CheckpointFile
from autoweight.config import Augmentation, SearchConfig, TrainingConfig
from autoweight.data import as_samples, check_training_data
from autoweight.data.dataset import DataLike, Samples
from autoweight.errors import UserError, require
from autoweight.search.actor_critic import ActorCritic
from autoweight.search.agent import Agent
from autoweight.search.evolution import Evolution
from autoweight.search.loop import Progress, Search
from autoweight.search.random_constant import RandomConstant
from autoweight.strategy import Strategy
from autoweight.strategy.actor import BOUNDS, bounds_of
from autoweight.strategy.features import check_features
from autoweight.training.check import check_network
from autoweight.training.device import check_device, isolated
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
) -> Strategy:
    """Find a weighting strategy for the networks that `make_model` returns; the choice looks at `val_data` alone.

    `training` is how the proxy networks train; it must be long enough for them to memorise what is wrong in the
    training set, or there is nothing to find. With a `checkpoint`, the path of a file, a search that was killed goes on
    where it was when it is called again.
    """
    config, training = config or SearchConfig(), training or TrainingConfig()
    require(isinstance(config, SearchConfig), f"config takes an aw.SearchConfig, but is {config!r}.")
    require(isinstance(training, TrainingConfig), f"training takes an aw.TrainingConfig, but is {training!r}.")
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    require(whole and 0 <= seed < 2**31, f"seed goes from 0 to 2147483647, but is {seed!r}.")
    require(
        checkpoint is None or not Path(checkpoint).is_dir(), f"checkpoint takes a file, but {checkpoint!r} is a folder."
    )
    train, val = _samples("training", train_data), _samples("validation", val_data)
    num_classes = max(train.num_classes, val.num_classes)
    train, val = replace(train, num_classes=num_classes), replace(val, num_classes=num_classes)
    check_training_data(train, val, training.batch_size)
    check_device(device)
    check_search(config, training)
    check_network(make_model, train, training.batch_size, device)
    problem = Problem(
        make_model,
        train,
        val,
        training,
        config.features,
        config.label_feature,
        config.normalise,
        augmentation,
        device,
        config.head_start,
        config.augment_stages,
    )
    with isolated(device):
        workers = make_workers(problem, config.num_workers, config.num_starts)
        agent = make_agent(config, training.num_stages, int(seed))
        file = None if checkpoint is None else CheckpointFile(Path(checkpoint).expanduser())
        found = Search(workers, agent, config, int(seed), file, listen).run()
    return Strategy(
        found.table,
        config.features,
        config.warmup_stages,
        config.label_feature,
        config.normalise,
        train.class_counts,
        actor=agent.learner.actor if isinstance(agent, ActorCritic) else None,
        actor_stages=config.episode_stages(training.num_stages),
        info={
            "agent": config.agent,
            "seed": int(seed),
            "reward": config.reward,
            "validation_gain": found.gain,
            "seconds": found.seconds,
            "episodes": (config.num_episodes + config.choice_rounds) * config.num_workers,
            "network_steps": found.network_steps,
            "dropped_trainings": found.dropped,
        },
    )


def _samples(part: str, data: DataLike) -> Samples:
    try:
        return as_samples(data)
    except UserError as error:
        raise UserError(f"the {part} data cannot be used: {error}") from error


def check_search(config: SearchConfig, training: TrainingConfig) -> None:
    """Raise `UserError` where search and training do not fit together."""
    check_features(config.features)
    for name, value in (("loss", config.start_loss), ("bias", config.start_bias)):
        box = BOUNDS[name]
        require(abs(value) <= box, f"search.start_{name} goes from -{box} to {box}, but is {value}.")
    require(
        "loss" in config.features or config.start_loss == 0,
        "search.start_loss needs the loss among search.features: add it, or set search.start_loss to 0.",
    )
    require(
        config.normalise or config.start_loss < 0 or config.start_bias == 0,
        "search.start_bias alone is for normalised weights, since others would only slow the learning: set it to 0, "
        "or search.normalise, or search.start_loss below 0.",
    )
    require(
        config.warmup_stages < training.num_stages,
        f"a warm-up of {config.warmup_stages} stages leaves nothing of the training's {training.num_stages} to weigh.",
    )


def make_agent(config: SearchConfig, num_stages: int, seed: int) -> Agent:
    """The agent that the configuration names."""
    bounds = bounds_of(config.features)
    match config.agent:
        case "actor-critic":
            return ActorCritic(config, num_stages, bounds, seed)
        case "cmaes":
            return Evolution(config, num_stages, bounds, seed)
        case "constant":
            return RandomConstant(config.num_workers, bounds, seed)
