"""What trainings depend on, as text: a checkpoint of another training must not be gone on with."""

from collections.abc import Sequence
from typing import Any

from autoweight.data.digests import digest, digests
from autoweight.data.labelled import Labelled
from autoweight.methods.method import Method
from autoweight.strategy import Strategy
from autoweight.training.schedules import settings_and_rates
from autoweight.training.split import weigher_of
from autoweight.training.steps import Slot


def fingerprint(slots: Sequence[Slot]) -> str:
    """Settings, data, seeds, kinds of methods, and the shapes of networks; not the ranks, whose number may change."""
    known: dict[int, list[int]] = {}

    def contents(samples: Labelled) -> list[int]:
        if id(samples) not in known:  # trainings side by side often share them
            known[id(samples)] = digests(samples)
        return known[id(samples)]

    facts = []
    for slot in slots:
        loaders = [loader for loader in (slot.loader, slot.trusted) if loader is not None]
        data = [contents(loader.samples) for loader in loaders]
        shapes = [tuple(parameter.shape) for parameter in slot.model.parameters()]
        own = slot.loader
        facts.append((*settings_and_rates(slot.config), own.seed, own.augmentation, _kind(slot.method), data, shapes))
    return repr(facts)


def _kind(method: Method) -> list[Any]:
    """The type of a method and of its weigher; of a strategy, also its table."""
    weigher = weigher_of(method)
    table = [weigher.rule, digest(weigher.table)] if isinstance(weigher, Strategy) else []
    return [type(method).__name__, type(weigher).__name__, *table]
