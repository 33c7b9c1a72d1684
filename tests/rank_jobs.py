"""What the ranks of test_ranks.py do."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

import autoweight
from autoweight import ranks
from autoweight.cli.main import main
from autoweight.config import AgentName, SearchConfig, TrainingConfig
from autoweight.data import DATASETS
from autoweight.finding import Progress
from autoweight.runs import shared
from autoweight.strategy import Rule
from autoweight.training import captured
from autoweight.training.split import global_mean
from autoweight.training.task import TASKS
from autoweight.workers import DistributedWorkers, GraphedWorkers, Problem, SequentialWorkers, StackedWorkers, graphed

from .conftest import make_blobs
from .test_captured import run_at_every_replay

TRAINING = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,), weight_decay=1e-3)
KINDS = {"stacked": StackedWorkers, "sequential": SequentialWorkers, "graphed": GraphedWorkers}
PARAMS = torch.tensor([[-3.0, 1.0, -0.5], [0.5, 0.0, 0.0], [2.0, 0.0, 1.0], [-8.0, 0.0, -2.0]])


def mlp():
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))


def problem(rule: Rule) -> Problem:
    return Problem(mlp, make_blobs(48), make_blobs(30, seed=9), TRAINING, rule, head_start=1)


RULES = {"loss": Rule(("loss", "entropy")), "memory": Rule(("history",))}
CASES = [(kind, rule, starts) for kind in KINDS for rule, starts in (("loss", 2), ("memory", 1))]


def episode(kind: str, rule: str, num_starts: int, of: ranks.Ranks) -> list:
    """What an episode's stages came to; graphs are replaced by what they would have captured."""
    captured.capture = graphed.capture = run_at_every_replay
    captured.fork = graphed.fork = lambda works: [work() for work in works]
    workers = KINDS[kind](problem(RULES[rule]), len(PARAMS), num_starts)
    if of.size > 1:
        workers = DistributedWorkers(workers, of)
    workers.begin(seed=3)
    outcomes = [workers.run_stage(stage, PARAMS if stage else torch.zeros_like(PARAMS)) for stage in range(4)]
    return [workers.network_steps, *outcomes]


def command(rank: int, words: list[str], change: str = "") -> None:
    """The command line; ranks other than the first may be changed."""
    torch.set_num_threads(1)
    if rank and change:
        CHANGES[change](words)
    sys.argv = ["autoweight", *words]
    main()


def _other_version(words: list[str]) -> None:
    autoweight.__version__ = "9.9"


def _other_labels(words: list[str]) -> None:
    digits = DATASETS["digits"]

    def relabelled(folder):
        samples, test = digits(folder)
        samples.labels[0] = (samples.labels[0] + 1) % 10
        return samples, test

    DATASETS["digits"] = relabelled


def _other_settings(words: list[str]) -> None:
    words += ["--training.learning-rate", "0.2"]


def _other_folder(words: list[str]) -> None:
    shared._PATIENCE = 0.3
    words[words.index("--out") + 1] += "-on-another-machine"


CHANGES = {
    "version": _other_version,
    "data": _other_labels,
    "settings": _other_settings,
    "folder": _other_folder,
}


def library(rank: int, out: Path) -> None:
    """What a user's own process group does: episodes of all workers, a search, a mean."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    of = ranks.of_process_group()
    tables = [_search("cmaes", lambda progress: rank == 0 and progress.episode == 1), _search("trust-region")]
    found = {"episodes": {case: episode(*case, of) for case in CASES}, "tables": tables, "mean": _mean(rank, of)}
    torch.save(found, out / f"found-{rank}")


def _search(agent: AgentName, listen: Callable[[Progress], Any] = lambda progress: None) -> torch.Tensor:
    """A small search of all ranks, of which the first one's `listen` counts."""
    return autoweight.search(
        mlp,
        make_blobs(48),
        make_blobs(60, seed=9),
        SearchConfig(agent, num_episodes=3, num_workers=5, choice_rounds=1, warmup_stages=1, episode_share=1.0),
        training=TRAINING,
        listen=listen,
        distributed=True,
    ).table


LABELS = torch.tensor([[1, -100, -100], [0, 2, -100], [-100, -100, -100], [1, 1, 1], [0, 0, 0], [-100, 0, 0]])


def _mean(rank: int, of: ranks.Ranks) -> tuple[torch.Tensor, torch.Tensor]:
    """A mean over tokens, of which ranks have different numbers that count, and its gradient."""
    losses = torch.arange(18.0).view(6, 3)[2 * rank : 2 * rank + 2].clone().requires_grad_()
    mean = global_mean(TASKS["tokens"], of)(losses, None, LABELS[2 * rank : 2 * rank + 2])
    mean.backward()
    return mean.detach(), losses.grad
