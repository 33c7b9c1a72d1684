"""Is a running mean of margins as good as the margin of the mean prediction, and what does it cost: docs/memory.md.

    OMP_NUM_THREADS=1 python benchmarks/memory.py            about two minutes on one core

`Memory` keeps one margin a sample. Here a memory of samples x classes, the running mean of each sample's predicted
probabilities, is kept beside it through the same unweighted training with 40 % of the labels redrawn. Both move by the
same rate and begin at 0, so that they differ in the order of averaging alone.
"""

import time
from statistics import median
from typing import NamedTuple

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.data import load_pool
from autoweight.data.corruptions import uniform_noise
from autoweight.data.dataset import Samples
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.strategy.memory import RATE, Memory
from autoweight.strategy.testimony import Testimony
from autoweight.training.schedules import learning_rate_at

SEEDS = 3
LOOKS = (0.1, 0.25, 0.5, 1.0)
TRAINING = aw.TrainingConfig()
NOISE = get_recipe("digits-noise").data


class Look(NamedTuple):
    """How the two memories agree at a moment of a training."""

    correlation: float
    equal_signs: float
    ours: float
    full: float


def digits(seed: int) -> Samples:
    """The training part of digits-noise."""
    return load_pool(NOISE).splits(NOISE, seed).train


def hundred_classes(seed: int) -> Samples:
    """5,000 samples around 100 centres in 64 dimensions, 40 % of the labels redrawn."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(100, 64, generator=generator)
    labels = torch.arange(100).repeat(50)
    inputs = centres[labels] + 1.5 * torch.randn(len(labels), 64, generator=generator)
    return uniform_noise(Samples.of(inputs, labels), NOISE.noise_rate, seed)


def margins_of(means: Tensor, labels: Tensor) -> Tensor:
    """The label's mean probability less that of the strongest other class."""
    own = means.gather(1, labels.unsqueeze(1))
    return (own - means.scatter(1, labels.unsqueeze(1), -1.0).amax(dim=1, keepdim=True)).squeeze(1)


def agreement(samples: Samples, memory: Memory, means: Tensor) -> Look:
    """Correlation, share of equal signs, and how well each finds the wrong labels (AUROC)."""
    ours, full = memory.columns["margin"], margins_of(means, samples.labels)
    wrong = samples.labels != samples.true_labels
    return Look(
        float(torch.corrcoef(torch.stack([ours, full]))[0, 1]),
        float(((ours < 0) == (full < 0)).double().mean()),
        float(roc_auc_score(wrong, -ours)),
        float(roc_auc_score(wrong, -full)),
    )


def follow(samples: Samples, seed: int) -> list[Look]:
    """Train without weights, keep both memories, and look at them along the way."""
    torch.manual_seed(seed)
    count, classes = len(samples), samples.num_classes
    model = make_network("mlp", samples.input_shape, classes)
    optimizer = torch.optim.SGD(model.parameters(), TRAINING.learning_rate, TRAINING.momentum)
    memory, means = Memory.empty(count, classes), torch.zeros(count, classes)
    rate, valid = torch.tensor(RATE), torch.ones(TRAINING.batch_size, dtype=torch.bool)
    epoch_steps = count // TRAINING.batch_size
    total, looks, step = epoch_steps * TRAINING.epochs, [], 0
    for _ in range(TRAINING.epochs):
        for batch in torch.randperm(count)[: epoch_steps * TRAINING.batch_size].split(TRAINING.batch_size):
            optimizer.param_groups[0]["lr"] = learning_rate_at(TRAINING, step, total)
            labels = samples.labels[batch]
            logits = model(samples.inputs[batch])
            optimizer.zero_grad()
            cross_entropy(logits, labels).backward()
            optimizer.step()
            memory.margins(memory.look(logits.detach(), labels), labels, batch, rate, valid)
            means[batch] = torch.lerp(means[batch], logits.detach().softmax(dim=1), RATE)
            step += 1
            if step in [round(look * total) for look in LOOKS]:
                looks.append(agreement(samples, memory, means))
    return looks


def step_times(blocks: int = 40, steps: int = 25) -> dict[str, float]:
    """Microseconds of a step of a 784-256-10 MLP, batch 128: medians of blocks, the kinds in turns.

    The processor's time, not the clock's, so that neighbours on the machine do not count.
    """
    torch.manual_seed(0)
    inputs, labels, indices = torch.randn(128, 784), torch.randint(10, (128,)), torch.arange(128)
    table = torch.zeros(20, 3)  # weights of 1
    remembering = aw.Rule(("margin", "history", "belief"))
    weighers: dict[str, aw.Weigher | None] = {
        "plain": None,
        "strategy of loss and entropy": aw.Strategy(table),
        "strategy of margin": aw.Strategy(table, aw.Rule(("margin",))),
        "strategy of margin, history and belief": aw.Strategy(torch.zeros(20, 5), remembering),
        "auto": aw.load("auto"),
    }
    nets = {name: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)) for name in weighers}
    rules = {name: torch.optim.SGD(net.parameters(), 0.01, 0.9) for name, net in nets.items()}
    for weigher in weighers.values():
        if weigher is not None:
            weigher.reserve(50_000, 10, "cpu")
    times: dict[str, list[float]] = {name: [] for name in weighers}
    for block in range(blocks + 1):
        for name, weigher in weighers.items():
            began = time.process_time()
            for _ in range(steps):
                logits = nets[name](inputs)
                losses = cross_entropy(logits, labels, reduction="none")
                loss = losses.mean()
                if weigher is not None:
                    loss = aw.weighted_mean(losses, weigher.weigh(losses, logits, labels, 0.5, indices))
                rules[name].zero_grad()
                loss.backward()
                rules[name].step()
            if block:  # the first warms up
                times[name].append((time.process_time() - began) / steps * 1e6)
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """Print the tables."""
    print("| data | training done | correlation | equal signs | AUROC, ours | AUROC, samples x classes |")
    print("|---|---|---|---|---|---|")
    for name, make in {"digits, 10 classes": digits, "generated, 100 classes": hundred_classes}.items():
        runs = [follow(make(seed), seed) for seed in range(SEEDS)]
        for at, looks in zip(LOOKS, zip(*runs, strict=True), strict=True):
            values = [sum(column) / SEEDS for column in zip(*looks, strict=True)]
            print(f"| {name} | {at:.0%} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)
    times = step_times()
    print("\n| step of | microseconds of one core | over plain |\n|---|---|---|")
    for name, value in times.items():
        print(f"| {name} | {value:.0f} | {value / times['plain']:.2f} |")
    columns = [*Memory.empty(1, 10).columns.tensors().values(), *Testimony.empty(1)]
    print(f"\nbytes a sample: {sum(column.nbytes for column in columns)}")


if __name__ == "__main__":
    main()
