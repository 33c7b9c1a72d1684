"""A convolutional network that halves the resolution at every layer: quick on a CPU for photographs of 64 pixels."""

from itertools import pairwise

from torch import nn

from autoweight.models.layers import channels_of, conv_bn


def strided_cnn(input_shape: tuple[int, ...], num_classes: int, width: int = 16) -> nn.Module:
    """Four 3x3 convolutions of stride 2, 16 to 64 wide, with BatchNorm and ReLU, average pooling, a linear head."""
    widths = (channels_of(input_shape), width, 2 * width, 4 * width, 4 * width)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [*conv_bn(inputs, outputs, stride=2), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, num_classes))
