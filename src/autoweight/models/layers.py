"""What the networks for images share: convolutions, residual blocks, average pooling, initialisation."""

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import NamedTuple

from torch import Tensor, nn

from autoweight.errors import require


class Stage(NamedTuple):
    """Blocks of one resolution; the first of them takes the stride."""

    outputs: int
    num_blocks: int
    stride: int = 1


class BlockShape(NamedTuple):
    """What one block maps: channels in, channels out, and the stride."""

    inputs: int
    outputs: int
    stride: int

    @property
    def unchanged(self) -> bool:
        """Whether the output has the shape of the input, so that the two can be added."""
        return self.stride == 1 and self.inputs == self.outputs


class Residual(nn.Module):
    """The sum of a branch and a shortcut, by default the input itself."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = nn.Identity() if shortcut is None else shortcut

    def forward(self, inputs: Tensor) -> Tensor:
        """Both ways, added."""
        outputs: Tensor = self.branch(inputs) + self.shortcut(inputs)
        return outputs


class GlobalMean(nn.Module):
    """Average pooling over the whole image, whatever its size."""

    def forward(self, inputs: Tensor) -> Tensor:
        """From `[batch, channels, height, width]` to `[batch, channels]`."""
        return inputs.mean(dim=(2, 3))


def block_shapes(inputs: int, stages: Iterable[Stage]) -> Iterator[BlockShape]:
    """The shapes of all blocks of a network, in order, whose first block takes `inputs` channels."""
    for stage in stages:
        for index in range(stage.num_blocks):
            yield BlockShape(inputs, stage.outputs, stage.stride if index == 0 else 1)
            inputs = stage.outputs


def channels_of(input_shape: tuple[int, ...]) -> int:
    """The number of channels of images of that shape; a `UserError` where they are no images."""
    require(
        len(input_shape) == 3,
        f"this network takes images of shape (channels, height, width), not inputs of shape {tuple(input_shape)}: "
        "choose another network, such as 'mlp'.",
    )
    return input_shape[0]


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without bias that keeps the resolution at stride 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False)


def conv_bn(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution and its BatchNorm."""
    return [convolution(inputs, outputs, size, stride, groups), nn.BatchNorm2d(outputs)]


def bn_relu(channels: int) -> list[nn.Module]:
    """BatchNorm and ReLU, in the order of pre-activation."""
    return [nn.BatchNorm2d(channels), nn.ReLU()]


def he_initialise(network: nn.Module) -> nn.Module:
    """He et al. 2015, equation 14: normal convolutions whose variance is 2 / fan-out; biases start at zero."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1] // module.groups
            nn.init.normal_(module.weight, std=sqrt(2 / fan_out))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network
