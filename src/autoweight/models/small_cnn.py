"""A small convolutional network with BatchNorm, for small images of any size and number of channels."""

from torch import nn

from autoweight.models.layers import conv_bn


def small_cnn(input_shape: tuple[int, ...], num_classes: int, width: int = 32) -> nn.Module:
    """Three 3x3 convolutions with BatchNorm and ReLU, one halving of the resolution, average pooling, a linear head."""
    return nn.Sequential(
        *conv_bn(input_shape[0], width),
        nn.ReLU(),
        *conv_bn(width, 2 * width, stride=2),
        nn.ReLU(),
        *conv_bn(2 * width, 2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * width, num_classes),
    )
