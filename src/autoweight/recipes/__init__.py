"""Recipes by name. A new one is a file here, whose docstring gives command and expected result, and a line below."""

from types import ModuleType

from autoweight.config import RunConfig
from autoweight.errors import unknown
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
    digits_noise,
    imagenet_noise,
)

RECIPES: dict[str, ModuleType] = {
    "digits-noise": digits_noise,
    "digits-imbalance": digits_imbalance,
    "digits-longtail": digits_longtail,
    "cifar10-noise": cifar10_noise,
    "cifar10-noise-wide": cifar10_noise_wide,
    "cifar10-imbalance": cifar10_imbalance,
    "cifar10-longtail": cifar10_longtail,
    "cifar10n": cifar10n,
    "cifar100-noise": cifar100_noise,
    "cifar100-noise-wide": cifar100_noise_wide,
    "cifar100-imbalance": cifar100_imbalance,
    "cifar100-longtail": cifar100_longtail,
    "cifar100n": cifar100n,
    "imagenet-noise": imagenet_noise,
}


def get_recipe(name: str) -> RunConfig:
    """The configuration of a recipe."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    recipe: RunConfig = RECIPES[name].RECIPE
    return recipe
