"""Every example runs as a user types it, and weighting helps there."""

import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

from autoweight.runs.log import LOGS

from .typed import Typed

EXAMPLES = Path(__file__).parents[1] / "examples"


def accuracy_of(name: str, *words: str) -> float:
    example = partial(runpy.run_path, str(EXAMPLES / f"{name}.py"), run_name="__main__")
    done = Typed(*words, cwd=EXAMPLES, program=example).wait()
    assert done.status == 0, done.stderr
    return float(done.stdout.split()[-1].rstrip("%"))


def test_three_lines_in_a_plain_loop_help():
    assert accuracy_of("plain_loop") > accuracy_of("plain_loop", "none") + 5


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [  # above what the same training reaches without weights, where it is long enough to tell
        ("lightning_rows", (), 88),
        ("skorch_digits", (), 88),
        ("sklearn_forest", (), 93.5),
        ("transformers_text", ("auto", "1"), 20),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_example_runs_and_its_weights_help(name, words, least):
    assert accuracy_of(name, *words) > least


def test_no_example_is_forgotten():
    known = {"plain_loop", "lightning_rows", "skorch_digits", "sklearn_forest", "transformers_text", "log_elsewhere"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == known


def test_metrics_go_where_three_lines_send_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["log_elsewhere.py", "--out", str(tmp_path / "run"), "--no-report"])
    runpy.run_path(str(EXAMPLES / "log_elsewhere.py"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line[:2].strip().isdigit()]
    assert [int(stage) for stage, _ in lines[:20]] == list(range(20))
    assert float(lines[19][1]) > 0.8
    LOGS.pop("here")
