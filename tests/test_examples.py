import runpy
import subprocess
import sys
from pathlib import Path

from autoweight.runs.log import LOGS

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE = EXAMPLES / "plain_loop.py"


def accuracy_of(*words: str) -> float:
    shown = subprocess.run([sys.executable, EXAMPLE, *words], capture_output=True, text=True, check=True).stdout
    return float(shown.split()[-1].rstrip("%"))


def test_three_lines_in_a_plain_loop_help():
    assert accuracy_of() > accuracy_of("none") + 5


def test_metrics_go_where_three_lines_send_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["log_elsewhere.py", "--out", str(tmp_path / "run"), "--no-report"])
    runpy.run_path(str(EXAMPLES / "log_elsewhere.py"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line[:2].strip().isdigit()]
    assert [int(stage) for stage, _ in lines[:20]] == list(range(20))
    assert float(lines[19][1]) > 0.8
    LOGS.pop("here")
