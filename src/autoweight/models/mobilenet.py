"""MobileNetV2 for small images (Sandler et al. 2018): stem and second stage have stride 1, so 8 in all, not 32.

The blocks are the paper's: a shortcut only where the shape stays, and nothing to expand in the first, whose factor
is 1. The classifier has no dropout. The paper names no initialisation; this is He's.
"""

from torch import nn

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

_STAGES = (Stage(24, 2, 1), Stage(32, 3, 2), Stage(64, 4, 2), Stage(96, 3, 1), Stage(160, 3, 2), Stage(320, 1, 1))
_EXPANSION = 6


def mobilenet_v2(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """MobileNetV2 with a stem and a second stage of stride 1: 2.2 M parameters."""
    return he_initialise(
        nn.Sequential(
            *_conv_bn_relu(channels_of(input_shape), 32),
            *_depthwise_separable(32, BlockShape(32, 16, 1)),
            *(_inverted_residual(shape) for shape in block_shapes(16, _STAGES)),
            *_conv_bn_relu(320, 1280, size=1),
            GlobalMean(),
            nn.Linear(1280, num_classes),
        )
    )


def _inverted_residual(shape: BlockShape) -> nn.Module:
    hidden = _EXPANSION * shape.inputs
    branch = nn.Sequential(*_conv_bn_relu(shape.inputs, hidden, size=1), *_depthwise_separable(hidden, shape))
    return Residual(branch) if shape.unchanged else branch


def _depthwise_separable(hidden: int, shape: BlockShape) -> list[nn.Module]:
    """One filter a channel, then a linear bottleneck."""
    return [
        *_conv_bn_relu(hidden, hidden, stride=shape.stride, groups=hidden),
        *conv_bn(hidden, shape.outputs, size=1),
    ]


def _conv_bn_relu(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [*conv_bn(inputs, outputs, size, stride, groups), nn.ReLU6()]
