"""The architecture, kept by looking at what imports what."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import autoweight

ROOT = Path(autoweight.__file__).parent

BASE = {"config", "errors", "ranks", "storage"}
DATA = {"data", "models"}
# What each room may import of ours, besides itself.
ALLOWED = {
    "errors": set(),
    "ranks": {"errors"},
    "storage": {"errors", "ranks"},
    "config": {"errors"},
    "data": {"config", "errors"},
    "models": {"config", "errors"},
    "strategy": BASE,
    "methods": BASE | {"data", "strategy"},
    "training": BASE | DATA | {"strategy", "methods", "distributed"},
    "workers": BASE | DATA | {"strategy", "methods", "training"},
    "finding": BASE | DATA | {"strategy", "methods", "training", "workers"},
    "runs": BASE | DATA | {"strategy", "methods", "training", "workers", "finding", "audit"},
    "recipes": {"config", "errors"},
    "report": BASE | {"strategy", "audit", "runs"},
    "audit": BASE | {"strategy", "methods"},
    "sharded": BASE | {"strategy"},
    "distributed": BASE | {"strategy", "sharded"},
    "integrations": BASE | {"strategy", "methods", "audit", "distributed"},
    **{extra: {"integrations"} for extra in ("lightning", "transformers", "skorch", "sklearn")},
}
ANYTHING = {"__init__", "__main__", "cli"}
"""The public names and the command line are above all rooms."""

FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
MODULES = [".".join(["autoweight", *path.with_suffix("").parts]).removesuffix(".__init__") for path in FILES]


def room_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module == "autoweight" or node.level):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("autoweight."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("autoweight.")}
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_module_is_in_a_known_room_and_imports_only_what_lies_to_its_left(path):
    room = room_of(path)
    if room not in ANYTHING:
        assert room in ALLOWED, f"{path} is in no known room"
        assert imports_of(ROOT / path) - {room} <= ALLOWED[room]


def test_no_room_lies_to_the_left_of_itself():
    def left_of(room: str) -> set[str]:
        return ALLOWED[room].union(*(left_of(other) for other in ALLOWED[room]))

    assert all(room not in left_of(room) for room in ALLOWED)


@pytest.mark.parametrize("module", [module for module in MODULES if not module.endswith("__main__")])
def test_every_module_can_be_imported_under_another_name(module):
    names: dict[str, object] = {}
    exec(f"import {module} as short", names)  # fails where a function hides one of its packages
    if hasattr(importlib.import_module(module), "__path__"):
        assert names["short"] is sys.modules[module]


def test_import_needs_torch_numpy_and_safetensors_only():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {'tyro', 'pydantic', 'yaml', 'rich', 'sklearn', 'cmaes', 'matplotlib', 'jinja2'}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import autoweight
"""
    subprocess.run([sys.executable, "-c", code], check=True)
