"""The network that suits the inputs' shape, for arrays of which nothing else is known."""

from torch import nn

from autoweight.models.mlp import mlp
from autoweight.models.small_cnn import small_cnn
from autoweight.models.strided_cnn import strided_cnn

_SMALL_SIDE = 32


def by_shape(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """small_cnn for images of up to 32 pixels, strided_cnn for larger ones, mlp for all else."""
    if len(input_shape) != 3:
        return mlp(input_shape, num_classes)
    return (small_cnn if max(input_shape[1:]) <= _SMALL_SIDE else strided_cnn)(input_shape, num_classes)
