"""How fast networks train on a GPU, captured in one CUDA graph, against an eager loop and against the chip's floor.

    python benchmarks/gpu_engine.py            all parts, a few minutes
    python benchmarks/gpu_engine.py exact      only that part: exact, single, many, or the pairs of a network

Prints tables; milliseconds are medians of several runs on synthetic images. The floor is the networks' multiplications
and additions over the matrix rate measured in the same run.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch.utils.flop_counter import FlopCounterMode

from autoweight import Constant, Uniform
from autoweight.config import TrainingConfig
from autoweight.data import Samples
from autoweight.data.loader import Loader
from autoweight.methods import TrainingFacts, make_method
from autoweight.methods.method import Weighted
from autoweight.models import make_network
from autoweight.training.captured import CapturedSteps, repeatable_kernels
from autoweight.training.steps import PlainSteps, Slot
from autoweight.workers import GraphedWorkers, Problem, SequentialWorkers

DEVICE = "cuda"
SHAPE = (3, 32, 32)
PAIRS = ("resnet32", "wrn_28_10")
_WARMUP_SECONDS = 3.0


def images(count: int, classes: int = 10, seed: int = 0) -> Samples:
    """Random images on the GPU."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    return Samples.of(torch.randn(count, *SHAPE, generator=generator), labels, classes).to(DEVICE)


def training(batch_size: int, **options) -> TrainingConfig:
    """How the benchmark trains."""
    return TrainingConfig(epochs=1000, batch_size=batch_size, weight_decay=2e-5, precision="bfloat16", **options)


def milliseconds(work: Callable[[], None], steps: int, repeats: int = 5) -> float:
    """Median time of a step, when `work` does `steps` of them."""
    return milliseconds_in_turns([work], steps, repeats)[0]


def milliseconds_in_turns(works: list[Callable[[], None]], steps: int, repeats: int = 5) -> list[float]:
    """The same of several works, in turns, since a GPU's pace changes with time: after a pause it needs a moment."""
    warm = time.perf_counter() + _WARMUP_SECONDS
    while time.perf_counter() < warm:
        for work in works:
            work()
        torch.cuda.synchronize()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for own, work in zip(times, works, strict=True):
            torch.cuda.synchronize()
            began = time.perf_counter()
            work()
            torch.cuda.synchronize()
            own.append((time.perf_counter() - began) / steps * 1000)
    return [statistics.median(own) for own in times]


def matrix_rate() -> float:
    """Measured bf16 matrix rate in operations a second."""
    a, b = (torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / (milliseconds(lambda: [a @ b for _ in range(10)], 10) / 1000)


def step_operations(network: str, batch_size: int) -> int:
    """Operations of a forward and a backward pass of one network on one batch."""
    model = make_network(network, SHAPE, 10)
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(2, *SHAPE)).sum().backward()
    return counter.get_total_flops() * batch_size // 2


def make_slots(
    network: str, count: int, config: TrainingConfig, data: Samples, method=lambda: Weighted(Uniform()), recorded=False
) -> list[Slot]:
    """Fresh networks that share their batches."""
    loader = Loader(data, config.batch_size, 0, "crop_flip")
    models = [make_network(network, SHAPE, 10).to(DEVICE, memory_format=torch.channels_last) for _ in range(count)]
    return [Slot(model, loader, method(), config, recorded=recorded) for model in models]


def captured_time(slots: list[Slot], config: TrainingConfig, steps: int) -> float:
    """Milliseconds of a captured step of all slots."""
    captured = CapturedSteps(slots, config, total_steps=10_000)
    return milliseconds(lambda: captured.run(0, steps), steps)


def many_networks(rate: float) -> None:
    """16 networks at batch 128: one graph against an eager loop in the same run."""
    print("\n16 networks, batch 128      eager ms  graph ms  ratio  floor ms  graph/floor  memory GiB")
    data = images(50_000)
    for network, eager_steps in (("resnet18", 5), ("small_resnet", 5)):
        config = training(128)
        torch.cuda.reset_peak_memory_stats()
        slots = make_slots(network, 16, config, data)
        plain = PlainSteps(slots, config, total_steps=10_000)
        eager = milliseconds(lambda plain=plain, n=eager_steps: plain.run(0, n), eager_steps, repeats=3)
        graph = captured_time(slots, config, 30)
        floor = 16 * step_operations(network, 128) / rate * 1000
        memory = torch.cuda.max_memory_reserved() / 2**30
        ratios = f"{eager / graph:7.2f}{floor:10.2f}{graph / floor:13.2f}"
        print(f"{network:26}{eager:10.1f}{graph:10.2f}{ratios}{memory:12.1f}")
        del slots, plain
        torch.cuda.empty_cache()


def pairs(rate: float, network: str) -> None:
    """8 workers, each with its own reference, at batch 100."""
    print("\n8 pairs, batch 100          pair-step ms  floor ms  ratio  memory GiB")
    train, val = images(20_000), images(1_000, seed=1)
    for compiled in (False, True):
        torch.cuda.reset_peak_memory_stats()
        make, config = partial(make_network, network, SHAPE, 10), training(100, compile=compiled)
        problem = Problem(make, train, val, config, augmentation="crop_flip", device=DEVICE)
        workers = GraphedWorkers(problem, 8, num_starts=8)
        workers.stage_starts = [0, 20]
        workers.begin(0)
        workers.run_stage(0, torch.randn(8, 3))
        assert workers.graphs is not None
        steps = workers.graphs.steps
        spent = milliseconds(lambda steps=steps: steps.run(0, 20), 20) / 8
        floor = 2 * step_operations(network, 100) / rate * 1000
        memory = torch.cuda.max_memory_reserved() / 2**30
        name = network + ", compiled" * compiled
        print(f"{name:26}{spent:14.2f}{floor:10.2f}{spent / floor:7.2f}{memory:12.1f}")
        del workers, steps
        torch.cuda.empty_cache()


def single(rate: float) -> None:
    """One ResNet-18 at batch 128: what weighting, recording and rivals that need no second look cost, compiled.

    Two networks of each kind, in turns, since one that was built first is sometimes slow.
    """
    print("\none resnet18, batch 128, compiled    step ms, two networks   200 epochs of 50,000 images, s")
    data, config, steps = images(50_000), training(128, compile=True), 200
    facts = TrainingFacts(data.class_counts, data.clean)
    named = {name: partial(make_method, name, facts, {}) for name in ("uniform", "auto", "gce", "elr")}
    kinds = {
        "uniform": (named["uniform"], False),
        "uniform, recorded": (named["uniform"], True),
        "law-weighted": (lambda: Weighted(Constant()), False),
        "auto": (named["auto"], False),
        "auto, recorded": (named["auto"], True),
        "gce": (named["gce"], False),
        "elr": (named["elr"], False),
    }
    works = []
    for method, recorded in [*kinds.values()] * 2:
        slots = make_slots("resnet18", 1, config, data, method, recorded)
        works.append(partial(CapturedSteps(slots, config, total_steps=10_000).run, 0, steps))
    times = milliseconds_in_turns(works, steps)
    best = {name: min(times[number :: len(kinds)]) for number, name in enumerate(kinds)}
    for number, (name, spent) in enumerate(best.items()):
        plain = best[name.removesuffix(", recorded") if name.endswith(", recorded") else "uniform"]
        both = "".join(f"{one:10.3f}" for one in times[number :: len(kinds)])
        print(f"{name:30}{both}{spent * 200 * 390 / 1000:12.0f}{100 * (spent / plain - 1):+10.2f} %")
    print(f"  floor {step_operations('resnet18', 128) / rate * 1000:.3f} ms; recorded is against the same unrecorded")


def exact() -> None:
    """Graphed against sequential over 50 steps, and rewards of exactly 0."""
    print("\ngraphed against sequential, 50 steps: largest relative difference of stage losses; reward at theta = 0")
    train, val = images(2_000), images(500, seed=1)
    params = torch.tensor([[-3.0, 1.0, -0.5], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [-8.0, 0.0, -2.0]])
    for network in ("small_resnet", "resnet18"):
        for precision in ("float32", "bfloat16"):
            config = replace(training(64, learning_rate=0.01), precision=precision)
            make = partial(make_network, network, SHAPE, 10)
            problem = Problem(make, train, val, config, augmentation="crop_flip", device=DEVICE, head_start=2)
            outcomes = {}
            for kind in (SequentialWorkers, GraphedWorkers):
                workers = kind(problem, 4, num_starts=2)
                workers.stage_starts = [0, 5, 20, 50]
                with repeatable_kernels():
                    workers.begin(3)
                    outcomes[kind] = [workers.run_stage(stage, params * (stage > 0)) for stage in range(3)]
            graphed, plain = outcomes[GraphedWorkers], outcomes[SequentialWorkers]
            gap = max(float(((a.loss - b.loss) / b.loss).abs().max()) for a, b in zip(graphed, plain, strict=True))
            rewards = [float(a.score[1] - a.reference_score[1]) for a in graphed]
            print(f"{network:14}{precision:10}{gap:12.2e}   {rewards}")
            assert not any(rewards)
            assert gap < (1e-4 if precision == "float32" else 5e-2)


def main() -> None:
    """Run one part, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("exact", "single", "many", *PAIRS))
    part = parser.parse_args().part
    rate = matrix_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bf16 matrix rate {rate / 1e12:.0f} TFLOP/s")
    if part in (None, "exact"):
        exact()
    if part in (None, "single"):
        single(rate)
    if part in (None, "many"):
        many_networks(rate)
    for network in PAIRS:
        if part in (None, network):
            pairs(rate, network)


if __name__ == "__main__":
    main()
