"""What the commands do: check everything, open a run folder, work with a progress bar, end with a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from math import isnan
from pathlib import Path
from shlex import join, quote
from typing import Any

from rich.console import Console

from autoweight import comparison, searching
from autoweight.config import RunConfig
from autoweight.errors import RunError
from autoweight.recipes import RECIPES, get_recipe
from autoweight.report.progress import ProgressBar
from autoweight.report.tables import comparison_table
from autoweight.report.words import describe
from autoweight.run_folder import RunFolder
from autoweight.search import Progress
from autoweight.strategy import Strategy
from autoweight.strategy.files import RUN_FILE


def compare(config: RunConfig, out: Path | None, resume: bool) -> None:
    """Train methods over seeds and show the table."""
    if not _finished(out, resume):
        comparison.check(config)
    with _run_folder(config, out, resume) as folder:
        if folder.result() is None:
            folder.finish(comparison.make_result(config, **_compare(config, folder)))
        _show(folder)


def search(config: RunConfig, out: Path | None, resume: bool) -> None:
    """Find a strategy, write it, and say what it does."""
    if not _finished(out, resume):
        searching.check(config)
    with _run_folder(config, out, resume) as folder:
        strategy = _search(config, folder)
        if folder.result() is None:
            folder.finish(comparison.make_result(config, methods={}, search=searching.search_result(strategy)))
        _show(folder, strategy)
        if config.recipe in RECIPES:  # a file may have another name
            print(f"use it: {_command_to_use(config, folder.path / RUN_FILE)}")


def demo_config() -> RunConfig:
    """What the demo runs."""
    methods = ("uniform", "law", "constant", "focal", "self_paced", "oracle")
    return replace(get_recipe("digits-noise"), command="demo", methods=methods, num_seeds=3)


def demo(config: RunConfig, out: Path | None, resume: bool) -> None:
    """Search on digits with wrong labels, train with what was found and with its rivals, and compare."""
    if not _finished(out, resume):
        searching.check(config)
        rivals = tuple(method for method in config.methods if method != "law")  # whose strategy is yet to be found
        comparison.check(replace(config, methods=rivals or ("uniform",)))
    with _run_folder(config, out, resume) as folder:
        strategy = _search(config, folder)
        if folder.result() is None:
            with_strategy = replace(config, strategy=str(folder.path / RUN_FILE))
            compared = _compare(with_strategy, folder)
            folder.finish(comparison.make_result(config, **compared, search=searching.search_result(strategy)))
        _show(folder, strategy)


def _compare(config: RunConfig, folder: RunFolder) -> dict[str, Any]:
    with ProgressBar() as bar:
        return comparison.compare(config, folder, bar.update)


def _search(config: RunConfig, folder: RunFolder) -> Strategy:
    sign = "+" if config.search.reward == "difference" else ""
    with ProgressBar() as bar:

        def show(progress: Progress) -> None:
            doing = f"{progress.doing} {progress.episode + 1}.{progress.stage + 1}: reference "
            doing += f"{progress.reference_accuracy:.1%}, greedy {progress.greedy_gain:+.1%}"
            if not isnan(progress.best_gain):
                doing += f", best {progress.best_gain:{sign}.1%}"
            bar.update(progress.done, progress.total, doing)

        return searching.find_strategy(config, folder, show)


def _command_to_use(config: RunConfig, strategy: Path) -> str:
    """The command that trains with the strategy, as this run was configured."""
    words = ["autoweight", "train", config.recipe, "--method", "law", "--strategy", str(strategy)]
    recipe = get_recipe(config.recipe)
    for name in ("network", "seed", "device"):
        words += _flag(name, getattr(config, name), getattr(recipe, name))
    for part in ("data", "training"):
        own, default = getattr(config, part), getattr(recipe, part)
        for field in fields(own):
            words += _flag(f"{part}.{field.name}", getattr(own, field.name), getattr(default, field.name))
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


def _show(folder: RunFolder, strategy: Strategy | None = None) -> None:
    console, result = Console(), folder.result()
    assert result is not None
    if strategy is not None:
        for sentence in describe(strategy):
            console.print(sentence, highlight=False)
        gain = 100 * strategy.info["validation_gain"]
        what = f"points {'behind' if gain < 0 else 'ahead of'} no weighting"
        if strategy.info.get("reward") == "plain":
            what = "% right"
        print(f"On the validation set it was {abs(gain):.1f} {what}, late stages counting more.")
        if dropped := strategy.info.get("dropped_trainings"):
            print(f"{dropped} trainings of the search blew up and were left out.")
    if result["methods"]:
        console.print(comparison_table(result))
    print(f"run folder: {folder.path}")
    if failed := result.get("failed"):
        more = f" So did {len(failed) - 1} more: see result.json." if len(failed) > 1 else ""
        raise RunError(f"{failed[0]}{more}")


def _finished(out: Path | None, resume: bool) -> bool:
    """Whether there is nothing to do but to show a result, for which neither data nor device have to be there."""
    return resume and out is not None and (out / "result.json").exists()


@contextmanager
def _run_folder(config: RunConfig, out: Path | None, resume: bool) -> Iterator[RunFolder]:
    """The folder to work in; an interruption says how to go on."""
    folder = RunFolder.open(out, config, resume)
    try:
        with folder.locked():
            yield folder
    except KeyboardInterrupt:
        again = f"autoweight {config.command} --out {quote(str(folder.path))} --resume"
        raise KeyboardInterrupt(f"What is done is saved; go on with: {again}") from None
