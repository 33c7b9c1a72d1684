"""Networks from elsewhere by name: `torchvision:resnet50`, `timm:convnext_tiny`, `module:function` of the user's own.

The module is imported when one of its networks is made; no pretrained parameters of a library are loaded.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torch
from torch import nn

from autoweight.errors import UserError, require, unknown
from autoweight.models.layers import channels_of
from autoweight.models.own import own_network

# These two answer with several heads in training unless told otherwise, and warn unless told how to initialise.
_SEVERAL_HEADS = ("googlenet", "inception_v3")


def external_network(name: str, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A fresh network called `library:network`, such as `torchvision:resnet50`."""
    library, _, network = name.partition(":")
    if library not in LIBRARIES:
        if get_close_matches(library, LIBRARIES, cutoff=0.8):
            raise unknown("network library", library, LIBRARIES)
        return own_network(library, network, input_shape, num_classes)
    return LIBRARIES[library](network, channels_of(input_shape), num_classes)


def _torchvision(network: str, channels: int, num_classes: int) -> nn.Module:
    models = _library("torchvision").models
    _check_name("torchvision network", network, models.list_models(module=models))
    require(
        channels == 3,
        f"torchvision's networks take images with 3 channels, not {channels}: choose one of timm's, such as "
        "'timm:resnet50'.",
    )
    options = {"aux_logits": False, "init_weights": True} if network in _SEVERAL_HEADS else {}
    model: nn.Module = models.get_model(network, weights=None, num_classes=num_classes, **options)
    return model


def _timm(network: str, channels: int, num_classes: int) -> nn.Module:
    timm = _library("timm")
    _check_name("timm network", network, timm.list_models())
    model: nn.Module = timm.create_model(network, pretrained=False, num_classes=num_classes, in_chans=channels)
    return model


LIBRARIES: dict[str, Callable[[str, int, int], nn.Module]] = {"torchvision": _torchvision, "timm": _timm}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(f"networks of {name} need {error.name}: pip install {error.name}") from error
    except (ImportError, RuntimeError) as error:
        raise UserError(f"{name} does not fit torch {torch.__version__}, install its build for it: {error}") from error


def _check_name(kind: str, name: str, options: Iterable[str]) -> None:
    """These libraries have up to a thousand networks, so the error names only a few near ones."""
    options = list(options)
    if name not in options:
        raise unknown(kind, name, get_close_matches(name, options, n=5, cutoff=0.0))
