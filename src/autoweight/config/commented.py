"""A configuration as YAML to start from: every key under the text that documents it."""

import ast
import inspect
import textwrap
from dataclasses import fields, is_dataclass
from typing import Any

import yaml

from autoweight.config.data import DataConfig
from autoweight.config.run import RunConfig
from autoweight.config.search import SearchConfig

_WIDTH = 100


def commented(config: RunConfig) -> str:
    """The configuration as YAML, each key with a comment."""
    return "\n".join(_lines(config, 0)) + "\n"


def _lines(part: Any, depth: int) -> list[str]:
    about, left_out, lines = _documentation(type(part)), _left_out(part), []
    for one in fields(part):
        value, indent = getattr(part, one.name), "  " * depth
        if one.name in left_out:
            continue
        if is_dataclass(value):
            text = (inspect.getdoc(type(value)) or "").partition("\n")[0]
            lines += ["", *_comment(text, indent), f"{indent}{one.name}:", *_lines(value, depth + 1)]
        else:
            lines += [*_comment(about.get(one.name, ""), indent), f"{indent}{one.name}: {_plain(value)}"]
    return lines


def _left_out(part: Any) -> set[str]:
    """Keys that need no reader: those of agents that are not used, and of data sets with names."""
    if isinstance(part, SearchConfig):
        agents = {one.name for one in fields(part) if is_dataclass(getattr(part, one.name))}
        return agents - {part.agent.replace("-", "_")}
    return {"folder", "rare_classes"} if isinstance(part, DataConfig) else set()


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _plain(value: Any) -> str:
    """A value on one line, as YAML has it."""
    shown = yaml.safe_dump(list(value) if isinstance(value, tuple) else value, default_flow_style=True, width=10_000)
    return shown.removesuffix("\n").removesuffix("...").rstrip()


def _documentation(kind: type) -> dict[str, str]:
    """The text under each field of a class, and of those that it comes from."""
    found = {name: text for base in kind.__bases__ if is_dataclass(base) for name, text in _documentation(base).items()}
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found
