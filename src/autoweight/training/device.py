"""The current device, and how many threads small networks get."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autoweight.data.labelled import Labelled
from autoweight.data.threads import one_thread
from autoweight.training.task import forward

_SMALL_STEP = 1e9
"""Floating-point operations. Below, a step's single operations take microseconds: several threads gain little on them,
and spend what they gain waiting busily for each other, twenty times as long where others use the cores too."""


@contextmanager
def isolated(device: str) -> Iterator[None]:
    """Make the device the current one, on which streams and graphs are made; random numbers drawn leave no trace."""
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device), torch.random.fork_rng([torch.cuda.current_device()]):
            yield
    else:
        with torch.random.fork_rng([]):
            yield


def seed_draws(seed: int, device: str | torch.device) -> None:
    """Fix what networks draw at a step, such as dropout masks.

    On a CPU by its own generator: `torch.manual_seed` goes to every kind of device, which takes half a millisecond.
    """
    if torch.device(device).type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def few_threads(
    make_model: Callable[[], nn.Module], samples: Labelled, batch_size: int, networks: int = 1
) -> Iterator[None]:
    """One thread while small networks train on a CPU."""
    small = (
        torch.get_num_threads() > 1
        and samples.device.type == "cpu"
        and _operations(make_model, samples, batch_size) * networks < _SMALL_STEP
    )
    with one_thread() if small else nullcontext():
        yield


@torch.no_grad()
def _operations(make_model: Callable[[], nn.Module], samples: Labelled, batch_size: int) -> float:
    """Floating-point operations of one network's step: three forward passes' worth."""
    with isolated("cpu"), FlopCounterMode(display=False) as counter:
        count = min(2, len(samples))
        forward(make_model().train(), samples.head(count))
    return 3 * counter.get_total_flops() * batch_size / count


def wait_for(device: torch.device) -> None:
    """Until a GPU has done what it was given, so that a clock tells the truth."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
