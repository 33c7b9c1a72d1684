"""Networks by name. A new one is a file here and a line in `NETWORKS`."""

from collections.abc import Callable

from torch import nn

from autoweight.errors import unknown
from autoweight.models.mlp import mlp
from autoweight.models.small_cnn import small_cnn

NETWORKS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "mlp": mlp,
    "small_cnn": small_cnn,
}


def make_network(name: str, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A fresh network of that name for inputs of `input_shape` (without the batch)."""
    if name not in NETWORKS:
        raise unknown("network", name, NETWORKS)
    return NETWORKS[name](input_shape, num_classes)
