"""Disjoint, stratified parts of a set."""

from typing import TypeVar

import torch

from autoweight.data.labelled import Labelled
from autoweight.errors import require

Set = TypeVar("Set", bound=Labelled)


def stratified_split(samples: Set, sizes: tuple[int, ...], seed: int) -> list[Set]:
    """Disjoint random parts of these sizes, each with the classes' shares of the whole; what is left over is last.

    The samples of each class are spread evenly over one long line, which is then cut: every part gets each class's
    share to within one sample.
    """
    require(all(size >= 0 for size in sizes), "sizes of parts cannot be negative.")
    require(
        sum(sizes) <= len(samples), f"parts of {' + '.join(map(str, sizes))} samples do not fit into {len(samples)}."
    )
    generator = torch.Generator().manual_seed(seed)
    place = torch.empty(len(samples), dtype=torch.float64)
    strata = samples.labels if samples.has_classes and samples.labels.dim() == 1 else torch.zeros(len(samples))
    for label in range(samples.num_classes):
        members = (strata == label).nonzero().flatten()
        shuffled = members[torch.randperm(len(members), generator=generator)]
        offset = torch.rand(1, generator=generator, dtype=torch.float64)
        place[shuffled] = (torch.arange(len(members)) + offset) / max(len(members), 1)
    line = place.argsort(stable=True)
    cuts = [*sizes, len(samples) - sum(sizes)]
    return [samples.take(part.sort().values) for part in line.split(cuts)]


def some_of_each_class(samples: Set, count: int, seed: int) -> Set:
    """As many random samples of each class, or all where it has fewer, in their order."""
    require(samples.has_classes and samples.labels.dim() == 1, "data.per_class is for samples with one class each.")
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))
    labels = samples.labels.cpu()[order]
    kept = [order[labels == label][:count] for label in range(samples.num_classes)]
    return samples.take(torch.cat(kept).sort().values)
