"""What all settings share: frozen dataclasses that refuse wrong types, unknown names and NaN when they are made.

The text under each field is its documentation, and the help of the command line.
"""

from dataclasses import fields
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args, get_origin

from autoweight.errors import require, require_kind, unknown

_KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
    tuple: (tuple, "a tuple"),
    dict: (dict, "names with their values"),
}


class Strict:
    """Refuses wrong types, names that are no choice and NaN; pydantic, where it reads a file, refuses unknown keys."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    prefix: ClassVar[str] = ""
    """What stands before a field's name in messages."""
    free: ClassVar[tuple[str, ...]] = ()
    """Fields that also take what is no choice, such as a function of the user's; they are checked elsewhere."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if not (one.name in self.free and callable(value)):
                self._check(one.name, one.type, value)

    def _check(self, name: str, kind: Any, value: Any) -> None:
        """Raise `UserError` unless a field's value is of the kind that its annotation names."""
        outer, inner = get_origin(kind) or kind, get_args(kind)
        if outer is Literal and value not in inner:
            raise unknown(name.replace("_", " "), str(value), inner)
        wanted, words = _KINDS.get(outer, (object, ""))
        require_kind(f"{self.prefix}{name}", value, wanted, words)
        if inner[:1] == (int,):
            whole = all(isinstance(item, Integral) for item in value)
            require(whole, f"{self.prefix}{name} takes whole numbers, but is {value!r}.")
        if isinstance(value, Real):
            require(isfinite(value), f"{self.prefix}{name} must be a finite number, but is {value}.")

    def _require_at_least(self, least: int, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(value >= least, f"{self.prefix}{name} must be at least {least}, but is {value}.")

    def _require_above_0(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(value > 0, f"{self.prefix}{name} must be above 0, but is {value}.")

    def _require_share(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(0 <= value <= 1, f"{self.prefix}{name} goes from 0 to 1, but is {value}.")
