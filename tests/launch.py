"""Ranks as torchrun starts them, but forked from a process that has imported everything: a second less for each."""

import multiprocessing
import os
import sys
from pathlib import Path

from torch.distributed import TCPStore

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["autoweight.cli.run", "tests.rank_jobs", "torch._dynamo", "sklearn.datasets"])


class Launched:
    """Ranks that run `job(rank, *arguments)`; what they print goes to a file each."""

    def __init__(self, size: int, job, *arguments, out: Path, restarts: int = 0, timeout: float = 60.0) -> None:
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun's outlives the ranks
        self.out = out
        environment = {
            "WORLD_SIZE": size,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": self.store.port,
            "TORCHELASTIC_RUN_ID": "test",
            "TORCHELASTIC_USE_AGENT_STORE": True,
            "TORCHELASTIC_RESTART_COUNT": restarts,
            "AUTOWEIGHT_RANK_TIMEOUT": timeout,
        }
        self.processes = [
            CONTEXT.Process(target=_run, args=(rank, environment, out, job, arguments), daemon=True)
            for rank in range(size)
        ]
        for process in self.processes:
            process.start()

    def wait(self) -> list[int | None]:
        """Their exit statuses."""
        for process in self.processes:
            process.join(90)
        return [process.exitcode for process in self.processes]

    def end(self) -> None:
        """What torchrun does when one of them has ended badly."""
        for process in self.processes:
            process.kill()
            process.join()

    @property
    def said(self) -> str:
        """What all of them printed."""
        return "".join((self.out / f"said-{rank}").read_text() for rank in range(len(self.processes)))


def _run(rank: int, environment: dict, out: Path, job, arguments: tuple) -> None:
    os.environ |= {key: str(value) for key, value in {**environment, "RANK": rank, "LOCAL_RANK": rank}.items()}
    file = os.open(out / f"said-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, sys.stdout.fileno())
    os.dup2(file, sys.stderr.fileno())
    job(rank, *arguments)
