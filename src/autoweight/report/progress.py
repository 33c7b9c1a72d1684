"""A progress bar on a terminal; without one, a line now and then."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

_LINE_SECONDS = 15.0


class ProgressBar:
    """Shows on stderr what is being done and how far it is; use it as a context manager."""

    def __init__(self, shown: bool = True) -> None:
        console = Console(stderr=True)
        self._shown = shown
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._bar = RichProgress(*columns, console=console) if console.is_terminal and shown else None
        self._task = self._bar.add_task("starting", total=None) if self._bar else None
        self._last_line = time.monotonic()
        self._first: tuple[float, int] | None = None

    def update(self, done: int, total: int, doing: str) -> None:
        """Show that `done` of `total` is done, and what comes next."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, description=doing)
        elif self._shown and time.monotonic() - self._last_line > _LINE_SECONDS:
            self._last_line = time.monotonic()
            print(f"{done}/{total} {doing}{self._time_left(done, total)}", file=sys.stderr, flush=True)
        self._first = self._first or (time.monotonic(), done)

    def _time_left(self, done: int, total: int) -> str:
        """How long the rest takes at the pace since the first update, which may come from a resumed run."""
        if self._first is None or done <= self._first[1]:
            return ""
        pace = (time.monotonic() - self._first[0]) / (done - self._first[1])
        return f", about {pace * (total - done):.0f} s left"

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
