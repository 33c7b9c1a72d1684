"""Strategies that come with the package, by name, and loading by name or path."""

from collections.abc import Callable
from os.path import exists
from pathlib import Path

from torch import Tensor

from autoweight.errors import unknown
from autoweight.strategy.auto import Auto
from autoweight.strategy.noise import Noise
from autoweight.strategy.rare import Rare
from autoweight.strategy.strategy import Strategy
from autoweight.strategy.weigher import Weigher

SHIPPED: dict[str, Callable[[], Weigher]] = {"auto": Auto, "noise": Noise, "rare": Rare}


def load(name_or_path: str | Path, class_counts: Tensor | None = None) -> Weigher:
    """A shipped strategy by its name, such as "auto", or the one that a file holds; nothing in it is executed.

    Strategies that use the label have to know the training set's class counts.
    """
    name = str(name_or_path)
    if name in SHIPPED:  # a file of that name is ./auto
        return SHIPPED[name]()
    if not ({"/", "\\", "."} & set(name) or exists(name)):
        raise unknown("strategy", name, SHIPPED)
    return Strategy.load(name_or_path, class_counts)
