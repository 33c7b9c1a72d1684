"""Recipes by name. A new one is a file here, whose docstring gives command and expected result, and a line below."""

from types import ModuleType
from typing import NamedTuple

from autoweight.config import RunConfig
from autoweight.errors import look_up
from autoweight.recipes import (
    cifar10_imbalance,
    cifar10_longtail,
    cifar10_noise,
    cifar10_noise_wide,
    cifar10n,
    cifar100_imbalance,
    cifar100_longtail,
    cifar100_noise,
    cifar100_noise_wide,
    cifar100n,
    digits_imbalance,
    digits_longtail,
    digits_many,
    digits_noise,
    imagenet_noise,
    today,
)


class Recipe(NamedTuple):
    """An experiment by name."""

    about: str
    config: RunConfig


def _of(module: ModuleType) -> Recipe:
    return Recipe((module.__doc__ or "").partition("\n")[0], module.RECIPE)


RECIPES: dict[str, Recipe] = {
    "digits-noise": _of(digits_noise),
    "digits-imbalance": _of(digits_imbalance),
    "digits-longtail": _of(digits_longtail),
    "digits-many": _of(digits_many),
    "cifar10-noise": _of(cifar10_noise),
    "cifar10-noise-wide": _of(cifar10_noise_wide),
    "cifar10-imbalance": _of(cifar10_imbalance),
    "cifar10-longtail": _of(cifar10_longtail),
    "cifar10n": _of(cifar10n),
    "cifar100-noise": _of(cifar100_noise),
    "cifar100-noise-wide": _of(cifar100_noise_wide),
    "cifar100-imbalance": _of(cifar100_imbalance),
    "cifar100-longtail": _of(cifar100_longtail),
    "cifar100n": _of(cifar100n),
    "imagenet-noise": _of(imagenet_noise),
    **{name: Recipe(*parts) for name, parts in today.RECIPES.items()},
}


def get_recipe(name: str) -> RunConfig:
    """The configuration of a recipe."""
    return look_up("recipe", name, RECIPES).config
