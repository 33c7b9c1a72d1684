"""What `auto` costs in a plain loop: a step without it, with it, and with it remembering every batch at once.

    python benchmarks/own_loop.py                    networks on one CPU core
    python benchmarks/own_loop.py --device cuda      ResNet-18 in bfloat16, not captured

Prints the least milliseconds a step of several rounds in turns, and ratios. All samples have been seen before.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.models import make_network
from autoweight.strategy import waiting

BATCH, CLASSES, ROUNDS, WARMUP = 128, 10, 5, 15
IMAGE = (3, 32, 32)


def mlp(*widths: int) -> nn.Module:
    """A plain network on rows."""
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


TASKS: dict[str, list[tuple[str, Callable[[], nn.Module], tuple[int, ...], int, int]]] = {
    "cpu": [
        ("MLP 64-128-128-10", partial(mlp, 64, 128, 128, 10), (64,), 10_000, 200),
        ("MLP 784-256-10", partial(mlp, 784, 256, 10), (784,), 50_000, 200),
        ("MLP 784-1024-1024-10", partial(mlp, 784, 1024, 1024, 10), (784,), 50_000, 40),
        ("strided CNN, 32 x 32", partial(make_network, "strided_cnn", IMAGE, CLASSES), IMAGE, 10_000, 20),
    ],
    "cuda": [("ResNet-18, 32 x 32", partial(make_network, "resnet18", IMAGE, CLASSES), IMAGE, 50_000, 150)],
}
"""Name, network, shape of a sample, samples, steps that are timed."""


def step_ms(
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    count: int,
    steps: int,
    weigher: aw.Weigher | None,
    device: str,
) -> float:
    """Mean milliseconds of a step."""
    torch.manual_seed(0)
    inputs = torch.randn(min(count, 10_000), *shape, device=device)
    labels, order = torch.randint(CLASSES, (count,), device=device), torch.randperm(count)
    model = make().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for seen in order.split(2000) if weigher else ():
        logits = torch.randn(len(seen), CLASSES, device=device)
        weigher.weigh(logits[:, 0].abs(), logits, labels[seen.to(device)], progress=0.0, indices=seen)
    began = 0.0
    for step in range(WARMUP + steps):
        if step == WARMUP:
            torch.cuda.synchronize() if device == "cuda" else None
            began = time.perf_counter()
        indices = order[step * BATCH % (count - BATCH) :][:BATCH]
        places = indices.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(inputs[places % len(inputs)])
        losses = cross_entropy(logits.float(), labels[places], reduction="none")
        if weigher is None:
            loss = losses.mean()
        else:
            weights = weigher.weigh(losses, logits, labels[places], progress=0.3 + step / 10_000, indices=indices)
            loss = aw.weighted_mean(losses, weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize() if device == "cuda" else None
    return 1000 * (time.perf_counter() - began) / steps


def main() -> None:
    """Measure, in turns, since a machine's pace changes with time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=TASKS, default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    for name, make, shape, count, steps in TASKS[device]:
        times: dict[str, list[float]] = {"plain": [], "auto": [], "at once": []}
        for _ in range(ROUNDS):
            for kind, own in times.items():
                weigher = None if kind == "plain" else aw.load("auto")
                with patch.object(waiting, "_LARGE", 10**9 if kind == "at once" else waiting._LARGE):
                    own.append(step_ms(make, shape, count, steps, weigher, device))
        plain, auto, at_once = (min(own) for own in times.values())
        more = f"{auto - plain:.2f} ms more, {100 * (auto / plain - 1):.0f} %"
        print(
            f"{name}, {count:,} samples: plain {plain:.2f} ms, auto {auto:.2f} ({more}), at once {at_once:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
