"""One training over ranks: each takes its part of every batch, weighs it within the whole, and all step alike."""

import warnings
from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from autoweight.config import Augmentation
from autoweight.data import Labelled
from autoweight.data.loader import EpochPlan, Loader
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.data.threads import one_thread
from autoweight.distributed import weigh_global
from autoweight.errors import UserError, require
from autoweight.methods.method import Method, Weighted
from autoweight.ranks import ALONE, Ranks
from autoweight.strategy import Weigher
from autoweight.training.task import Task


class PartLoader(Loader):
    """A rank's part of the batches that one process would see, in the same order."""

    def __init__(self, samples: Labelled, batch_size: int, seed: int, augmentation: Augmentation, ranks: Ranks) -> None:
        super().__init__(samples, batch_size, seed, augmentation)
        size = batch_size // ranks.size
        self.part = slice(ranks.rank * size, (ranks.rank + 1) * size)

    @one_thread()
    def draw(self, epoch: int) -> EpochPlan:
        """The rank's columns of an epoch's plan."""
        return EpochPlan(*(column[:, self.part].contiguous() for column in super().draw(epoch)))


class StreamedPartLoader(PartLoader, StreamedLoader):
    """The same of samples that are read as they come: a rank reads its own alone."""


def make_loader(
    samples: Labelled, batch_size: int, seed: int, augmentation: Augmentation, ranks: Ranks = ALONE
) -> Loader:
    """Batches of samples in memory or of a stream; where there are several ranks, this one's part of each."""
    streamed = isinstance(samples, Streamed)
    if ranks.size == 1:
        return (StreamedLoader if streamed else Loader)(samples, batch_size, seed, augmentation)
    return (StreamedPartLoader if streamed else PartLoader)(samples, batch_size, seed, augmentation, ranks)


class GlobalWeigher(Weigher):
    """Weighs a rank's part of a batch as the weigher weighs the whole; every rank keeps the whole memory."""

    def __init__(self, weigher: Weigher) -> None:
        self.weigher, self.tasks = weigher, weigher.tasks

    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The part's weights."""
        return weigh_global(self.weigher, losses, logits, labels, progress, indices)

    def reserve(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:
        """Make room in the weigher."""
        self.weigher.reserve(num_samples, num_classes, device)

    def tensors(self) -> dict[str, Tensor]:
        """The weigher's."""
        return self.weigher.tensors()


def weigher_of(method: Method) -> Weigher | None:
    """The weigher of a method that has one; where ranks share a training, the one that weighs the whole batch."""
    weigher = method.weigher if isinstance(method, Weighted) else None
    return weigher.weigher if isinstance(weigher, GlobalWeigher) else weigher


def check_split(name: str, method: Method | None, batch_size: int, ranks: Ranks) -> None:
    """Raise `UserError` where a training cannot be split over these ranks."""
    require(
        batch_size % ranks.size == 0,
        f"a batch of {batch_size} samples does not divide evenly over {ranks.size} ranks: change training.batch_size.",
    )
    if ranks.size > 1 and method is not None and not isinstance(method, Weighted):
        raise UserError(
            f"{name} trains by steps of its own, which cannot be split over ranks: train it in one process, or let "
            "compare deal whole trainings to ranks."
        )


def global_method(method: Method | None) -> Method | None:
    """The method that weighs a rank's part of a batch within the whole."""
    if not isinstance(method, Weighted) or method.weigher is None:
        return method
    whole = copy(method)
    whole.weigher = GlobalWeigher(method.weigher)
    return whole


def synchronised(model: nn.Module, device: torch.device) -> nn.Module:
    """The network with batch statistics over all ranks, where PyTorch can: on GPUs."""
    if not any(isinstance(layer, _BatchNorm) for layer in model.modules()):
        return model
    if device.type == "cuda":
        synced: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        return synced
    warnings.warn(
        "on CPUs, batch norm sees each rank's part of a batch alone: statistics differ a little.", stacklevel=2
    )
    return model


def replica(model: nn.Module) -> nn.Module:
    """The network as one of several whose gradients are averaged at every backward pass."""
    return DistributedDataParallel(model)


def global_mean(task: Task, ranks: Ranks, may_skip: bool = False) -> Callable[[Tensor, Tensor | None, Tensor], Tensor]:
    """The mean for each rank's part of a batch: averaged over the ranks, these are the mean over the whole batch.

    Ranks can have different numbers of samples that count: where some labels do not, or where a stream `may_skip`
    samples that cannot be read.
    """
    if task.counts is None and not may_skip:
        return task.mean
    counts = task.counts or (lambda labels: labels.new_ones(len(labels), dtype=torch.bool))

    def mean(losses: Tensor, weights: Tensor | None, labels: Tensor) -> Tensor:
        own = counts(labels).sum().clamp(min=1).to(losses.dtype)
        whole = own.clone() * counts(labels).any()
        dist.all_reduce(whole)
        return task.mean(losses, weights, labels) * own * ranks.size / whole.clamp(min=1)

    return mean
