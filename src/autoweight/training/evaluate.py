"""How good a network is."""

import torch
from torch import nn

from autoweight.config import Precision
from autoweight.data.labelled import Labelled
from autoweight.training.precision import autocast
from autoweight.training.task import TASKS, Task, forward


@torch.no_grad()
def score(
    model: nn.Module,
    samples: Labelled,
    task: Task = TASKS["classification"],
    precision: Precision = "float32",
    batch_size: int = 1000,
) -> float:
    """The task's score of a network on samples; of a classifier, the share whose label it puts first."""
    was_training = model.training
    model.eval()
    sums = torch.zeros((), dtype=torch.float64, device=samples.device)
    for inputs, labels in samples.chunks(batch_size):
        with autocast(precision, samples.device):
            outputs = forward(model, inputs)
        sums = sums + task.tally(outputs, labels)
    model.train(was_training)
    return float(task.score(sums))
