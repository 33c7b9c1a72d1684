"""How a training computes: in half precision, compiled."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import torch

from autoweight.config import Precision, TrainingConfig

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """bfloat16 arithmetic where it was asked for and the device is a GPU; parameters are cast again at every step."""
    return torch.autocast(device.type, torch.bfloat16, enabled=is_halved(precision, device), cache_enabled=False)


def is_halved(precision: Precision, device: torch.device) -> bool:
    """Whether arithmetic is bfloat16's: CPUs always use float32."""
    return precision == "bfloat16" and device.type == "cuda"


def compiled(
    work: Callable[Arguments, Result], config: TrainingConfig, device: torch.device
) -> Callable[Arguments, Result]:
    """The function compiled, where the configuration asks for it and the device is a GPU."""
    return _compile(work) if config.compile and device.type == "cuda" else work


@cache
def _compile(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """One compiled version of a plain function for all, so that equal networks share the code.

    Combo kernels do the many small casts of weights and gradients in a few launches: a tenth of a ResNet-18's step.
    Tuning the kernels between convolutions saves another hundredth or two.
    """
    options: dict[str, str | int | bool | Callable[..., Any]] = {"combo_kernels": True, "max_autotune_pointwise": True}
    inner = inspect.unwrap(work)
    fast: Callable[Arguments, Result] = torch.compile(inner, options=options)
    # All that `no_grad` wraps is one function to the compiler, which gives up on its ninth version.
    return fast if inner is work else torch.no_grad()(fast)
