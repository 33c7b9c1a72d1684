"""What goes wrong on the user's side, each said in one sentence that tells what to do."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Real
from typing import Any, TypeVar

Entry = TypeVar("Entry")


class UserError(ValueError):
    """A mistake that the user can put right; the command line prints it and exits with 2."""


class RunError(RuntimeError):
    """A run that failed on its way, such as a loss that turned NaN; the command line exits with 1."""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """The option that may have been meant, whatever the case of its letters."""
    by_small_letters = {option.lower(): option for option in options}
    close = get_close_matches(str(name).lower(), by_small_letters, n=1, cutoff=0.4)
    return by_small_letters[close[0]] if close else None


def unknown(kind: str, name: str, options: Iterable[str]) -> UserError:
    """The error for a name that is not among `options`; it proposes the nearest one."""
    options = sorted(options)
    close = nearest(name, options)
    hint = f"choose one of: {', '.join(options)}." if close is None else f"did you mean '{close}'?"
    return UserError(f"unknown {kind} '{name}': {hint}")


def look_up(kind: str, name: str, registry: Mapping[Any, Entry]) -> Entry:
    """What a registry has under this name; the error of `unknown` where it has nothing."""
    if name not in registry:
        raise unknown(kind, name, registry)
    return registry[name]


def require(condition: bool, message: str) -> None:
    """Raise `UserError(message)` unless `condition` holds."""
    if not condition:
        raise UserError(message)


def require_kind(name: str, value: object, kind: type, words: str) -> None:
    """Raise `UserError` unless a value is of this kind, in these words; True and False are no numbers."""
    fits = isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))
    require(fits, f"{name} takes {words}, but is {value!r}.")


def require_numbers(owner: str, **values: object) -> None:
    """Raise `UserError` unless all settings of a method are numbers."""
    for name, value in values.items():
        require_kind(f"{owner}'s {name}", value, Real, "a number")


def first_line(error: Exception) -> str:
    """What an error of another library says, as part of a sentence."""
    return (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(".")
