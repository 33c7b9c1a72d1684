"""A run's folder: its configuration, its metrics as they come, its result at the end."""

import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from autoweight.config import RunConfig
from autoweight.config.files import dump_config, first_difference, load_config
from autoweight.errors import UserError, first_line, require
from autoweight.storage.atomic import write_bytes
from autoweight.strategy.files import RUN_FILE

try:
    import fcntl
except ImportError:  # not every system has such locks
    fcntl = None  # type: ignore[assignment]

_KEYS = ("event", "method", "seed", "stage", "episode", "doing")  # what tells one metrics line from another


class RunFolder:
    """Where a run writes. Lines that a killed run has already written are not written again when it goes on."""

    def __init__(self, path: Path, rank: int = 0) -> None:
        self.path = path
        self.listeners: list[Callable[[dict[str, Any]], Any]] = []
        """Called with every metrics line as it is written; one that raises is heard no more."""
        self._metrics = path / "metrics.jsonl"
        self._written = path / f"metrics.rank-{rank}.jsonl" if rank else self._metrics

    @cached_property
    def _lines(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Read at the first use, when the folder is locked."""
        return {self._key(line): line for line in self._read(self._metrics)}

    @classmethod
    @contextmanager
    def open(cls, path: Path | None, config: RunConfig, resume: bool) -> Iterator["RunFolder"]:
        """A fresh folder with the configuration in it, or, to resume, the one of an interrupted run of the same.

        Other processes are kept out, where the system can: nothing in it is changed before they are.
        """
        require(path is not None or not resume, "--resume needs --out FOLDER, the folder of the run to go on with.")
        path = path or _fresh_path(config)
        try:
            if not path.is_dir():
                _check_usable(path, config, resume)
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot use the output folder {path}: {error.strerror}.") from error
        folder = cls(path)
        with _locked(path):
            _check_usable(path, config, resume)
            longer = resume and folder.is_to_go_on(config)
            if longer:  # a search that is to run more episodes: what it came to is no longer the result
                for name in ("result.json", RUN_FILE):
                    (path / name).unlink(missing_ok=True)
                folder._forget_choice()
            if longer or not resume:  # else it holds the same already, and may be where nothing can be written
                write_bytes(path / "config.yaml", dump_config(config).encode())
            yield folder

    def _forget_choice(self) -> None:
        """Take the lines of a search's last choice out of metrics.jsonl: it will choose anew, in other episodes."""
        kept = [line for line in self._read(self._metrics) if line.get("doing") != "choosing"]
        write_bytes(self._metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def is_to_go_on(self, config: RunConfig) -> bool:
        """Whether this is a search that is to run more episodes than it was begun with."""
        if config.command != "search" or not (self.path / "config.yaml").exists():
            return False
        return config.search.num_episodes > load_config(self.path / "config.yaml").search.num_episodes

    def checkpoint_path(self, name: str) -> Path:
        """Where a checkpoint of this run is kept."""
        return self.path / "checkpoint" / name

    def log(self, line: dict[str, Any]) -> None:
        """Append one line to metrics.jsonl, unless a line of the same event, method, seed and stage is there.

        Numbers that are not finite are written as null.
        """
        if self._key(line) not in self._lines:
            line = _plain(line)
            self._lines[self._key(line)] = line
            with self._written.open("a") as file:
                file.write(json.dumps(line, allow_nan=False) + "\n")
            for listen in tuple(self.listeners):
                self._tell(listen, line)

    def _tell(self, listen: Callable[[dict[str, Any]], Any], line: dict[str, Any]) -> None:
        """Give a listener a line; what goes wrong there must not end a training."""
        try:
            listen(line)
        except Exception as error:  # whatever it is
            self.listeners.remove(listen)
            warnings.warn(
                f"the log is left out from here on, since it failed ({first_line(error)}); metrics.jsonl has all.",
                stacklevel=3,
            )

    def take_in_ranks(self) -> None:
        """Append to metrics.jsonl what other ranks have written, each into a file of its own, and remove these."""
        for path in sorted(self.path.glob("metrics.rank-*.jsonl")):
            for line in self._read(path):
                self.log(line)
            path.unlink()

    def find(self, **wanted: Any) -> dict[str, Any] | None:
        """The metrics line with these values, if it was written."""
        return self._lines.get(self._key(wanted))

    def finish(self, result: dict[str, Any], keep_checkpoints: bool = False) -> None:
        """Write result.json, the last thing a run does, and drop the checkpoints that have served."""
        write_bytes(self.path / "result.json", (json.dumps(result, indent=2, allow_nan=False) + "\n").encode())
        if not keep_checkpoints:
            shutil.rmtree(self.path / "checkpoint", ignore_errors=True)

    def result(self) -> dict[str, Any] | None:
        """The result, where the run is finished."""
        path = self.path / "result.json"
        if not path.exists():
            return None
        damaged = f"{path} is damaged: remove it, and --resume makes it anew."
        try:
            result: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise UserError(damaged) from error
        require(isinstance(result, dict) and {"recipe", "methods"} <= result.keys(), damaged)
        return result

    @staticmethod
    def _key(line: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(line.get(key) for key in _KEYS)

    def _read(self, path: Path) -> list[dict[str, Any]]:
        """The whole lines written so far; one that a kill cut short is removed from a file that is written here."""
        if not path.exists():
            return []
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content and path == self._written:
            write_bytes(path, whole)
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise UserError(f"{path} is damaged: remove the lines that are not JSON, or run anew.") from error
        require(
            all(isinstance(line, dict) for line in lines),
            f"{path} is damaged: remove the lines that are not JSON objects, or run anew.",
        )
        return lines


def _plain(value: Any) -> Any:
    """As JSON can hold it: there is neither NaN nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out, where the system can: two runs in one folder would both write all lines."""
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        _lock(handle, path)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"{path} is in use by another run: wait for it, or choose another --out.") from error
    except OSError:
        pass  # a file system without locks


def _fresh_path(config: RunConfig) -> Path:
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{config.command}-{config.recipe}"
    path, count = Path("runs") / stem, 1
    while path.exists():
        count += 1
        path = Path("runs") / f"{stem}-{count}"
    return path


def _check_usable(path: Path, config: RunConfig, resume: bool) -> None:
    """Raise `UserError` where the folder holds something that this run must not mix with."""
    if not (path / "config.yaml").exists():
        require(not resume, f"{path} holds no run to resume.")
        require(
            not (path.is_dir() and any(not file.name.endswith(".partial") for file in path.iterdir())),
            f"{path} is not empty and holds no run: choose another --out.",
        )
        return
    begun = load_config(path / "config.yaml")
    if resume and RunFolder(path).is_to_go_on(config):
        begun = replace(begun, search=replace(begun.search, num_episodes=config.search.num_episodes))
    difference = first_difference(begun, config)
    require(difference is None, f"{path} holds a run of another configuration ({difference}): choose another --out.")
    finished = (path / "result.json").exists()
    state = "a finished run: add --resume to show it" if finished else "an interrupted run: add --resume to go on"
    require(resume, f"{path} holds {state}, or choose another --out.")
