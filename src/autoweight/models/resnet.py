"""Residual networks for small images (He et al. 2016, Deep Residual Learning for Image Recognition).

`resnet18` to `resnet101` are the paper's ImageNet networks with a 3x3 stem of stride 1 in place of the 7x7 one and its
pooling. `resnet32` is its CIFAR network. A bottleneck has its stride in the 3x3 convolution, where no input is skipped.
"""

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn.functional import pad

from autoweight.models.layers import (
    BlockShape,
    GlobalMean,
    Residual,
    Stage,
    block_shapes,
    channels_of,
    conv_bn,
    he_initialise,
)

_EXPANSION = 4


class PaddedShortcut(nn.Module):
    """A shortcut without parameters: every `stride`-th pixel, and zeros for the new channels (option A)."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.stride = shape.stride
        self.new_channels = shape.outputs - shape.inputs

    def forward(self, inputs: Tensor) -> Tensor:
        """The subsampled, padded input."""
        return pad(inputs[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))


def resnet18(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """ResNet-18 with a 3x3 stem, 64 to 512 wide: 11.2 M parameters."""
    return _resnet(input_shape, num_classes, 64, _four_stages((2, 2, 2, 2)), _basic, _projection)


def resnet34(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """ResNet-34 with a 3x3 stem, 64 to 512 wide: 21.3 M parameters."""
    return _resnet(input_shape, num_classes, 64, _four_stages((3, 4, 6, 3)), _basic, _projection)


def resnet50(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """ResNet-50 with a 3x3 stem and bottlenecks, 256 to 2048 wide: 23.5 M parameters."""
    return _resnet(input_shape, num_classes, 64, _four_stages((3, 4, 6, 3), _EXPANSION), _bottleneck, _projection)


def resnet101(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """ResNet-101 with a 3x3 stem and bottlenecks, 256 to 2048 wide: 42.5 M parameters."""
    return _resnet(input_shape, num_classes, 64, _four_stages((3, 4, 23, 3), _EXPANSION), _bottleneck, _projection)


def resnet32(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """ResNet-32 of the CIFAR family, 16 to 64 wide, shortcuts without parameters: 0.46 M parameters."""
    stages = (Stage(16, 5), Stage(32, 5, 2), Stage(64, 5, 2))
    return _resnet(input_shape, num_classes, 16, stages, _basic, PaddedShortcut)


def small_resnet(input_shape: tuple[int, ...], num_classes: int, width: int = 32) -> nn.Module:
    """Three residual blocks, 32 to 128 wide, to search strategies cheaply: 0.31 M parameters."""
    stages = (Stage(width, 1), Stage(2 * width, 1, 2), Stage(4 * width, 1, 2))
    return _resnet(input_shape, num_classes, width, stages, _basic, _projection)


def small_resnet64(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """`small_resnet` of twice the width, which memorises sooner, as large networks do: 1.23 M parameters."""
    return small_resnet(input_shape, num_classes, width=64)


def _four_stages(depths: Sequence[int], expansion: int = 1) -> list[Stage]:
    widths, strides = (64, 128, 256, 512), (1, 2, 2, 2)
    return [Stage(expansion * width, *rest) for width, *rest in zip(widths, depths, strides, strict=True)]


def _resnet(
    input_shape: tuple[int, ...],
    num_classes: int,
    stem: int,
    stages: Sequence[Stage],
    branch: Callable[[BlockShape], nn.Module],
    shortcut: Callable[[BlockShape], nn.Module],
) -> nn.Module:
    layers = [*conv_bn(channels_of(input_shape), stem), nn.ReLU()]
    for shape in block_shapes(stem, stages):
        layers += [Residual(branch(shape), None if shape.unchanged else shortcut(shape)), nn.ReLU()]
    return he_initialise(nn.Sequential(*layers, GlobalMean(), nn.Linear(stages[-1].outputs, num_classes)))


def _basic(shape: BlockShape) -> nn.Module:
    inputs, outputs, stride = shape
    return nn.Sequential(*conv_bn(inputs, outputs, stride=stride), nn.ReLU(), *conv_bn(outputs, outputs))


def _bottleneck(shape: BlockShape) -> nn.Module:
    width = shape.outputs // _EXPANSION
    return nn.Sequential(
        *conv_bn(shape.inputs, width, size=1),
        nn.ReLU(),
        *conv_bn(width, width, stride=shape.stride),
        nn.ReLU(),
        *conv_bn(width, shape.outputs, size=1),
    )


def _projection(shape: BlockShape) -> nn.Module:
    return nn.Sequential(*conv_bn(shape.inputs, shape.outputs, size=1, stride=shape.stride))
