"""Data of the user's own on the command line: a path where a recipe's name may stand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from autoweight.config import DataConfig, RunConfig
from autoweight.data.own import OWN, count_own
from autoweight.data.own.kinds import ENDINGS, kind_of
from autoweight.errors import UserError, require
from autoweight.recipes import RECIPES
from autoweight.recipes.own import own_recipe

NO_SPLIT = DataConfig(dataset=OWN, train_size=0, val_size=0)
"""All that is not tested on is trained on; trusted samples come from the user."""

OWN_FLAGS = ("label", "text", "trusted", "test")
"""What is said about them by a short flag, too."""


def is_path(word: str) -> bool:
    """Whether a word names data of the user's own and not a recipe."""
    if word in RECIPES or word.startswith("-") or not word:  # a flag may hold a path, --out=here/there
        return False
    return "/" in word or word.endswith(ENDINGS) or Path(word).exists()


def own_config(word: str, text: str, task: Any, **told: Any) -> RunConfig:
    """The run to start from for the data at a path; what is `told` of them besides decides how many are trained on."""
    path = Path(word).expanduser()
    kind = kind_of(path, text)
    data = replace(NO_SPLIT, path=str(path.absolute()), text=text)
    return own_recipe(path.name or path.absolute().name, kind, count_own(replace(data, **told), task), data, task)


def begun_from(config: RunConfig) -> RunConfig | None:
    """The configuration that a run on the user's own data had before any flags; None where the data are gone."""
    data = config.data
    told = {name: getattr(data, name) for name in ("label", "trusted", "test", "test_share")}
    try:
        begun = own_config(data.path, data.text, config.training.task, **told)
    except UserError:
        return None
    # Text and task, which decide on the rest, were typed too.
    return replace(begun, data=replace(begun.data, text=""), training=replace(begun.training, task="classification"))


def with_own(data: DataConfig, typed: Any) -> DataConfig:
    """The data with what was typed about the user's own."""
    given = {name: value for name in OWN_FLAGS if (value := getattr(typed, name)) is not None}
    if data.dataset != OWN:
        named = [*given, *(f"data.{name}" for name in ("path", *OWN_FLAGS) if getattr(data, name))]
        require(
            not named, f"--{''.join(named[:1])} is for data of your own: give their path in place of the recipe's name."
        )
        return data
    data = replace(data, **given)
    return replace(data, trusted=absolute(data.trusted, maybe_column=True), test=absolute(data.test))


def absolute_network(name: str) -> str:
    """A network of a file of the user's own, by its whole path, so that it resumes from anywhere."""
    file, colon, function = name.rpartition(":")
    return f"{Path(file).expanduser().absolute()}{colon}{function}" if file.endswith(".py") else name


def absolute(word: str, maybe_column: bool = False) -> str:
    """A file by its whole path, so that it resumes from anywhere; a bare word may be a column."""
    is_file = bool(word) and (not maybe_column or "/" in word or word.endswith(ENDINGS))
    return str(Path(word).expanduser().absolute()) if is_file else word
