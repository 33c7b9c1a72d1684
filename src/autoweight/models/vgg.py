"""VGG for small images (Simonyan and Zisserman 2015) with BatchNorm and one linear layer in place of three."""

from torch import nn

from autoweight.models.layers import GlobalMean, bn_relu, channels_of, he_initialise


def vgg19(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """VGG-19 with BatchNorm and one linear layer, 64 to 512 wide: 20.0 M parameters."""
    inputs = channels_of(input_shape)
    layers: list[nn.Module] = []
    for width, depth in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(depth):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), *bn_relu(width)]
            inputs = width
        # Rounding up lets images under 32 pixels through; where 32 divides the size, nothing changes.
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return he_initialise(nn.Sequential(*layers, GlobalMean(), nn.Linear(inputs, num_classes)))
