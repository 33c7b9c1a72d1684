"""Ranks: the processes that torchrun starts, which do one job together; any other process is the first of one.

They talk in two ways. Meetings are collectives on CPUs, to which all ranks come: what one has goes to all. The store is
torchrun's own table of keys, which any rank reads and writes when it likes.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, partial
from typing import Any, TypeVar
from zlib import crc32

import torch
from torch import distributed as dist

import autoweight
from autoweight.errors import RunError, UserError, require

TIMEOUT_VARIABLE = "AUTOWEIGHT_RANK_TIMEOUT"
"""Where the environment says for how many seconds a rank may be silent before the others give up."""
_TIMEOUT = 1800.0
_LAST_WORDS = 5.0
"""Seconds that a rank whose peers are gone waits to say so: torchrun ends it before, and the peers have said why."""
_OF_TIMEOUTS = ("timed out", "timeout")
_POLL = 0.05

T = TypeVar("T")


class Ranks:
    """Processes that do one job together; this one is number `rank` of `size`, and `restarts` came before it."""

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        *,
        timeout: float = _TIMEOUT,
        store: Any = None,
        restarts: int = 0,
    ) -> None:
        self.rank, self.size, self.timeout, self.store, self.restarts = rank, size, timeout, store, restarts
        self._meetings = self._counters = self._beats = self._waits = 0
        self._counts: Counter[str] = Counter()

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes and prints."""
        return self.rank == 0

    def gather(self, value: T) -> list[T]:
        """What every rank has, in their order; all of them have to call it."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            with self.meeting():
                dist.all_gather_object(values, value)
        return values

    def share(self, value: T) -> T:
        """What the first rank has, on every rank; all of them have to call it."""
        values = [value]
        if self.size > 1:
            with self.meeting():
                dist.broadcast_object_list(values, src=0)
        return values[0]

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """Around collectives: a rank that does not come ends the run with a sentence."""
        if self.size == 1:
            yield
            return
        self.connect()
        self._meetings += 1
        self._put("met", self._meetings)
        try:
            yield
        except RuntimeError as error:
            if not _is_about_peers(error):
                raise
            self._put("let down", self._meetings)
            if not any(word in str(error).lower() for word in _OF_TIMEOUTS):
                time.sleep(_LAST_WORDS)
                raise RunError("another rank has ended: see what it said, and go on with --resume.") from error
            raise _silent(self._behind("met") or self._hung(), self.timeout) from error

    def _behind(self, sign: str) -> list[int]:
        """The ranks that have not given this sign at the last meeting, where there is a store to tell by."""
        known = range(self.size) if self.store is not None else ()
        return [rank for rank in known if self._get(sign, rank) < self._meetings]

    def _hung(self) -> list[int]:
        """Of ranks that all came to a meeting, those that hang in it: the others are let down soon, and say so."""
        until = time.monotonic() + _LAST_WORDS
        while len(hung := self._behind("let down")) > 1 and time.monotonic() < until:
            time.sleep(_POLL)
        return hung

    def connect(self) -> None:
        """Make the process group, unless there is one: only a job that meets needs it."""
        if self.size == 1 or dist.is_initialized():
            return
        assert self.store is not None
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=dist.PrefixStore("group", self.store),  # type: ignore[attr-defined]
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=self.timeout),
        )

    def check_alike(self, **facts: str) -> None:
        """Raise `UserError` where a rank differs from the first in one of these facts."""
        versions = {"version of autoweight": autoweight.__version__, "version of torch": torch.__version__}
        first, *others = self.gather(versions | facts)
        for rank, own in enumerate(others, start=1):
            for name, fact in first.items():
                both = f" ({own[name]}, not {fact})" if name in versions else ""
                other = "other data" if name == "data" else f"another {name}"
                require(own[name] == fact, f"rank {rank} has {other} than rank 0{both}: give all ranks the same.")

    def deal(self, items: Sequence[T]) -> Iterator[T]:
        """Items until none is left, each to the rank that is free first."""
        dealt = self.counter()
        while (number := dealt(1) - 1) < len(items):
            yield items[number]

    def counter(self) -> Callable[[int], int]:
        """A count over all ranks that grows by what it is called with; all have to ask for the same ones."""
        self._counters += 1
        return partial(self._count, f"counter {self._counters}")

    def beat(self) -> None:
        """Show those who wait that this rank is alive."""
        self._beats += 1
        self._put("beat", self._beats)

    def wait_for_all(self) -> None:
        """Until every rank has come here; one that shows no sign of life for too long ends the run."""
        self._waits += 1
        here = f"here {self._waits}"
        self._put(here, 1)
        heard = dict.fromkeys(range(self.size) if self.store else (), (0, time.monotonic()))
        while waiting := [rank for rank in heard if not self._get(here, rank)]:
            for rank in waiting:
                beats, now = self._get("beat", rank), time.monotonic()
                if beats != heard[rank][0]:
                    heard[rank] = beats, now
                if now - heard[rank][1] > self.timeout:
                    raise _silent([rank], self.timeout)
            time.sleep(_POLL)

    def is_first_to_say(self, sentence: str) -> bool:
        """Whether no rank has said this before, so that all of them together say it once."""
        return self.store is None or self._count(f"said {crc32(sentence.encode())}", 1) == 1

    def _count(self, what: str, by: int) -> int:
        if self.store is not None:
            return self.store.add(what, by)
        self._counts[what] += by
        return self._counts[what]

    def _put(self, what: str, number: int) -> None:
        if self.store is not None:
            self.store.set(f"{what}/{self.rank}", str(number))

    def _get(self, what: str, rank: int) -> int:
        key = f"{what}/{rank}"
        return int(self.store.get(key)) if self.store is not None and self.store.check([key]) else 0


ALONE = Ranks()


@cache
def of_torchrun() -> Ranks:
    """The ranks that torchrun has started, or one alone; each takes a GPU of its own where there are any."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        return ALONE
    timeout = _timeout()
    store, rank, size = next(dist.rendezvous("env://", timeout=timedelta(seconds=timeout)))  # type: ignore[attr-defined]
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    if torch.cuda.is_available():
        local, gpus = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        require(local < gpus, f"this machine has {gpus} GPUs: start no more ranks on it, --nproc-per-node {gpus}.")
        torch.cuda.set_device(local)
    store = dist.PrefixStore(f"autoweight/{restarts}", store)  # type: ignore[attr-defined]
    return Ranks(rank, size, timeout=timeout, store=store, restarts=restarts)


def leave() -> None:
    """End this process, its job done, if it was in a process group.

    It ends before Python tears itself down: a thread of gloo that lets go of its last tensor in that moment aborts the
    process, and torchrun would take a finished run for a failed one.
    """
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def of_process_group() -> Ranks:
    """The ranks of the process group that whoever calls has made."""
    require(dist.is_initialized(), "make a process group first: torch.distributed.init_process_group().")
    return Ranks(dist.get_rank(), dist.get_world_size())


def _timeout() -> float:
    text = os.environ.get(TIMEOUT_VARIABLE, str(_TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UserError(f"{TIMEOUT_VARIABLE} takes seconds, such as 1800, but is '{text}'.")
    return seconds


def _is_about_peers(error: RuntimeError) -> bool:
    """Whether a collective failed by what others did; gloo's errors have no type of their own."""
    words = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in words for word in ("gloo", "connection", *_OF_TIMEOUTS))


def _silent(late: list[int], timeout: float) -> RunError:
    who = f"ranks {', '.join(map(str, late))} have"
    if len(late) < 2:
        who = f"rank {late[0]} has" if late else "a rank has"
    return RunError(
        f"{who} not answered for {timeout:g} s: see what holds it up, or set {TIMEOUT_VARIABLE} to more; --resume goes "
        "on."
    )
