"""What a run has written so far, read back leniently: a run may still go on, be killed, or be damaged in places."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from autoweight.config import RunConfig
from autoweight.config.files import load_config
from autoweight.errors import UserError
from autoweight.methods import METHODS, told_of
from autoweight.runs.result_reading import is_number, parse_json, read_result, result_so_far
from autoweight.runs.samples import Columns, read_columns, samples_file
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.strategy import Rule, Strategy
from autoweight.strategy.files import RUN_FILE

_WHOLE = ("seed", "stage", "episode")


@dataclass
class RunView:
    """What a run's folder tells of it."""

    path: Path
    config: RunConfig | None
    lines: list[dict[str, Any]]
    result: dict[str, Any]
    """That of result.json, or, of a run that has not ended, what its metrics tell so far."""
    finished: bool
    strategy: Strategy | None
    missing: list[str] = field(default_factory=list)
    """What could not be read, in sentences."""
    styles: dict[str, int] = field(default_factory=dict)
    """How methods are drawn, which is alike on all charts of a page."""

    def style(self, method: str) -> int:
        """The colour and the dash of a method: a number, the next one where it is the first time."""
        return self.styles.setdefault(method, len(self.styles))

    @property
    def is_audit(self) -> bool:
        """Whether the run was made to look for wrong labels."""
        return self.config is not None and self.config.command == "audit"

    @property
    def score(self) -> str:
        """The key of the methods' scores."""
        return str(self.result.get("score", "test_accuracy"))

    @property
    def score_name(self) -> str:
        """What the score is called in sentences, such as accuracy."""
        return self.score.removeprefix("test_").replace("_", " ")

    def scores(self, method: str) -> dict[int, float]:
        """A method's scores by seed; of a run that has not ended, a method may have more seeds than another."""
        values = self.result["methods"][method]
        return dict(zip(values.get("seeds", self.result.get("seeds", [])), values[self.score], strict=False))

    @property
    def stages(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """The stages of every training, by method and seed."""
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for line in self.of("stage"):
            found.setdefault((str(line.get("method")), int(line.get("seed") or 0)), []).append(line)
        return found

    def of(self, event: str) -> list[dict[str, Any]]:
        """The metrics lines of an event."""
        return [line for line in self.lines if line.get("event") == event]

    def ended_episodes(self, doing: str = "") -> list[dict[str, Any]]:
        """The lines that end a search's episodes, with their returns; `doing` may be searching or choosing alone."""
        lines = (line for line in self.of("search") if doing in ("", line.get("doing")))
        return [line for line in lines if isinstance(line.get("returns"), list) and line["returns"]]

    def samples(self, method: str, seed: int, only: Collection[str] = ()) -> Columns | None:
        """What a training left of its samples, or `only` these columns of it."""
        return read_columns(samples_file(self.path, method, seed), only)


def is_run(path: Path) -> bool:
    """Whether a folder holds a run, or what is left of one."""
    return any((path / name).exists() for name in ("config.yaml", "metrics.jsonl", "result.json"))


def read_run(path: Path) -> RunView:
    """All that a run's folder tells; `UserError` where it is no run."""
    if not path.is_dir():
        raise UserError(f"{path} is no folder: name the folder of a run, such as one under runs/.")
    if not is_run(path):
        raise UserError(f"{path} holds no run: name the folder that a command wrote, such as one under runs/.")
    path = path.resolve()  # the page goes anywhere, and its commands are to be run from anywhere
    missing: list[str] = []
    config = _config(path, missing)
    result = read_result(path / "result.json", missing)
    begun = result is not None or any((path / "samples").glob("*.npz"))
    lines = _lines(path / "metrics.jsonl", missing, begun)
    if result is None:
        missing.append("There is no result.json: the run goes on, or was stopped. This is what it has written so far.")
    elif not result:
        then = " This is what metrics.jsonl tells." if lines else ""
        missing.append(f"result.json is damaged: remove it, and --resume makes it anew.{then}")
    strategy = _strategy(path, config, missing)
    return RunView(path, config, lines, result or result_so_far(lines, config), bool(result), strategy, missing)


def told(method: str) -> str:
    """What a method is told, from its card; empty for a method that is not known here."""
    return told_of(method) if method in METHODS else ""


def _config(path: Path, missing: list[str]) -> RunConfig | None:
    try:
        return load_config(path / "config.yaml")
    except UserError as error:
        what = "cannot be read" if (path / "config.yaml").exists() else "is missing"
        missing.append(f"The configuration {what}: {error}")
    return None


def _lines(path: Path, missing: list[str], begun: bool) -> list[dict[str, Any]]:
    """The lines that are whole; one that is being written, or is damaged, is left out."""
    then = "there are no curves" if begun else "nothing was trained yet"
    try:
        rows = path.read_text(errors="replace").splitlines()
    except OSError:
        missing.append(f"There is no metrics.jsonl: {then}.")
        return []
    lines = []
    for row in rows:
        try:
            line = parse_json(row)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict) and _is_whole(line):
            lines.append(line)
    bad = len(rows) - len(lines)
    if not rows:
        missing.append(f"metrics.jsonl is empty: {then}.")
    elif not lines:
        missing.append("Not one line of metrics.jsonl can be read: there are no curves.")
    elif bad:
        missing.append(f"{bad} line{'s' * (bad > 1)} of metrics.jsonl cannot be read.")
    return lines


def _is_whole(line: dict[str, Any]) -> bool:
    """Whether what a metrics line tells is of the kinds that figures are made of."""
    weights = line.get("weights") or {}
    if not isinstance(weights, dict) or not isinstance(weights.get("groups") or {}, dict):
        return False
    lists = [weights.get(name) or [] for name in ("by_class", "quantiles")]
    return all(isinstance(line.get(key, 0), int) for key in _WHOLE) and all(
        isinstance(values, list) and all(value is None or is_number(value) for value in values) for values in lists
    )


def _strategy(path: Path, config: RunConfig | None, missing: list[str]) -> Strategy | None:
    """The strategy that the run found, or else that which law used."""
    wanted = path / RUN_FILE
    if not wanted.exists():
        if config is not None and (best := _best_guess(path, config)) is not None:
            missing.append("The search has not ended: the strategy shown is its best guess so far.")
            return best
        if config is None or config.strategy is None or "law" not in config.methods:
            return None
        wanted = Path(config.strategy)
    try:
        return Strategy.load(wanted)
    except UserError as error:
        missing.append(f"The strategy cannot be shown: {error}")
    return None


def _best_guess(path: Path, config: RunConfig) -> Strategy | None:
    """The best guess of a search that has not ended, where its checkpoint can be read."""
    try:
        state = CheckpointFile(path / "checkpoint" / "search").peek() or {}
        archive = state["archive"]
        guesses = [
            (float(returns[0]), tables[0])
            for tables, returns in zip(archive["tables"], archive["returns"], strict=True)
            if isfinite(returns[0])
        ]
        _, table = max(guesses, key=lambda guess: guess[0])
        return Strategy(table, Rule.of(config.search), config.search.warmup_stages)
    except (KeyError, TypeError, ValueError, IndexError, UserError):
        return None
