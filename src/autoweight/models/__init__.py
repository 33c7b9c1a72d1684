"""Networks by name. A new one is a file here and a line in `NETWORKS`."""

from collections.abc import Callable

from torch import nn

from autoweight.errors import look_up
from autoweight.models.by_shape import by_shape
from autoweight.models.external import external_network
from autoweight.models.mlp import mlp
from autoweight.models.mobilenet import mobilenet_v2
from autoweight.models.resnet import resnet18, resnet32, resnet34, resnet50, resnet101, small_resnet, small_resnet64
from autoweight.models.small_cnn import small_cnn
from autoweight.models.strided_cnn import strided_cnn
from autoweight.models.text import bag_of_words, text_embedding, token_window
from autoweight.models.vgg import vgg19
from autoweight.models.wide_resnet import wrn_28_10

NETWORKS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "mlp": mlp,
    "by_shape": by_shape,
    "small_cnn": small_cnn,
    "strided_cnn": strided_cnn,
    "bag_of_words": bag_of_words,
    "text_embedding": text_embedding,
    "token_window": token_window,
    "small_resnet": small_resnet,
    "small_resnet64": small_resnet64,
    "resnet32": resnet32,
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "resnet101": resnet101,
    "wrn_28_10": wrn_28_10,
    "vgg19": vgg19,
    "mobilenet_v2": mobilenet_v2,
}


def make_network(name: str, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A fresh network of that name, for inputs of `input_shape` (no batch).

    It may also be `torchvision:NAME`, `timm:NAME`, or `module:function` of the user's own.
    """
    if ":" in name:
        return external_network(name, input_shape, num_classes)
    return look_up("network", name, NETWORKS)(input_shape, num_classes)
