"""init: writes a commented YAML file to start from."""

from dataclasses import replace
from pathlib import Path
from shlex import quote

from autoweight.cli.arguments import InitArguments
from autoweight.cli.own import NO_SPLIT, with_own
from autoweight.cli.typed import base_config, parse_plain
from autoweight.config import RunConfig
from autoweight.config.commented import commented
from autoweight.errors import require
from autoweight.recipes.own import own_recipe
from autoweight.storage.atomic import write_bytes

FILE = Path("autoweight.yaml")
_EXAMPLE = replace(NO_SPLIT, path="rows.csv", label="label")


def init(words: list[str]) -> None:
    """Write a commented YAML file to start from: init [RECIPE|PATH]"""
    base, words = _base(words)
    begun = InitArguments(seed=base.seed, device=base.device)
    typed = parse_plain(InitArguments, words, "autoweight init [RECIPE|PATH]", begun)
    path = typed.out or FILE
    require(not path.exists(), f"{path} is there already: remove it, or name another with --out FILE.")
    config = replace(base, data=with_own(base.data, typed), seed=typed.seed, device=typed.device)
    named = quote(str(path))
    head = [
        "# What autoweight runs. Change what you like and leave out what you do not need; then one of",
        *(f"#     autoweight {command} --config {named}" for command in ("train", "compare", "search", "audit")),
        f"# For an audit of all samples set {'test_share: 0' if base.data.path else 'train_on_all: true'}.",
    ]
    write_bytes(path, ("\n".join(head) + "\n\n" + commented(config)).encode())
    print(f"wrote {path}; go on with: autoweight train --config {named}")


def _base(words: list[str]) -> tuple[RunConfig, list[str]]:
    """What a path or a recipe begins with, or, without one, a table called rows.csv."""
    if words and not words[0].startswith("-"):
        file = words[0]
        to_write = file.endswith((".yaml", ".yml"))
        require(
            not to_write, f"init takes data or a recipe to begin with: name the file to write with --out {quote(file)}."
        )
        return base_config("any", words)
    example = own_recipe("rows.csv", "table", 0, _EXAMPLE, "classification")
    return replace(example, command="any"), words
