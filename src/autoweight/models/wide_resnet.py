"""Wide residual networks for small images (Zagoruyko and Komodakis 2016)."""

from torch import nn

from autoweight.models.layers import (
    BlockShape,
    GlobalMean,
    Residual,
    Stage,
    block_shapes,
    bn_relu,
    channels_of,
    convolution,
    he_initialise,
)


def wrn_28_10(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Wide ResNet 28-10 with pre-activation, 160 to 640 wide: 36.5 M parameters."""
    stages = (Stage(160, 4), Stage(320, 4, 2), Stage(640, 4, 2))
    return he_initialise(
        nn.Sequential(
            convolution(channels_of(input_shape), 16),
            *(_block(shape) for shape in block_shapes(16, stages)),
            *bn_relu(640),
            GlobalMean(),
            nn.Linear(640, num_classes),
        )
    )


def _block(shape: BlockShape) -> nn.Module:
    """Where the shape changes, the first activation comes before the fork: the projection sees it too."""
    inputs, outputs, stride = shape
    convolutions = [
        convolution(inputs, outputs, stride=stride),
        *bn_relu(outputs),
        convolution(outputs, outputs),
    ]
    if shape.unchanged:
        return Residual(nn.Sequential(*bn_relu(inputs), *convolutions))
    projection = convolution(inputs, outputs, size=1, stride=stride)
    return nn.Sequential(*bn_relu(inputs), Residual(nn.Sequential(*convolutions), projection))
