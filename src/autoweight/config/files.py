"""Strict YAML in and out for configurations: an unknown key or a wrong value is an error that says what is right."""

from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from autoweight.config import RunConfig
from autoweight.errors import UserError, unknown

_WANTED = {
    "tuple_type": "it should be a list",
    "dict_type": "it should be keys with their values",
    "dataclass_type": "it should be keys with their values",
}
"""What pydantic says of Python's types, for readers of YAML."""


def dump_config(config: RunConfig) -> str:
    """The whole configuration as YAML."""
    return yaml.safe_dump(_plain(asdict(config)), sort_keys=False)


def load_config(path: Path) -> RunConfig:
    """The configuration that a YAML file holds."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read the configuration {path}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f": look at line {mark.line + 1}" if mark else ""
        raise UserError(f"{path} is not valid YAML{where}.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} does not hold a configuration.")
    try:
        return TypeAdapter(RunConfig).validate_python(content)
    except ValidationError as error:
        raise _explain(path, error.errors()[0]) from error


def first_difference(one: RunConfig, other: RunConfig) -> str | None:
    """The first key in which two configurations differ, with both values, or None where they are equal."""
    left, right = _flat(asdict(one)), _flat(asdict(other))
    for key in [*left, *right]:
        if left.get(key) != right.get(key):
            return f"{key} was {left.get(key)} and is now {right.get(key)}"
    return None


def _explain(path: Path, problem: Any) -> UserError:
    keys = [str(key) for key in problem["loc"]]
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        error = unknown("key", keys[-1], _fields_at(keys[:-1]))
        return UserError(f"{path}: {error}")
    if problem["type"] == "value_error":
        return UserError(f"{path}: {problem['ctx']['error']}")
    if problem["type"] in ("missing", "missing_argument"):
        return UserError(f"{path}: the key '{keys[-1]}' is missing.")
    wanted = _WANTED.get(problem["type"], f"{problem['msg'][0].lower()}{problem['msg'][1:]}")
    return UserError(f"{path}: {'.'.join(keys)} is {problem['input']!r}: {wanted}.")


def _fields_at(keys: list[str]) -> list[str]:
    """Names of the fields of the part of a configuration that these keys lead to."""
    part: Any = RunConfig(recipe="")
    for key in keys:
        part = getattr(part, key, part)
    return [field.name for field in fields(part)] if is_dataclass(part) else []


def _plain(value: Any) -> Any:
    """Tuples as lists: YAML has no other sequence."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
