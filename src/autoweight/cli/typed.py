"""What the user typed, turned into a configuration."""

from contextlib import redirect_stderr, suppress
from dataclasses import replace
from io import StringIO
from itertools import pairwise, zip_longest
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import tyro

from autoweight.cli.arguments import Common, SearchArguments, Trained
from autoweight.cli.commands import demo_config
from autoweight.cli.messages import one_sentence
from autoweight.cli.own import OWN_FLAGS, absolute, absolute_network, is_path, own_config, with_own
from autoweight.config import Command, Knob, RunConfig, TrainingConfig
from autoweight.config.files import load_config
from autoweight.config.training import PAPER_DROPS
from autoweight.errors import UserError, nearest, require
from autoweight.methods import METHODS, check_knobs, knobs_of
from autoweight.recipes import RECIPES, get_recipe
from autoweight.strategy.shipped import SHIPPED, load

Arguments = TypeVar("Arguments", bound=Common)
Plain = TypeVar("Plain")
Training = TypeVar("Training", bound=Trained)


def base_config(command: Command, words: list[str]) -> tuple[RunConfig, list[str]]:
    """The configuration to start from, of a file or a recipe, and the words without the recipe's name.

    A run that is resumed by its folder alone starts from the file in it, as if --config had named that.
    """
    file = value_of("--config", words)
    if file is not None:
        return _of_file(file, command), words
    out = value_of("--out", words)
    if "--resume" in words and words[0].startswith("-") and out is not None:
        file = _file_of_run(out, command)
        return _of_file(file, command), [*words, "--config", file]
    if command == "demo":
        return demo_config(), words
    if words and is_path(words[0]):
        task = value_of("--training.task", words) or "classification"
        told = _told_of_own(command, words)
        return replace(own_config(words[0], told.pop("text", ""), task, **told), command=command), words[1:]
    if words and not words[0].startswith("-"):
        return replace(_recipe(words[0], command), command=command), words[1:]
    if not {"-h", "--help"} & set(words):
        raise UserError(
            "name a recipe, or the path of your own data, first, such as: autoweight "
            f"{command} {next(iter(RECIPES))}, or autoweight {command} rows.csv --label COLUMN. autoweight list names "
            "all recipes."
        )
    recipe = next((word for word in words if word in RECIPES), next(iter(RECIPES)))  # whose defaults to show
    return replace(get_recipe(recipe), command=command), [word for word in words if word != recipe]


def _told_of_own(command: Command, words: list[str]) -> dict[str, Any]:
    """What flags say about which of the user's own samples are trained on."""
    told: dict[str, Any] = {"test_share": 0.0} if command == "audit" else {}
    with suppress(ValueError):  # no share was typed, or none that is a number, which is refused later
        told["test_share"] = float(value_of("--data.test-share", words) or "")
    for name in OWN_FLAGS:
        if value := value_of(f"--{name}", words) or value_of(f"--data.{name}", words):
            told[name] = value
    return told


def _of_file(file: str, command: Command) -> RunConfig:
    """What a file configures for this command."""
    config = load_config(Path(file))
    if config.command not in (command, "any"):
        raise UserError(
            f"{file} configures '{config.command}': run autoweight {config.command} --config {quote(file)}."
        )
    return replace(config, command=command)


def _file_of_run(out: str, command: Command) -> str:
    """The configuration that a run's folder holds; `UserError` where it holds none, or that of another command."""
    saved = Path(out) / "config.yaml"
    require(saved.exists(), f"{out} holds no run to resume.")
    begun = load_config(saved).command
    require(begun == command, f"{out} holds a run of '{begun}': autoweight {begun} --out {quote(out)} --resume.")
    return str(saved)


def _recipe(name: str, command: Command) -> RunConfig:
    """The recipe of this name; a word that is near none may have been meant for a path."""
    if name not in RECIPES and nearest(name, RECIPES) is None:
        there = "no run's folder, no data and no recipe" if command == "audit" else "neither data nor a recipe"
        raise UserError(f"'{name}' names {there}: 'autoweight list' has the recipes.")
    return get_recipe(name)


def value_of(flag: str, words: list[str]) -> str | None:
    """The word behind a flag, or behind its equals sign."""
    for word, following in zip_longest(words, words[1:]):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def parse(kind: type[Arguments], base: RunConfig, words: list[str], **own: Any) -> Arguments:
    """Typed arguments, whose defaults, and so the help, are those of the configuration to start from."""
    _check_knobs_are_no_flags(words)
    _check_methods_are_one_word(words)
    values = {"seed": base.seed, "device": base.device, **own}
    mine = {"network": base.network, "data": base.data, "training": base.training}
    values |= {name: value for name, value in mine.items() if name in kind.__dataclass_fields__}
    if issubclass(kind, Trained) and base.strategy is not None:
        values["strategy"] = Path(base.strategy)
    prog = f"autoweight {base.command}" + (" RECIPE|PATH" if base.command != "demo" else "")
    return parse_plain(kind, words, prog, kind(**values))


def _check_knobs_are_no_flags(words: list[str]) -> None:
    """Raise `UserError` for --METHOD.KNOB: settings of methods are given by --knob, unlike those of data."""
    for word in words:
        flag, _, value = word.partition("=")
        method, dot, knob = flag.removeprefix("--").partition(".")
        if dot and flag.startswith("--") and method in METHODS:
            raise UserError(f"cannot take {flag}: a method's setting is --knob {method}.{knob}={value or 'VALUE'}.")


def _check_methods_are_one_word(words: list[str]) -> None:
    """Raise `UserError` for a list of methods with spaces behind its commas."""
    for word, following in pairwise(words):
        require(
            not (word.endswith(",") and following.rstrip(",") in METHODS),
            f"write methods without spaces between them, {word}{following}.",
        )


def parse_plain(kind: type[Plain], words: list[str], prog: str, default: Plain | None = None) -> Plain:
    """Typed arguments of any kind."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(kind, args=words, default=kind() if default is None else default, prog=prog)
    except SystemExit as stop:
        if stop.code:
            raise UserError(one_sentence(said.getvalue())) from None
        raise


def configured(base: RunConfig, typed: Trained | SearchArguments, **changes: Any) -> RunConfig:
    """The configuration to start from, with what was typed and with these changes."""
    shared = {name: getattr(typed, name) for name in ("seed", "device", "network", "data", "training")}
    shared |= {"data": with_own(typed.data, typed), "network": absolute_network(typed.network)}
    shared["training"] = _with_drops_in_place(typed.training, base.training)
    folder = typed.data_dir or typed.data.folder
    if folder:
        absolute = Path(folder).expanduser().absolute()  # so that it resumes from anywhere
        shared["data"] = replace(shared["data"], folder=str(absolute))
    return replace(base, **shared, **changes)


def _with_drops_in_place(training: TrainingConfig, base: TrainingConfig) -> TrainingConfig:
    """Where the number of stages alone was typed, drops stay where they are in the training, to the nearest stage."""
    if training.num_stages == base.num_stages or training.drop_stages != base.drop_stages:
        return training
    if base.drop_stages == PAPER_DROPS:  # of 20 stages, however many there are
        return training
    places = [round(drop * training.num_stages / base.num_stages) for drop in base.drop_stages]
    drops = {min(max(place, 1), training.num_stages - 1) for place in places}
    return replace(training, drop_stages=tuple(sorted(drops)) if training.num_stages > 1 else ())


def shipped(typed: Training) -> tuple[Training, tuple[str, ...]]:
    """Turn --strategy with the name of a shipped strategy into the method of that name."""
    name = str(typed.strategy)
    return (replace(typed, strategy=None), (name,)) if name in SHIPPED else (typed, ())


def method_settings(base: RunConfig, typed: Trained, methods: tuple[str, ...]) -> dict[str, Any]:
    """The strategy file and the methods' knobs, those typed over those of the configuration to start from."""
    knobs = {method: dict(values) for method, values in base.knobs.items()}
    for setting in typed.knob:
        method, name, value = _split_knob(setting)
        require((method, name) != ("law", "strategy"), f"--knob {setting}: use --strategy {value}.")
        knobs.setdefault(method, {})[name] = value
        check_knobs(method, {name: value})
        require(method in methods, f"--knob {setting} sets a method that is not trained: {', '.join(methods)}.")
    if isinstance(mentor := knobs.get("mentornet", {}).get("mentor"), str):
        knobs["mentornet"]["mentor"] = absolute(mentor)
    if typed.strategy is not None and typed.strategy.name == str(typed.strategy) and not typed.strategy.exists():
        load(typed.strategy)  # a word that is no file: it says which may have been meant
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
