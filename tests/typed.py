"""Commands as a user types them, in processes of their own, but forked from one that has imported everything.

Python and its imports take two seconds, and the suite types some sixty commands.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from autoweight.cli.main import main
from tests.launch import CONTEXT


class Done(NamedTuple):
    """What a command came to."""

    status: int
    stdout: str
    stderr: str


class Typed:
    """A command under way."""

    def __init__(self, *words: object, cwd: Path, program: Callable[[], object] = main) -> None:
        self.said = [Path(mkdtemp()) / name for name in ("stdout", "stderr")]
        self.process = CONTEXT.Process(target=_run, args=(program, [*map(str, words)], cwd, self.said), daemon=True)
        self.process.start()

    @property
    def ended(self) -> bool:
        return not self.process.is_alive()

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def wait(self) -> Done:
        self.process.join(120)
        assert self.ended, "it takes too long"
        return Done(self.process.exitcode, *(said.read_text() for said in self.said))


def autoweight(*words: object, cwd: Path, status: int = 0) -> Done:
    """A command to its end, which has to have this status."""
    done = Typed(*words, cwd=cwd).wait()
    assert done.status == status, done.stderr
    return done


def _run(program: Callable[[], object], words: list[str], cwd: Path, said: list[Path]) -> None:
    for stream, path in zip((sys.stdout, sys.stderr), said, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
    os.chdir(cwd)
    sys.argv = ["program", *words]
    program()
