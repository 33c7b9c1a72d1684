"""What the commands do: check everything, open a run folder, work with a progress bar, end with a table."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from math import isnan
from pathlib import Path
from shlex import join, quote
from typing import Any, NamedTuple

from rich.console import Console

from autoweight.cli.own import begun_from
from autoweight.config import RunConfig
from autoweight.data import load_pool
from autoweight.data.own import OWN
from autoweight.errors import RunError, UserError, first_line, require
from autoweight.finding import Progress, SearchJob
from autoweight.ranks import of_torchrun
from autoweight.recipes import RECIPES, get_recipe
from autoweight.report.page import write_report
from autoweight.report.progress import ProgressBar
from autoweight.report.tables import comparison_table
from autoweight.report.words import describe, gain_sentence
from autoweight.runs import compare as comparing
from autoweight.runs import find as finding
from autoweight.runs.folder import RunFolder
from autoweight.runs.log import LOGS, check_log
from autoweight.runs.reading import read_run
from autoweight.runs.result import make_result
from autoweight.runs.shared import is_finished, opened, resumes
from autoweight.storage.checkpoint import AnotherJobError
from autoweight.strategy import Strategy
from autoweight.strategy.files import RUN_FILE

_COSTLY_STEPS = 50_000_000
"""Network steps, a day or so on one fast GPU: worth a word beforehand."""


class Place(NamedTuple):
    """Where a run writes, and what else it is to write."""

    out: Path | None
    resume: bool
    log: str = ""
    report: bool = True


def compare(config: RunConfig, place: Place, audit: Callable[[Path], Callable[[], None]] | None = None) -> None:
    """Train methods over seeds and show the table.

    `audit` writes its files into the folder before the table is shown, and returns what prints its findings after it.
    """
    ranks, place = of_torchrun(), _resumed(place)
    job = None if is_finished(place.out, place.resume, None, ranks) else comparing.prepare(config, ranks=ranks)
    with _run_folder(config, place) as folder:
        if ranks.share(folder.result() is None):
            assert job is not None
            _finish(folder, make_result(config, **_compare(job, folder)))
        show_audit = audit(folder.path) if audit is not None and ranks.first else None
        _show(folder, place)
        if show_audit is not None:
            show_audit()


def search(config: RunConfig, place: Place, finish: bool = False) -> None:
    """Find a strategy, write it, and say what it does; to `finish` is to choose among the episodes that are done."""
    ranks, place = of_torchrun(), _resumed(place)
    require(place.resume or not finish, "--finish needs --resume, and --out FOLDER, that of the search to finish.")
    job = None if is_finished(place.out, place.resume, config, ranks) else finding.prepare(config, ranks=ranks)
    if job is not None and ranks.first:
        _say_cost(job)
    with _run_folder(config, place) as folder:
        with _search_bar(config, finish) as show:
            strategy = finding.find_strategy(config, job, folder, show, ranks)
        if folder.result() is None:
            _finish(folder, make_result(config, methods={}, search=finding.search_result(strategy)), keep=True)
        to_use = _command_to_use(config, folder.path / RUN_FILE)
        _show(folder, place, strategy, f"use it: {to_use}" if to_use else "")


def demo_config() -> RunConfig:
    """What the demo runs."""
    methods = ("uniform", "auto", "law", "constant", "focal", "self_paced", "oracle")
    return replace(get_recipe("digits-noise"), command="demo", methods=methods, num_seeds=3)


def demo(config: RunConfig, place: Place) -> None:
    """Search on digits with wrong labels, train with what was found and with its rivals, and compare."""
    job = pool = None
    ranks, place = of_torchrun(), _resumed(place)
    if not is_finished(place.out, place.resume, None, ranks):
        pool = load_pool(config.data)
        job = finding.prepare(config, pool, ranks)
        rivals = tuple(method for method in config.methods if method != "law")  # whose strategy is yet to be found
        comparing.prepare(replace(config, methods=rivals or ("uniform",)), pool, ranks)
    with _run_folder(config, place) as folder:
        with _search_bar(config) as show:
            strategy = finding.find_strategy(config, job, folder, show, ranks)
        if ranks.share(folder.result() is None):
            assert pool is not None
            with_strategy = replace(config, strategy=str(folder.path / RUN_FILE))
            compared = _compare(comparing.Comparison(with_strategy, pool), folder)
            _finish(folder, make_result(config, **compared, search=finding.search_result(strategy)))
        _show(folder, place, strategy)


def _compare(job: comparing.Comparison, folder: RunFolder) -> dict[str, Any]:
    ranks = of_torchrun()
    with ProgressBar(shown=ranks.first) as bar:
        return job.run(folder, bar.update, ranks)


def _finish(folder: RunFolder, result: dict[str, Any], keep: bool = False) -> None:
    """Write the result, on the first rank."""
    if of_torchrun().first:
        folder.finish(result, keep_checkpoints=keep)


@contextmanager
def _search_bar(config: RunConfig, finish: bool = False) -> Iterator[Callable[[Progress], bool]]:
    """What shows how far a search is; to `finish`, it answers that no more episodes are to be run."""
    sign = "+" if config.search.reward == "difference" else ""
    with ProgressBar(shown=of_torchrun().first) as bar:

        def show(progress: Progress) -> bool:
            doing = f"{progress.doing} {progress.episode + 1}.{progress.stage + 1}: reference "
            doing += f"{progress.reference_score:.1%}, greedy {progress.greedy_gain:+z.1%}"
            if not isnan(progress.best_gain):
                doing += f", best {progress.best_gain:{sign}.1%}"
            bar.update(progress.done, progress.total, doing)
            return finish and progress.doing == "searching"

        yield show


def _say_cost(job: SearchJob) -> None:
    """Say beforehand where a search is one of days."""
    config = job.config
    steps = sum(len(one.train) // one.training.batch_size * one.training.epochs for one in job.problems)
    rounds = config.num_episodes * (config.num_workers + config.num_starts)
    total, trainings = round(rounds * steps * config.episode_share), rounds * len(job.problems)
    if total > _COSTLY_STEPS:
        print(f"This search trains {trainings:,} networks, {total:,} steps in all: that takes days on a fast GPU.")


def _command_to_use(config: RunConfig, strategy: Path) -> str:
    """The command that trains with the strategy, as this run was configured; empty where it began from a file."""
    if config.data.dataset == OWN:
        start, base = config.data.path, begun_from(config)
    else:
        start, base = config.recipe, get_recipe(config.recipe) if config.recipe in RECIPES else None
    if base is None:
        return ""
    words = ["autoweight", "train", start, "--method", "law", "--strategy", str(strategy)]
    for name in ("network", "seed", "device"):
        words += _flag(name, getattr(config, name), getattr(base, name))
    for part in ("data", "training"):
        now, before = getattr(config, part), getattr(base, part)
        for field in fields(now):
            words += _flag(f"{part}.{field.name}", getattr(now, field.name), getattr(before, field.name))
    return join(words)


def _flag(name: str, value: Any, default: Any) -> list[str]:
    """The words that set what differs from its default."""
    name = name.replace("_", "-")
    if value == default:
        return []
    if isinstance(value, bool):
        section, dot, key = name.rpartition(".")
        return [f"--{name}" if value else f"--{section}{dot}no-{key}"]
    return [f"--{name}", *map(str, value if isinstance(value, tuple) else [value])]


def _show(folder: RunFolder, place: Place, strategy: Strategy | None = None, use: str = "") -> None:
    if not of_torchrun().first:
        return
    console, result = Console(), folder.result()
    assert result is not None
    if strategy is not None:
        for sentence in describe(strategy):
            console.print(sentence, highlight=False)
        print(gain_sentence(strategy.info))
        if dropped := strategy.info.get("dropped_trainings"):
            print(f"{dropped} trainings of the search blew up and were left out.")
    if result["methods"]:
        console.print(comparison_table(read_run(folder.path)))
    print(f"run folder: {folder.path}")
    if use:
        print(use)
    if place.report:
        _page(folder)
    if failed := result.get("failed"):
        more = f" So did {len(failed) - 1} more: see result.json." if len(failed) > 1 else ""
        raise RunError(f"{failed[0]}{more}")


def _resumed(place: Place) -> Place:
    """The same place, to resume where torchrun has started the ranks again."""
    return place._replace(resume=resumes(place.out, place.resume, of_torchrun()))


def _page(folder: RunFolder) -> None:
    """Make the page; what goes wrong there must not spoil a run that is done."""
    try:
        print(f"report: {write_report([folder.path])}")
    except Exception as error:  # whatever it is
        print(f"autoweight: the report was not made: {first_line(error)}.", file=sys.stderr)


@contextmanager
def _run_folder(config: RunConfig, place: Place) -> Iterator[RunFolder]:
    """The folder to work in; an interruption says how to go on."""
    check_log(place.log)
    path = place.out
    try:
        with opened(place.out, config, place.resume, of_torchrun()) as folder:
            path = folder.path
            if place.log and of_torchrun().first:
                folder.listeners.append(LOGS[place.log](folder.path))
            yield folder
    except AnotherJobError as error:
        raise UserError(
            f"the data, the network or settings have changed since the run in {path} began: put them back, or choose "
            "another --out."
        ) from error
    except KeyboardInterrupt:
        again = f"autoweight {config.command} --out {quote(str(path))} --resume"
        best = "; to keep the best so far, add --finish" if config.command == "search" else ""
        raise KeyboardInterrupt(f"What is done is saved; go on with: {again}{best}") from None
