"""Search a strategy for a recipe, with what a run's folder needs around it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isnan
from typing import Any

from torch import nn

from autoweight.comparison import check_stages
from autoweight.config import RunConfig, TrainingConfig
from autoweight.data import Splits, check_training_data, load_splits
from autoweight.errors import require
from autoweight.models import make_network
from autoweight.run_folder import RunFolder
from autoweight.search import Progress, check_search, make_agent, search
from autoweight.strategy import Strategy
from autoweight.strategy.files import RUN_FILE
from autoweight.training.check import check_network
from autoweight.training.device import check_device

_DATA_SEED = 10_000  # searches see other splits and noise than the seeds that methods are compared on


def search_splits(config: RunConfig) -> Splits:
    """The data of a search: fixed for a seed, its validation part trusted, its test part never looked at."""
    return load_splits(config.data, _DATA_SEED + config.seed)


def check(config: RunConfig) -> None:
    """Raise `UserError` for anything in the configuration that could not run, before a folder is made."""
    check_device(config.device)
    splits = search_splits(config)
    check_training_data(splits.train, splits.val, config.training.batch_size)
    check_network(partial(_make_proxy, config, splits), splits.train, config.training.batch_size, config.device)
    training = proxy_training(config)
    check_stages(training, len(splits.train))
    check_search(config.search, training)
    make_agent(config.search, training.num_stages, config.seed)


def find_strategy(config: RunConfig, folder: RunFolder, listen: Callable[[Progress], Any]) -> Strategy:
    """The recipe's strategy, from the folder where the search is done, else searched and written there."""
    path = folder.path / RUN_FILE
    if path.exists():
        return Strategy.load(path)
    require(folder.result() is None, f"{path} is gone: put it back, or choose another --out to search again.")
    splits = search_splits(config)
    strategy = search(
        partial(_make_proxy, config, splits),
        splits.train,
        splits.val,
        config.search,
        training=proxy_training(config),
        augmentation=config.data.augmentation,
        seed=config.seed,
        device=config.device,
        checkpoint=folder.checkpoint("search").path,
        listen=lambda progress: _log(progress, folder, listen),
    )
    strategy.info["recipe"] = config.recipe
    strategy.save(path)
    return strategy


def proxy_training(config: RunConfig) -> TrainingConfig:
    """How networks train in the search; they are small and many, so compiling them does not pay."""
    return replace(config.training, epochs=config.search.proxy_epochs or config.training.epochs, compile=False)


def _make_proxy(config: RunConfig, splits: Splits) -> nn.Module:
    name = config.search.proxy_network or config.network
    return make_network(name, tuple(splits.train.inputs.shape[1:]), splits.train.num_classes)


def search_result(strategy: Strategy) -> dict[str, Any]:
    """The `search` part of a result."""
    keys = ("validation_gain", "seconds", "episodes", "network_steps")
    return {key: strategy.info[key] for key in keys} | {"strategy": RUN_FILE}


def _log(progress: Progress, folder: RunFolder, listen: Callable[[Progress], Any]) -> None:
    best = None if isnan(progress.best_gain) else progress.best_gain  # JSON knows no NaN
    folder.log({"event": "search", **progress._asdict(), "best_gain": best})
    listen(progress)
