"""The command line: what the user typed, handed to what does the work."""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from os.path import expanduser
from pathlib import Path
from typing import get_args

from autoweight.cli import commands, listing, looking
from autoweight.cli.arguments import (
    AuditArguments,
    AuditRunArguments,
    Common,
    CompareArguments,
    DemoArguments,
    ReportArguments,
    SearchArguments,
    TrainArguments,
)
from autoweight.cli.init import init
from autoweight.cli.typed import base_config, configured, method_settings, parse, parse_plain, shipped, value_of
from autoweight.config import AgentName
from autoweight.config.presets import PRESETS
from autoweight.errors import UserError, look_up
from autoweight.runs.reading import is_run


def run(words: list[str]) -> None:
    """Do what the words of a command line say."""
    if not words or words[0] in ("-h", "--help"):
        lines = [f"  {name:8} {command.__doc__}" for name, command in COMMANDS.items()]
        print("\n".join(["usage: autoweight COMMAND ...", "", *lines, "", "'autoweight COMMAND --help' tells more."]))
    elif words[0] == "--version":
        print(listing.version())
    else:
        look_up("command", words[0], COMMANDS)([_with_home(word) for word in words[1:]])


def _train(words: list[str]) -> None:
    """Train one network with one method: train RECIPE --method M (--strategy FILE for law)"""
    base, words = base_config("train", words)
    typed, by_name = shipped(parse(TrainArguments, base, words, method=base.methods[0]))
    methods = by_name or (typed.method,)
    settings = method_settings(base, typed, methods)
    commands.compare(configured(base, typed, methods=methods, num_seeds=1, **settings), _place(typed))


def _compare(words: list[str]) -> None:
    """Several methods, several seeds, one table: compare RECIPE --methods A,B,C --seeds N"""
    base, words = base_config("compare", words)
    typed, by_name = shipped(
        parse(
            CompareArguments,
            base,
            words,
            methods=",".join(base.methods),
            seeds=base.num_seeds,
            side_by_side=base.side_by_side,
        )
    )
    named = tuple(stripped for name in typed.methods.split(",") if (stripped := name.strip()))
    methods = named + tuple(name for name in by_name if name not in named)
    changes = {"methods": methods, "num_seeds": typed.seeds, "side_by_side": typed.side_by_side}
    settings = method_settings(base, typed, methods)
    commands.compare(configured(base, typed, **changes, **settings), _place(typed))


def _search(words: list[str]) -> None:
    """Find a strategy: search RECIPE, or the path of your own data with --trusted"""
    base, words = base_config("search", words)
    preset = value_of("--preset", words)
    if preset is not None:
        change = look_up("preset", preset, PRESETS)
        search, data, training = change.search(base.search), change.data(base.data), change.training(base.training)
        base = replace(base, search=search, data=data, training=training)
    for agent in get_args(AgentName):
        if agent == value_of("--agent", words):  # before the rest, which may fit this agent alone
            base = replace(base, search=replace(base.search, agent=agent))
    typed = parse(SearchArguments, base, words, search=base.search)
    config = configured(base, typed, search=typed.search, methods=("law",))
    commands.search(config, _place(typed), finish=typed.finish)


def _demo(words: list[str]) -> None:
    """The main job on embedded data: search, train, compare"""
    base, words = base_config("demo", words)
    typed = parse(DemoArguments, base, words, seeds=base.num_seeds)
    commands.demo(replace(base, seed=typed.seed, device=typed.device, num_seeds=typed.seeds), _place(typed))


def _place(typed: Common) -> commands.Place:
    return commands.Place(typed.out, typed.resume, typed.log, typed.report)


def _audit(words: list[str]) -> None:
    """Training labels that look wrong, of a run or after one training: audit RUN, or audit RECIPE|PATH"""
    if words and is_run(Path(words[0])):
        _audit_run(Path(words[0]), words[1:])
        return
    if words and looking.holds_runs(Path(words[0])):
        raise UserError(f"{words[0]} holds runs: name one of them, such as {words[0].rstrip('/')}/RUN.")
    base, words = base_config("audit", words)
    method = "auto"
    if value_of("--config", words) is None:
        all_of_it = {"test_share": 0.0} if base.data.path else {"train_on_all": True}
        base = replace(base, data=replace(base.data, **all_of_it))  # so that all samples are looked at
    elif "auto" not in base.methods:
        method = base.methods[0]
    typed = parse(AuditArguments, base, words, method=method)
    looking.check_threshold(typed.threshold)
    settings = method_settings(base, typed, (typed.method,))
    config = configured(base, typed, methods=(typed.method,), num_seeds=1, **settings)
    place = _place(typed)._replace(report=False)  # the audit makes the page
    commands.compare(config, place, audit=lambda folder: looking.audit(folder, typed.threshold, typed.report))


def _audit_run(run: Path, words: list[str]) -> None:
    chosen = parse_plain(AuditRunArguments, words, "autoweight audit RUN")
    show = looking.audit(run, chosen.threshold, chosen.report, method=chosen.method, seed=chosen.seed, out=chosen.out)
    show()


def _report(words: list[str]) -> None:
    """Figures and a page from what runs wrote: report RUN [RUN ...]"""
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    chosen = parse_plain(ReportArguments, words[len(names) :], "autoweight report RUN [RUN ...]")
    if not names:
        raise UserError("name a run's folder first: autoweight report RUN, such as one under runs/.")
    looking.report([Path(name) for name in names], chosen.out)


def _describe(words: list[str]) -> None:
    """What a strategy does, in words: describe FILE, or the name of a shipped one"""
    named = "a run's folder, or auto, noise or rare."
    if {"-h", "--help"} & set(words):
        print(f"usage: autoweight describe FILE\n\nWhat a strategy does, in words; FILE may be {named}")
        return
    if len(words) != 1:
        raise UserError(f"name one strategy: autoweight describe FILE, {named}")
    print("\n".join(looking.description(words[0])))


def _list(words: list[str]) -> None:
    """Recipes, methods with their knobs, networks and data sets, each with a line"""
    if {"-h", "--help"} & set(words):
        print("usage: autoweight list\n\nRecipes, methods with their knobs, networks and data sets, each with a line.")
        return
    if words:
        raise UserError("list takes no arguments.")
    print(listing.everything())


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "demo": _demo,
    "search": _search,
    "train": _train,
    "compare": _compare,
    "report": _report,
    "audit": _audit,
    "describe": _describe,
    "init": init,
    "list": _list,
}


def _with_home(word: str) -> str:
    """~/file or --flag=~/file with the home folder's name; shells leave the second alone, and what is quoted."""
    flag, equals, value = word.partition("=")
    return flag + equals + expanduser(value) if flag.startswith("--") else expanduser(word)
