"""Search a strategy for a recipe, with what a run's folder needs around it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from autoweight.config import RunConfig, TaskConfig
from autoweight.data import Pool, Splits, load_pool
from autoweight.data.own import OWN
from autoweight.errors import UserError, require
from autoweight.finding import Progress, SearchJob, SearchTask, prepare_search
from autoweight.models import make_network
from autoweight.ranks import ALONE, Ranks
from autoweight.runs.folder import RunFolder
from autoweight.strategy import Strategy
from autoweight.strategy.files import RUN_FILE
from autoweight.strategy.weigher import check_device

_DATA_SEED = 10_000  # searches see other splits and noise than the seeds that methods are compared on


def search_splits(config: RunConfig, pool: Pool, task: int = 0) -> Splits:
    """The data of a search: fixed for a seed, its validation part trusted, its test part never looked at."""
    return pool.splits(config.data, _DATA_SEED * (task + 1) + config.seed)


def prepare(config: RunConfig, pool: Pool | None = None, ranks: Ranks = ALONE) -> SearchJob:
    """A recipe's search that can begin, or `UserError` for what keeps it from that."""
    check_device(config.device)
    pools = {} if pool is None else {_files_of(config): pool}
    tasks = []
    for place, own in enumerate([config, *(_with_task(config, task) for task in config.tasks)]):
        if _files_of(own) not in pools:
            pools[_files_of(own)] = load_pool(own.data, own.training.task)
        tasks.append(_task(own, search_splits(own, pools[_files_of(own)], place)))
    job = prepare_search(tasks, config=config.search, seed=config.seed, device=config.device)
    job.check(ranks)
    return job


def _with_task(config: RunConfig, task: TaskConfig) -> RunConfig:
    """The run with a further task in place of its own."""
    data = replace(task.data, folder=task.data.folder or config.data.folder)
    return replace(config, data=data, network=task.network or config.network, training=task.training or config.training)


def _task(config: RunConfig, splits: Splits) -> SearchTask:
    if splits.val is None:
        raise UserError(
            "a search needs trusted samples, whose labels were checked: mark some hundreds with --trusted, or, if all "
            "labels are right, hold some out with --data.val-size; without any, 'train --method auto' needs no search."
        )
    make_model = partial(make_network, config.network, splits.train.input_shape, splits.train.num_classes)
    return SearchTask(make_model, splits.train, splits.val, config.training, config.data.augmentation)


def _files_of(config: RunConfig) -> tuple[Any, ...]:
    """What decides whether two tasks read the same data: the files, and of the user's own data every setting."""
    data = config.data
    own = (data, config.training.task) if data.dataset == OWN else ()
    return data.dataset, data.folder, *own


def find_strategy(
    config: RunConfig,
    job: SearchJob | None,
    folder: RunFolder,
    listen: Callable[[Progress], Any],
    ranks: Ranks = ALONE,
) -> Strategy:
    """The recipe's strategy, from the folder where the search is done, else searched and written there.

    All ranks search; the first one writes.
    """
    path = folder.path / RUN_FILE
    if ranks.share(path.exists()):
        return Strategy.load(path)
    require(folder.result() is None, f"{path} is gone: put it back, or choose another --out to search again.")
    assert job is not None
    log = partial(_log, folder=folder, listen=listen) if ranks.first else lambda progress: None
    strategy = job.run(folder.checkpoint_path("search"), log, ranks)
    strategy.info["recipe"] = config.recipe
    if ranks.first:
        strategy.save(path)
    return strategy


def search_result(strategy: Strategy) -> dict[str, Any]:
    """The `search` part of a result."""
    gain = ("validation_gain", "validation_gain_error", "validation_repeats", "candidates")
    keys = (*gain, "seconds", "episodes", "network_steps")
    return {key: strategy.info[key] for key in keys if key in strategy.info} | {"strategy": RUN_FILE}


def _log(progress: Progress, folder: RunFolder, listen: Callable[[Progress], Any]) -> Any:
    line = progress._asdict()
    if not progress.returns:
        del line["returns"]
    folder.log({"event": "search", **line})
    return listen(progress)
