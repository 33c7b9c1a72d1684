import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "plain_loop.py"


def accuracy_of(*words: str) -> float:
    shown = subprocess.run([sys.executable, EXAMPLE, *words], capture_output=True, text=True, check=True).stdout
    return float(shown.split()[-1].rstrip("%"))


def test_three_lines_in_a_plain_loop_help():
    assert accuracy_of() > accuracy_of("none") + 5
