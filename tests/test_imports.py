"""The architecture, kept by looking at what imports what."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import autoweight

ROOT = Path(autoweight.__file__).parent

BASE = {"config", "errors", "atomic"}
DATA = {"data", "models"}
# What each part may import of ours, besides itself.
ALLOWED = {
    "errors": set(),
    "atomic": {"errors"},
    "config": {"errors"},
    "strategy": BASE,
    "methods": BASE | {"strategy"},
    "data": BASE,
    "models": BASE,
    "checkpoint": BASE,
    "training": BASE | DATA | {"strategy", "methods", "checkpoint"},
    "workers": BASE | DATA | {"strategy", "methods", "checkpoint", "training"},
    "search": BASE | DATA | {"strategy", "methods", "checkpoint", "training", "workers"},
    "presets": {"config"},
    "recipes": BASE | {"presets"},
    "report": BASE | {"strategy"},
}


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


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_lies_to_its_left(part):
    files = [ROOT / f"{part}.py"] if (ROOT / f"{part}.py").exists() else sorted((ROOT / part).glob("*.py"))
    assert files
    for path in files:
        assert imports_of(path) - {part} <= ALLOWED[part], path


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
