"""Trainings of the gauntlet: many small networks, one a method and seed, as one stacked computation."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from gauntlet_data import split
from gauntlet_methods import ELR, METHODS, Kept, Setting
from torch import Tensor, nn
from torch.nn import functional

CHECKS = 20  # looks at the validation set, over which early_stop chooses
FOLDS = 5
_AT_ONCE = 2000  # samples of each network


class Task(NamedTuple):
    """One problem, its bias, and how it is trained on."""

    family: str
    noise: str = "none"
    rate: float = 0.0
    imbalance: str = "none"
    factor: float = 1.0
    size: int = 1000
    options: tuple = ()
    hidden: tuple = (128, 128)
    channels: tuple = ()
    norm: bool = False
    dropout: float = 0.0
    smoothing: float = 0.0
    epochs: int = 40
    batch: int = 64
    optimizer: str = "sgd"
    lr: float = 0.1
    decay: float = 0.0
    schedule: str = "drops"
    seeds: int = 3

    @property
    def kind(self) -> str:
        """What is wrong with its training set."""
        noise = {"none": "", "keywords": "rules", "tree": "rules"}.get(self.noise, f"{self.noise} {self.rate:g}")
        rare = "" if self.imbalance == "none" else f"{self.imbalance} {self.factor:g}"
        return " + ".join(filter(None, (rare, noise))) or "clean"

    @property
    def name(self) -> str:
        """All that sets it apart from other tasks."""
        options = ",".join(f"{key}={value}" for key, value in self.options)
        network = "x".join(map(str, self.channels + self.hidden))
        extra = "".join(
            f" {name}{'' if value is True else f' {value:g}'}"
            for name, value in (("norm", self.norm), ("dropout", self.dropout), ("smoothing", self.smoothing))
            if value
        )
        training = f"{self.epochs} epochs {self.optimizer} {self.lr:g} decay {self.decay:g} batch {self.batch}"
        return f"{self.family}({options}) {self.size}, {self.kind}, {network}{extra}, {training} {self.schedule}"


class Stack(nn.Module):
    """Networks of one form, side by side: `[slots, batch, ...]` in, `[slots, batch, classes]` out."""

    def __init__(self, task: Task, shape: tuple[int, ...], classes: int, seeds: list[int]) -> None:
        super().__init__()
        self.task, self.slots = task, len(seeds)
        convolutions = [(into, out) for into, out in zip((shape[0], *task.channels), task.channels, strict=False)]
        flat = task.channels[-1] if task.channels else int(np.prod(shape))
        dense = list(zip((flat, *task.hidden), (*task.hidden, classes), strict=True))
        self.kernels = nn.ParameterList(_starts([(out, into, 3, 3) for into, out in convolutions], seeds))
        self.matrices = nn.ParameterList(_starts([(out, into) for into, out in dense], seeds))
        self.biases = nn.ParameterList([torch.zeros(self.slots, 1, out) for _, out in dense])
        widths = [*task.channels, *task.hidden] if task.norm else []
        self.norms = nn.ModuleList([nn.BatchNorm1d(self.slots * width) for width in widths])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of every slot's own batch."""
        if self.kernels:
            inputs = self._convolve(inputs)
        hidden = inputs.flatten(2)
        for number, (matrix, bias) in enumerate(zip(self.matrices, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden, matrix.transpose(1, 2))
            if number < len(self.matrices) - 1:
                hidden = functional.relu(self._normed(hidden, len(self.kernels) + number))
                hidden = self._dropped(hidden)
        return hidden

    def _convolve(self, inputs: Tensor) -> Tensor:
        slots, batch = inputs.shape[:2]
        images = inputs.transpose(0, 1).flatten(1, 2)
        for number, kernel in enumerate(self.kernels):
            kept = kernel.shape[1] == kernel.shape[2]  # as many channels as before: a residual step
            stride = 1 if kept or number == 0 else 2
            moved = functional.conv2d(images, kernel.flatten(0, 1), padding=1, stride=stride, groups=slots)
            if self.task.norm:
                moved = self.norms[number](moved.flatten(2)).view_as(moved)
            images = functional.relu(images + moved if kept else moved)
        return images.mean((2, 3)).view(batch, slots, -1).transpose(0, 1)

    def _dropped(self, hidden: Tensor) -> Tensor:
        """Dropout with the same masks for all methods of a seed, so that equal weights train equal networks."""
        if not self.training or not self.task.dropout:
            return hidden
        kept = torch.rand(self.task.seeds, *hidden.shape[1:]) >= self.task.dropout
        return hidden * kept.repeat(self.slots // self.task.seeds, 1, 1) / (1 - self.task.dropout)

    def _normed(self, hidden: Tensor, number: int) -> Tensor:
        if not self.task.norm:
            return hidden
        flat = hidden.transpose(0, 1).flatten(1)
        return self.norms[number](flat).view(hidden.shape[1], hidden.shape[0], -1).transpose(0, 1)


def _starts(shapes: list[tuple[int, ...]], seeds: list[int]) -> list[Tensor]:
    """He's normal starts; slots of one seed start alike."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    deviations = [(2 / np.prod(shape[1:])) ** 0.5 for shape in shapes]
    return [
        torch.stack([torch.randn(shape, generator=generator) * deviation for generator in generators])
        for shape, deviation in zip(shapes, deviations, strict=True)
    ]


def rate_at(task: Task, progress: float) -> float:
    """The learning rate: constant, on a cosine, or divided by ten at 50, 65 and 80 % of the training."""
    factors: dict[str, float] = {
        "constant": 1.0,
        "cosine": 0.5 * (1 + np.cos(np.pi * progress)),
        "drops": 0.1 ** sum(progress >= drop for drop in (0.5, 0.65, 0.8)),
    }
    return task.lr * factors[task.schedule]


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda params, lr, decay: torch.optim.SGD(params, lr, momentum=0.9, weight_decay=decay),
    "adam": lambda params, lr, decay: torch.optim.Adam(params, lr, weight_decay=decay),
    "adamw": lambda params, lr, decay: torch.optim.AdamW(params, lr, weight_decay=decay),
}


class Run:
    """One task, by some methods: every seed has its own data, start and order, which its methods share."""

    def __init__(self, task: Task, methods: list[str], make: dict[str, Callable] | None = None) -> None:
        self.task, self.methods = task, methods
        numbers = range(task.seeds)
        splits = [split(task.family, task.size, dict(task.options), *task[1:5], seed=seed) for seed in numbers]
        samples = min(len(part.given) for part in splits)
        self.samples, self.classes = samples, int(splits[0].test.labels.max()) + 1
        scored = [min(len(getattr(part, which).labels) for part in splits) for which in ("validation", "test")]
        self.train = _stacked([part.train[:samples] for part in splits])
        self.given = torch.stack([torch.from_numpy(part.given[:samples]).long() for part in splits])
        self.true = torch.stack([torch.from_numpy(part.true[:samples]).long() for part in splits])
        self.scored = [
            (
                _stacked([getattr(part, which).inputs[:count] for part in splits]),
                torch.stack([torch.from_numpy(getattr(part, which).labels[:count]).long() for part in splits]),
            )
            for which, count in zip(("validation", "test"), scored, strict=True)
        ]
        makers = METHODS | (make or {})
        self.weighers = [
            makers[method](Setting(self.given[seed], self.true[seed], self.classes, partial(self._unseen, seed)))
            for method in methods
            for seed in numbers
        ]
        torch.manual_seed(0)
        self.stack = Stack(task, tuple(self.train.shape[2:]), self.classes, list(numbers) * len(methods))
        self.optimizer = OPTIMIZERS[task.optimizer](self.stack.parameters(), task.lr, task.decay)

    @property
    def wrong(self) -> float:
        """The share of wrong labels."""
        return float((self.given != self.true).float().mean())

    def _unseen(self, seed: int) -> Tensor:
        return self._out_of_fold[seed]

    @cached_property
    def _out_of_fold(self) -> Tensor:
        """Probabilities `[seeds, samples, classes]` by networks that did not train on the sample."""
        order = torch.Generator().manual_seed(0)
        fold = torch.randperm(self.samples, generator=order) % FOLDS
        others = {f"all but {number}": partial(_all_but, fold, number) for number in range(FOLDS)}
        run = Run(self.task, list(others), others)
        run.accuracies()
        answers = run._answers(run.train).softmax(-1).view(FOLDS, self.task.seeds, self.samples, -1)
        return answers[fold, :, torch.arange(self.samples)].transpose(0, 1)

    def accuracies(self) -> dict[str, list[float]]:
        """Last-epoch test accuracy of each method and seed; early_stop is read off uniform."""
        steps = max(self.samples // self.task.batch, 1)
        checks = set(np.linspace(0, self.task.epochs, CHECKS + 1).round().astype(int)) - {0}
        curve = []
        for epoch in range(self.task.epochs):
            for number, batch in enumerate(self._batches(epoch, steps)):
                self._step(batch, (epoch + number / steps) / self.task.epochs)
            if epoch + 1 == self.task.epochs or ("uniform" in self.methods and epoch + 1 in checks):
                curve.append(self._scores())
        validation, test = torch.tensor(curve).unbind(1)
        found = dict(zip(self.methods, test[-1].view(len(self.methods), -1).tolist(), strict=True))
        if "uniform" in self.methods:
            own = self.methods.index("uniform") * self.task.seeds + torch.arange(self.task.seeds)
            found["early_stop"] = test[:, own].gather(0, validation[:, own].argmax(0, keepdim=True))[0].tolist()
        return found

    def _batches(self, epoch: int, steps: int) -> Iterator[Tensor]:
        """Indices `[seeds, batch]`, each seed's samples in an order of its own."""
        orders = [
            torch.randperm(self.samples, generator=torch.Generator().manual_seed(1000 * epoch + seed))
            for seed in range(self.task.seeds)
        ]
        return iter(torch.stack(orders)[:, : steps * self.task.batch].chunk(steps, dim=1))

    def _step(self, batch: Tensor, progress: float) -> None:
        self.stack.train()
        rows = torch.arange(self.task.seeds)[:, None]
        repeat = len(self.methods)
        labels = self.given[rows, batch].repeat(repeat, 1)
        inputs = self.train[rows, batch]
        logits = self.stack(inputs.repeat(repeat, *[1] * (inputs.dim() - 1)))
        flat = logits.flatten(0, 1), labels.flatten()
        losses = functional.cross_entropy(*flat, reduction="none", label_smoothing=self.task.smoothing).view_as(labels)
        seen = zip(self.weighers, losses.detach(), logits.detach(), labels, batch.repeat(repeat, 1), strict=True)
        weights = torch.stack(
            [
                weigher.weigh(own, outputs, given, progress, indices=places)
                for weigher, own, outputs, given, places in seen
            ]
        )
        regularised = [(weigher, slot) for slot, weigher in enumerate(self.weighers) if isinstance(weigher, ELR)]
        places = batch.repeat(repeat, 1)
        terms = [weigher.term(logits[slot], places[slot]) for weigher, slot in regularised]
        self.optimizer.zero_grad(set_to_none=True)
        ((weights * losses).mean(1).sum() + sum(terms)).backward()
        self.optimizer.param_groups[0]["lr"] = rate_at(self.task, progress)
        self.optimizer.step()

    def _scores(self) -> list[list[float]]:
        """Accuracies on the validation and the test set, of every slot."""
        repeat = len(self.methods)
        return [
            (self._answers(inputs).argmax(-1) == labels.repeat(repeat, 1)).float().mean(1).tolist()
            for inputs, labels in self.scored
        ]

    @torch.no_grad()
    def _answers(self, inputs: Tensor) -> Tensor:
        """Logits of every slot for its seed's inputs, `[seeds, samples, ...]`."""
        self.stack.eval()
        repeat = [len(self.methods), *[1] * (inputs.dim() - 1)]
        return torch.cat([self.stack(part.repeat(repeat)) for part in inputs.split(_AT_ONCE, dim=1)], dim=1)


def _all_but(fold: Tensor, number: int, setting: Setting) -> Kept:
    return Kept(fold != number)


def _stacked(parts: list[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.stack(parts)).float()
