"""Where metrics go besides the run's own file: listeners by name, each called with every line as it is written.

Another service is a line in `LOGS`, such as
`LOGS["wandb"] = lambda folder: lambda line: wandb.log(numbers(line))`; then `--log wandb` uses it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoweight.errors import UserError, unknown

Line = dict[str, Any]
LineListener = Callable[[Line], Any]

_OF_THE_LINE = ("event", "method", "seed", "stage", "episode", "doing", "done", "total")


def numbers(line: Line) -> dict[str, float]:
    """The figures of a metrics line, such as `uniform-0/val_score`: flat, and named by whom they are of."""
    owner = "search" if line.get("event") == "search" else f"{line.get('method', 'run')}-{line.get('seed', 0)}"
    own = {key: value for key, value in line.items() if key not in _OF_THE_LINE}
    return {f"{owner}/{key}": value for key, value in _flat(own).items()}


def step_of(line: Line) -> int:
    """Where on the time axis a line belongs: the stage, or for a search the stages that it has run."""
    return int(line.get("done") or line.get("stage") or 0)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, float]:
    flat: dict[str, float] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[prefix + key] = float(value)
    return flat


def _tensorboard(folder: Path) -> LineListener:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("--log tensorboard needs TensorBoard: pip install 'autoweight[log]'.") from error
    writer = SummaryWriter(str(folder / "tensorboard"))

    def listen(line: Line) -> None:
        for name, value in numbers(line).items():
            writer.add_scalar(name, value, step_of(line))
        writer.flush()

    return listen


LOGS: dict[str, Callable[[Path], LineListener]] = {"tensorboard": _tensorboard}
"""From a run's folder to what listens to its metrics."""


def check_log(name: str) -> None:
    """Raise `UserError` unless there is such a listener."""
    if name and name not in LOGS:
        raise unknown("log", name, LOGS)
