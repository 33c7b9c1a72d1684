"""A small convolutional network with BatchNorm, for small images of any size and number of channels."""

from torch import nn


def small_cnn(input_shape: tuple[int, ...], num_classes: int, width: int = 32) -> nn.Module:
    """Three 3x3 convolutions with BatchNorm and ReLU, one halving of the resolution, average pooling, a linear head."""

    def block(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *block(input_shape[0], width, 1),
        *block(width, 2 * width, 2),
        *block(2 * width, 2 * width, 1),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * width, num_classes),
    )
