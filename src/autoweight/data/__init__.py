"""Data sets by name. A new one is a file here and a line in `DATASETS`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from autoweight.config import DataConfig, TaskName
from autoweight.data.checks import check_training_data
from autoweight.data.cifar import cifar10, cifar100
from autoweight.data.cifar_human import cifar10n_aggre, cifar10n_random1, cifar10n_worse, cifar100n
from autoweight.data.convert import as_samples
from autoweight.data.corruptions import corrupt
from autoweight.data.dataset import Samples
from autoweight.data.digits import digits
from autoweight.data.image_folder import image_folder, image_stream
from autoweight.data.labelled import Labelled
from autoweight.data.own import OWN, load_own
from autoweight.data.splits import some_of_each_class, stratified_split
from autoweight.errors import look_up, require

__all__ = ["DATASETS", "Labelled", "Pool", "Samples", "Splits", "as_samples", "check_training_data", "load_pool"]

# Each reads its files from a folder, if it has any, and returns the samples to train on and those to test on.
DATASETS: dict[str, Callable[[Path | None], tuple[Samples, Samples]]] = {
    "digits": digits,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cifar10n": cifar10n_worse,
    "cifar10n_aggre": cifar10n_aggre,
    "cifar10n_random1": cifar10n_random1,
    "cifar100n": cifar100n,
    "imagefolder": image_folder,
}

# The same for sets that need not fit into memory, where data.stream asks for it.
STREAMS: dict[str, Callable[[DataConfig], tuple[Labelled, Labelled]]] = {"imagefolder": image_stream}


class Splits(NamedTuple):
    """Parts of a data set; only the training part's labels may be wrong and its classes rare.

    They are disjoint, but for final trainings with `train_on_all`, whose training part holds the validation part's
    samples too.
    """

    train: Labelled
    val: Labelled | None
    """Trusted samples, where there are any."""
    test: Labelled

    def to(self, device: str) -> "Splits":
        """The same parts on another device."""
        val = None if self.val is None else self.val.to(device)
        return Splits(self.train.to(device), val, self.test.to(device))


class Pool(NamedTuple):
    """A data set as it was read: the samples to train and validate on, and those to test on."""

    samples: Labelled
    test: Labelled
    trusted: Labelled | None = None
    """Samples to validate on that somebody marked; without, some of `samples` are held out."""
    skipped: Mapping[str, int] = MappingProxyType({})
    """How many could not be read when they were, by part; of streams, that is known later."""

    def splits(self, config: DataConfig, seed: int, *, final: bool = False) -> Splits:
        """The set's own test part, and a training and validation part that depend on the seed.

        For a `final` training of a set with `train_on_all`, the training part is everything but the test part; the
        validation part, with its true labels, then only shows how the training goes.
        """
        samples = self.samples
        if config.per_class and not (final and config.train_on_all):
            samples = some_of_each_class(samples, config.per_class, seed)
        val_size = config.val_size if self.trusted is None else 0
        require(
            val_size < len(samples),
            f"a data.val_size of {val_size} leaves nothing of {len(samples)} samples to train on: lower it.",
        )
        train_size = config.train_size or len(samples) - val_size
        require(
            train_size + val_size <= len(samples),
            f"--data.train-size {train_size} and --data.val-size {val_size} do not fit into {len(samples)} samples: "
            "lower one of them.",
        )
        train, val, _ = stratified_split(samples, (train_size, val_size), seed)
        chosen = self.samples if final and config.train_on_all else train
        trusted = self.trusted or (val.trusted() if val_size else None)
        return Splits(corrupt(chosen, config, seed), trusted, self.test)


def load_pool(config: DataConfig, task: TaskName = "classification") -> Pool:
    """Read a data set, or data of the user's own."""
    if config.dataset == OWN:
        return Pool(*load_own(config, task))
    read = look_up("data set", config.dataset, DATASETS)
    if config.stream:
        require(
            config.dataset in STREAMS,
            f"data.stream is for folders of images ({', '.join(STREAMS)}), but {config.dataset} lies in memory.",
        )
        return Pool(*STREAMS[config.dataset](config))
    return Pool(*read(Path(config.folder) if config.folder else None))
