"""A multi-layer perceptron: enough to memorise small sets, such as digits with wrong labels."""

from math import prod

from torch import nn


def mlp(input_shape: tuple[int, ...], num_classes: int, width: int = 128) -> nn.Module:
    """Two hidden layers of `width` with ReLU."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(prod(input_shape), width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, num_classes),
    )
