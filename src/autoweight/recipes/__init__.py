"""Recipes by name. A new one is a file here, whose docstring gives command and expected result, and a line below."""

from types import ModuleType

from autoweight.config import RunConfig
from autoweight.errors import unknown
from autoweight.recipes import digits_imbalance, digits_longtail, digits_noise

RECIPES: dict[str, ModuleType] = {
    "digits-noise": digits_noise,
    "digits-imbalance": digits_imbalance,
    "digits-longtail": digits_longtail,
}


def get_recipe(name: str) -> RunConfig:
    """The configuration of a recipe."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    recipe: RunConfig = RECIPES[name].RECIPE
    return recipe
