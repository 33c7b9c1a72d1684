"""Where the time of a captured step goes on a GPU: kernels by what they do, and how busy the device is.

    python benchmarks/gpu_profile.py            one ResNet-18, 16 of them, and 8 pairs of ResNet-32
    python benchmarks/gpu_profile.py resnet18   one part: resnet18, many, small, pairs

Milliseconds and launches are of one step of all networks. "Busy" is the time in which at least one kernel runs, over
the time of the step. The sum may be larger than the step where networks run side by side.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import torch
from gpu_engine import DEVICE, SHAPE, images, make_slots, milliseconds, training
from torch.profiler import ProfilerActivity, profile

from autoweight.models import make_network
from autoweight.training.captured import CapturedSteps
from autoweight.workers import GraphedWorkers, Problem

STEPS = 20
KINDS = {  # the first that matches a kernel's name
    "convolutions": r"conv|xmma|cutlass|cudnn|implicit|wgrad|dgrad|fprop|gemm|nvjet",
    "reductions: batch norm, losses": r"triton_(red|per)|reduce|norm|welford",
    "pointwise: batch norm, activations, augmentation": r"triton_(poi|for)|elementwise|vectorized|copy|cat|index",
    "optimizer, mean of weights": r"multi_tensor|foreach|sgd|lerp",
    "other": "",
}


def kind_of(kernel: str) -> str:
    """What a kernel does, by its name."""
    return next(kind for kind, pattern in KINDS.items() if re.search(pattern, kernel, re.IGNORECASE))


def busy(spans: list[tuple[float, float]]) -> float:
    """How long at least one of the spans lasts."""
    covered, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        covered += max(stop - max(start, end), 0.0)
        end = max(end, stop)
    return covered


def report(name: str, run: Callable[[], object]) -> None:
    """Print the table of `STEPS` steps."""
    step = milliseconds(run, STEPS)
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        run()
        torch.cuda.synchronize()
    kernels = [one for one in profiled.events() if one.device_type == torch.autograd.DeviceType.CUDA]
    spans = [(one.time_range.start, one.time_range.end) for one in kernels]
    spent, launches, single = Counter[str](), Counter[str](), Counter[str]()
    for one, (start, stop) in zip(kernels, spans, strict=True):
        spent[kind_of(one.name)] += (stop - start) / 1000 / STEPS
        launches[kind_of(one.name)] += 1
        single[one.name] += (stop - start) / 1000 / STEPS
    length = (max(stop for _, stop in spans) - min(start for start, _ in spans)) / 1000 / STEPS
    share = busy(spans) / 1000 / STEPS / length
    print(
        f"\n{name}: {step:.2f} ms a step ({length:.2f} profiled), busy {share:.0%}\n| | ms | launches |\n|---|---|---|"
    )
    for kind in KINDS:
        print(f"| {kind} | {spent[kind]:.3f} | {launches[kind] / STEPS:.0f} |")
    print("dearest: " + "; ".join(f"{ms:.3f} {kernel[:70]}" for kernel, ms in single.most_common(8)), flush=True)


def networks(network: str, count: int, compiled: bool) -> None:
    """So many networks in one graph, batch 128."""
    config = training(128, compile=compiled)
    steps = CapturedSteps(make_slots(network, count, config, images(50_000)), config, total_steps=10_000)
    report(f"{count} {network}, batch 128" + ", compiled" * compiled, partial(steps.run, 0, STEPS))


def pairs(network: str) -> None:
    """8 workers, each with its own reference, batch 100, compiled."""
    make, config = partial(make_network, network, SHAPE, 10), training(100, compile=True)
    problem = Problem(make, images(20_000), images(1_000, seed=1), config, augmentation="crop_flip", device=DEVICE)
    workers = GraphedWorkers(problem, 8, num_starts=8)
    workers.stage_starts = [0, STEPS]
    workers.begin(0)
    workers.run_stage(0, torch.randn(8, 3))
    assert workers.graphs is not None
    report(f"8 pairs of {network}, batch 100, compiled", partial(workers.graphs.steps.run, 0, STEPS))


PARTS = {
    "resnet18": partial(networks, "resnet18", 1, True),
    "many": partial(networks, "resnet18", 16, False),
    "small": partial(networks, "small_resnet", 16, False),
    "pairs": partial(pairs, "resnet32"),
}


def main() -> None:
    """Profile one part, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=tuple(PARTS))
    part = parser.parse_args().part
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name, work in PARTS.items():
        if part in (None, name):
            work()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
