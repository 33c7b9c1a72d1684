"""How good a network is."""

import torch
from torch import nn

from autoweight.config import Precision
from autoweight.data import Samples
from autoweight.training.steps import autocast


@torch.no_grad()
def accuracy(model: nn.Module, samples: Samples, precision: Precision = "float32", batch_size: int = 1000) -> float:
    """Share of samples whose label the network puts first."""
    was_training = model.training
    model.eval()
    correct = 0
    for inputs, labels in zip(samples.inputs.split(batch_size), samples.labels.split(batch_size), strict=True):
        with autocast(precision, inputs.device):
            correct += int((model(inputs).argmax(dim=-1) == labels).sum())
    model.train(was_training)
    return correct / len(samples)
