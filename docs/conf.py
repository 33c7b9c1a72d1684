"""How Sphinx builds the site: `make docs`, warnings as errors."""

import inspect
from pathlib import Path

import autoweight
from autoweight.methods import METHODS

project = "autoweight"
author = "The autoweight contributors"
version = release = autoweight.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"autoweight {version}"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_preserve_defaults = True
suppress_warnings = ["myst.xref_missing"]  # pages name files of the repository, which are not part of the site


def write_methods(path: Path) -> None:
    """The page of the methods: the card in each one's docstring, as `autoweight list` has it."""
    lines = [
        "# Methods",
        "",
        "What can stand after `--method`, each with its card. Knobs are set by `--knob METHOD.KNOB=VALUE` on the",
        "command line, and in the constructor in Python. [Which one when](strategies.md) is another page.",
    ]
    for name in METHODS:
        lines += ["", f"## {name}", "", "```text", card_of(name), "```"]
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def card_of(name: str) -> str:
    """The docstring of the file that a method is in."""
    module = inspect.getmodule(METHODS[name])
    assert module is not None
    assert module.__doc__ is not None, f"{name} has no card"
    return module.__doc__.strip()


write_methods(Path(__file__).parent / "methods.md")
