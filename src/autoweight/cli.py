"""The command line: what the user typed, turned into a configuration and handed to what does the work."""

from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from os.path import expanduser
from pathlib import Path
from typing import Any, TypeVar

import tyro

from autoweight import commands, listing
from autoweight.config import AgentName, Command, DataConfig, Knob, RunConfig, SearchConfig, TrainingConfig
from autoweight.config_files import load_config
from autoweight.errors import UserError, require, unknown
from autoweight.flag_errors import one_sentence
from autoweight.methods import check_knobs, knobs_of
from autoweight.presets import PRESETS, PresetName
from autoweight.recipes import RECIPES, get_recipe


@dataclass(frozen=True)
class Common:
    """What every command that runs something takes."""

    out: Path | None = None
    """Folder to write to; by default a fresh one under runs/."""
    resume: bool = False
    """Go on with the interrupted run in the folder --out."""
    config: Path | None = None
    """Run a saved config.yaml again, in place of a recipe."""
    seed: int = 0
    """First seed: of data split, noise, network start and batch order."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""


@dataclass(frozen=True)
class Trained(Common):
    """What the commands that train methods take."""

    data_dir: Path | None = None
    """Where the data set's files are; short for --data.folder."""
    strategy: Path | None = None
    """Strategy file that law uses."""
    knob: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A method's setting, such as focal.gamma=3; 'autoweight list' names them."""
    network: str = "mlp"
    """Name of the network."""
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()


@dataclass(frozen=True)
class TrainArguments(Trained):
    """Train one network with one method."""

    method: str = "uniform"
    """Name of the method."""


@dataclass(frozen=True)
class CompareArguments(Trained):
    """Train several methods over several seeds and show them in one table."""

    methods: str = "uniform"
    """Names of the methods, separated by commas."""
    seeds: int = 1
    """How many seeds, from --seed on."""
    side_by_side: int = 1
    """Trainings that share a GPU at a time."""


@dataclass(frozen=True)
class SearchArguments(Common):
    """Find a strategy and write it to strategy.safetensors."""

    data_dir: Path | None = None
    """Where the data set's files are; short for --data.folder."""
    agent: AgentName | None = None
    """What searches; short for --search.agent."""
    preset: PresetName = "default"
    """default is the recipe's own; noise is for wrong labels, rare for rare classes; paper follows the paper, authors
    its authors' code."""
    network: str = "mlp"
    """Name of the network."""
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()


@dataclass(frozen=True)
class DemoArguments(Common):
    """The whole story on embedded data: search a strategy, train with it, compare."""

    seeds: int = 3
    """How many seeds, from --seed on."""


def run(words: list[str]) -> None:
    """Do what the words of a command line say."""
    if not words or words[0] in ("-h", "--help"):
        lines = [f"  {name:8} {command.__doc__}" for name, command in COMMANDS.items()]
        print("\n".join(["usage: autoweight COMMAND ...", "", *lines, "", "'autoweight COMMAND --help' tells more."]))
    elif words[0] == "--version":
        print(listing.version())
    elif words[0] not in COMMANDS:
        raise unknown("command", words[0], COMMANDS)
    else:
        COMMANDS[words[0]]([_with_home(word) for word in words[1:]])


def _train(words: list[str]) -> None:
    """Train one network with one method: train RECIPE --method M (--strategy FILE for law)"""
    base, words = _base_config("train", words)
    typed = _parse(TrainArguments, base, words, method=base.methods[0])
    settings = _method_settings(base, typed, (typed.method,))
    commands.compare(
        _configured(base, typed, methods=(typed.method,), num_seeds=1, **settings), typed.out, typed.resume
    )


def _compare(words: list[str]) -> None:
    """Several methods, several seeds, one table: compare RECIPE --methods A,B,C --seeds N"""
    base, words = _base_config("compare", words)
    typed = _parse(
        CompareArguments,
        base,
        words,
        methods=",".join(base.methods),
        seeds=base.num_seeds,
        side_by_side=base.side_by_side,
    )
    methods = tuple(name.strip() for name in typed.methods.split(","))
    changes = {"methods": methods, "num_seeds": typed.seeds, "side_by_side": typed.side_by_side}
    settings = _method_settings(base, typed, methods)
    commands.compare(_configured(base, typed, **changes, **settings), typed.out, typed.resume)


def _search(words: list[str]) -> None:
    """Find a strategy: search RECIPE"""
    base, words = _base_config("search", words)
    preset = _value_of("--preset", words)
    if preset is not None:
        if preset not in PRESETS:
            raise unknown("preset", preset, PRESETS)
        base = replace(base, search=PRESETS[preset](base.search))
    typed = _parse(SearchArguments, base, words, search=base.search)
    config = _configured(base, typed, search=typed.search, methods=("law",))
    if typed.agent is not None:
        config = replace(config, search=replace(config.search, agent=typed.agent))
    commands.search(config, typed.out, typed.resume)


def _demo(words: list[str]) -> None:
    """The main job on embedded data: search, train, compare"""
    base, words = _base_config("demo", words)
    typed = _parse(DemoArguments, base, words, seeds=base.num_seeds)
    commands.demo(replace(base, seed=typed.seed, device=typed.device, num_seeds=typed.seeds), typed.out, typed.resume)


def _list(words: list[str]) -> None:
    """recipes, methods with their knobs, networks and data sets, each with a line"""
    if words and not {"-h", "--help"} & set(words):
        raise UserError("list takes no arguments.")
    print(listing.everything())


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "demo": _demo,
    "search": _search,
    "train": _train,
    "compare": _compare,
    "list": _list,
}

Arguments = TypeVar("Arguments", bound=Common)


def _base_config(command: Command, words: list[str]) -> tuple[RunConfig, list[str]]:
    """The configuration to start from, of a file or a recipe, and the words without the recipe's name."""
    file = _value_of("--config", words)
    if file is not None:
        config = load_config(Path(file))
        if config.command != command:
            raise UserError(f"{file} configures '{config.command}': run autoweight {config.command} --config {file}.")
        return config, words
    out = _value_of("--out", words)
    if "--resume" in words and words[0].startswith("-") and out is not None:
        saved = Path(out) / "config.yaml"
        require(saved.exists(), f"{out} holds no run to resume.")
        begun = load_config(saved).command
        require(begun == command, f"{out} holds a run of '{begun}': autoweight {begun} --out {out} --resume.")
        return _base_config(command, [*words, "--config", str(saved)])
    if command == "demo":
        return commands.demo_config(), words
    if words and not words[0].startswith("-"):
        return replace(get_recipe(words[0]), command=command), words[1:]
    if not {"-h", "--help"} & set(words):
        raise UserError(f"name a recipe first: autoweight {command} RECIPE; there are: {', '.join(RECIPES)}.")
    recipe = next((word for word in words if word in RECIPES), next(iter(RECIPES)))  # whose defaults to show
    return replace(get_recipe(recipe), command=command), [word for word in words if word != recipe]


def _with_home(word: str) -> str:
    """--flag=~/file with the home folder's name; shells do that only for words that begin with a tilde."""
    flag, equals, value = word.partition("=")
    return flag + equals + expanduser(value) if flag.startswith("--") and value.startswith("~") else word


def _value_of(flag: str, words: list[str]) -> str | None:
    """The word behind a flag, or behind its equals sign."""
    for word, following in zip_longest(words, words[1:]):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def _parse(kind: type[Arguments], base: RunConfig, words: list[str], **own: Any) -> Arguments:
    """Typed arguments, whose defaults, and so the help, are those of the configuration to start from."""
    values = {"seed": base.seed, "device": base.device, **own}
    if kind is not DemoArguments:
        values |= {"network": base.network, "data": base.data, "training": base.training}
    if issubclass(kind, Trained) and base.strategy is not None:
        values["strategy"] = Path(base.strategy)
    prog = f"autoweight {base.command}" + (" RECIPE" if base.command != "demo" else "")
    said = StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(kind, args=words, default=kind(**values), prog=prog)
    except SystemExit as stop:
        if stop.code:
            raise UserError(one_sentence(said.getvalue())) from None
        raise


def _configured(base: RunConfig, typed: Trained | SearchArguments, **changes: Any) -> RunConfig:
    shared = {name: getattr(typed, name) for name in ("seed", "device", "network", "data", "training")}
    folder = typed.data_dir or typed.data.folder
    if folder:
        absolute = Path(folder).expanduser().absolute()  # so that it resumes from anywhere
        shared["data"] = replace(typed.data, folder=str(absolute))
    return replace(base, **shared, **changes)


def _method_settings(base: RunConfig, typed: Trained, methods: tuple[str, ...]) -> dict[str, Any]:
    """The strategy file and the methods' knobs, those typed over those of the configuration to start from."""
    knobs = {method: dict(values) for method, values in base.knobs.items()}
    for setting in typed.knob:
        method, name, value = _split_knob(setting)
        require((method, name) != ("law", "strategy"), f"--knob {setting}: use --strategy {value}.")
        knobs.setdefault(method, {})[name] = value
        check_knobs(method, {name: value})
        require(method in methods, f"--knob {setting} sets a method that is not trained: {', '.join(methods)}.")
    strategy = None if typed.strategy is None else str(typed.strategy.absolute())
    if strategy is not None and strategy == base.strategy and "law" not in methods:
        strategy = None  # of the configuration to start from, and of no use here
    if strategy is not None:
        require(
            "law" in methods, f"--strategy is for law, but only {', '.join(methods)} is to be trained: name law too."
        )
    return {"knobs": knobs, "strategy": strategy}


def _split_knob(setting: str) -> tuple[str, str, Knob]:
    key, equals, value = setting.partition("=")
    method, dot, name = key.partition(".")
    if not (equals and dot):
        raise UserError(f"--knob takes METHOD.NAME=VALUE, such as focal.gamma=3, but got '{setting}'.")
    knobs_of(method)  # the method is known
    if value.lower() in ("true", "false"):
        return method, name, value.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return method, name, kind(value)
    return method, name, value
