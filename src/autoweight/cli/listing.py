"""What there is: recipes, methods, networks and data sets, each with the first line of its documentation."""

import inspect
from typing import Any

import autoweight
from autoweight.data import DATASETS
from autoweight.methods import METHODS, knobs_of
from autoweight.models import NETWORKS
from autoweight.recipes import RECIPES, own


def version() -> str:
    """The name and version."""
    return f"autoweight {autoweight.__version__}"


def everything() -> str:
    """All names that the command line takes, a line each."""
    parts = {
        "recipes": {name: recipe.about for name, recipe in RECIPES.items()} | {"PATH": _first_line(own)},
        "methods": {name: _method_line(name) for name in METHODS},
        "networks": {name: _first_line(make) for name, make in NETWORKS.items()},
        "data sets": {name: _first_line(load) for name, load in DATASETS.items()},
    }
    return "\n\n".join(_block(title, lines) for title, lines in parts.items())


def _block(title: str, lines: dict[str, str]) -> str:
    return "\n".join([title, *(f"  {name:30}{about}" for name, about in lines.items())])


def _method_line(name: str) -> str:
    line = _first_line(inspect.getmodule(METHODS[name])).removeprefix(f"{name}: ")
    knobs = " ".join(f"{name}.{knob}={parameter.default}" for knob, parameter in knobs_of(name).items())
    return f"{line} {knobs}".rstrip()


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]
