"""The wheel that users install, and what it says of itself."""

import subprocess
import sys
import tomllib
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import autoweight

ROOT = Path(__file__).parents[1]
EXTRAS = {"search", "cli", "images", "lightning", "transformers", "skorch", "sklearn", "docs", "dev"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("autoweight-*.whl")
    return path


def test_everything_in_the_package_is_in_the_wheel(wheel):
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/autoweight"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    expected = {name.removeprefix("src/") for name in files if (ROOT / name).exists()}
    packed = set(ZipFile(wheel).namelist())
    assert "autoweight/py.typed" in expected
    assert expected <= packed
    assert {name for name in packed if not name.startswith("autoweight/")} == {
        name for name in packed if ".dist-info/" in name
    }


def test_an_unpacked_wheel_runs_by_itself(wheel, tmp_path):
    ZipFile(wheel).extractall(tmp_path)
    code = "import autoweight as aw, torch; print(aw.__file__, aw.__version__, type(aw.load('auto')).__name__)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert shown == [str(tmp_path / "autoweight" / "__init__.py"), autoweight.__version__, "Auto"]


def test_the_wheel_names_its_extras_and_version(wheel):
    archive = ZipFile(wheel)
    (path,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    metadata = Parser().parsestr(archive.read(path).decode())
    assert metadata["Version"] == autoweight.__version__
    assert set(metadata.get_all("Provides-Extra")) >= EXTRAS
    lightning = [line for line in metadata.get_all("Requires-Dist") if line.startswith("lightning")]
    assert lightning
    assert all("!=2.6.2" in line and "!=2.6.3" in line for line in lightning)


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (autoweight.__version__, project["license"])
