"""How good a network is, over a set and on every sample."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import Precision
from autoweight.data.labelled import Labelled
from autoweight.training.precision import autocast
from autoweight.training.task import TASKS, Task, forward

CHUNK = 1000  # samples that are looked at together


class Judged(NamedTuple):
    """How good a network is on a set."""

    score: float
    right: Tensor | None
    """Of each sample, whether the network puts its label first, `[n]` of bool; None where labels are no classes."""


def score(
    model: nn.Module,
    samples: Labelled,
    task: Task = TASKS["classification"],
    precision: Precision = "float32",
    batch_size: int = CHUNK,
) -> float:
    """The task's score of a network on samples; of a classifier, the share whose label it puts first."""
    return judge(model, samples, task, precision, batch_size).score


def judge(
    model: nn.Module,
    samples: Labelled,
    task: Task = TASKS["classification"],
    precision: Precision = "float32",
    batch_size: int = CHUNK,
) -> Judged:
    """The score, and on which samples a classifier is right, in one pass."""
    sums = torch.zeros((), dtype=torch.float64, device=samples.device)
    right = []
    for labels, outputs in _looks(model, samples, precision, batch_size):
        sums = sums + task.tally(outputs, labels)
        if task.name == "classification":
            right.append(outputs.argmax(dim=-1) == labels)
    return Judged(float(task.score(sums)), torch.cat(right) if right else None)


def predictions(model: nn.Module, samples: Labelled, precision: Precision = "float32") -> tuple[Tensor, Tensor]:
    """Of each sample, the class that a classifier puts first, and its label's probability less the largest other."""
    found = []
    for given, outputs in _looks(model, samples, precision, CHUNK):
        probabilities = outputs.float().softmax(dim=-1)[..., : samples.num_classes]  # it may have outputs to spare
        labels = given.unsqueeze(-1)
        own = probabilities.gather(-1, labels).squeeze(-1)
        margins = own - probabilities.scatter(-1, labels, -1.0).amax(dim=-1)
        found.append((probabilities.argmax(dim=-1), margins))
    predicted, margins = map(torch.cat, zip(*found, strict=True))
    return predicted, margins


@torch.no_grad()
def _looks(
    model: nn.Module, samples: Labelled, precision: Precision, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Labels and a network's outputs, part by part, in evaluation."""
    was_training = model.training
    model.eval()
    for inputs, labels in samples.chunks(batch_size):
        with autocast(precision, samples.device):
            outputs = forward(model, inputs)
        yield labels, outputs
    model.train(was_training)
