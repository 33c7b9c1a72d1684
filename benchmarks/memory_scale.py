"""What a memory of every sample costs at scale: the figures of docs/scale.md.

OMP_NUM_THREADS=1 python benchmarks/memory_scale.py time         a batch's weights, from 50,000 to 100 million samples
OMP_NUM_THREADS=1 python benchmarks/memory_scale.py precision    margins kept in 32, 16 and 8 bits, on digits-noise
OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 benchmarks/memory_scale.py gather    a global batch's
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.distributed import weigh_global
from autoweight.ranks import of_torchrun
from autoweight.recipes import get_recipe
from autoweight.runs import compare
from autoweight.runs.folder import RunFolder
from autoweight.sharded import Sharded
from autoweight.strategy import memory, waiting
from autoweight.strategy.auto import Auto

BATCH, STEPS, SEEDS = 1024, 20, 3
ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "32 bits": lambda margins: margins,
    "16 bits": lambda margins: margins.half().float(),
    "8 bits": lambda margins: (127 * margins).round() / 127,
}


def batch(num_samples: int, num_classes: int, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Losses, logits, labels and indices of random samples."""
    logits = torch.randn(size, num_classes)
    indices = torch.randint(num_samples, (size,)).unique()
    labels = indices % num_classes
    logits = logits[: len(indices)]
    return cross_entropy(logits, labels, reduction="none"), logits, labels, indices


def milliseconds(weigh: Callable[..., Tensor], num_samples: int, num_classes: int, size: int) -> float:
    """The fastest of some batches: others on the machine only make it slower."""
    return min(times_of(weigh, num_samples, num_classes, size, STEPS))


def times_of(
    weigh: Callable[..., Tensor], num_samples: int, num_classes: int, size: int, steps: int
) -> Iterator[float]:
    """Milliseconds of each of some batches."""
    for step in range(steps):
        losses, logits, labels, indices = batch(num_samples, num_classes, size)
        began = time.perf_counter()
        weigh(losses, logits, labels, step / steps, indices)
        yield 1000 * (time.perf_counter() - began)


def where_visits_wait(auto: Auto, num_samples: int, num_classes: int, size: int) -> float:
    """The mean over two rounds, each of which ends as the visits that wait are remembered and everyone is judged."""
    assert auto.memory is not None
    auto.memory.columns["label"].copy_(torch.arange(num_samples) % num_classes)  # as if all had come
    steps = 2 * -(-num_samples // waiting._PARTS // size)
    return statistics.fmean(times_of(auto.weigh, num_samples, num_classes, size, steps))


def show_time() -> None:
    """Weights of a batch by `auto`, with memories of several sizes."""
    for num_classes in (10, 1000):
        for num_samples, size in ((50_000, 128), (50_000, BATCH), (1_300_000, BATCH), (100_000_000, BATCH)):
            auto = Auto()
            auto.reserve(num_samples, num_classes, "cpu")
            with patch.object(waiting, "_LARGE", 2 * num_samples):
                at_once = milliseconds(auto.weigh, num_samples, num_classes, size)
            waits = where_visits_wait(auto, num_samples, num_classes, size)
            print(
                f"{num_samples:,} samples, {num_classes} classes: {room(auto.tensors()) / 1e6:,.1f} MB, "
                f"a batch of {size} {at_once:.2f} ms, {waits:.2f} ms where visits wait",
                flush=True,
            )


def room(tensors: dict[str, Tensor]) -> int:
    """Bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


class Rounding:
    """PyTorch, but for averages, which are rounded as a smaller memory would."""

    def __init__(self, rounded: Callable[[Tensor], Tensor]) -> None:
        self.rounded = rounded

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def lerp(self, *values: Tensor) -> Tensor:
        """The margin that is kept, and counted."""
        return self.rounded(torch.lerp(*values))


def show_precision() -> None:
    """Last-epoch accuracy of `auto` on digits-noise, margins rounded at every visit."""
    config = replace(get_recipe("digits-noise"), methods=("auto",), num_seeds=SEEDS)
    for name, rounded in ROUNDED.items():
        memory.torch = Rounding(rounded)
        with tempfile.TemporaryDirectory() as folder:
            result = compare.prepare(config).run(RunFolder(Path(folder)), lambda *progress: None)
        accuracies = result["methods"]["auto"]["test_accuracy"]
        print(f"{name}: {', '.join(f'{100 * one:.2f}' for one in accuracies)} %", flush=True)


def show_gather() -> None:
    """The same batch weighed alone and, half of it on each of two ranks, together: memories whole and shared out."""
    ranks, size = of_torchrun(), 1_300_000
    ranks.connect()
    for num_classes in (10, 1000):
        weighers = {"whole": aw.load("auto")} | {
            name: Sharded(aw.load("auto"), size, num_classes, half=half)
            for name, half in (("shared", False), ("shared, in half precision", True))
        }
        weighers["whole"].reserve(size, num_classes, "cpu")
        with patch.object(waiting, "_LARGE", 2 * size):  # all remember at once
            alone = milliseconds(weighers["whole"].weigh, size, num_classes, BATCH)
            for name, weigher in weighers.items():
                together = milliseconds(partial(weigh_global, weigher), size, num_classes, BATCH // ranks.size)
                if ranks.first:
                    print(
                        f"{num_classes} classes: alone {alone:.2f} ms, over {ranks.size} ranks {together:.2f} ms, "
                        f"memory {name}, {room(weigher.tensors()) / 1e6:.1f} MB",
                        flush=True,
                    )


SHOWN = {"time": show_time, "precision": show_precision, "gather": show_gather}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=SHOWN)
    torch.manual_seed(0)
    SHOWN[parser.parse_args().what]()
