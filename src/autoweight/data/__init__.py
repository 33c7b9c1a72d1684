"""Data sets by name. A new one is a file here and a line in `DATASETS`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from autoweight.config import DataConfig
from autoweight.data.cifar import cifar10, cifar100
from autoweight.data.cifar_human import cifar10n_aggre, cifar10n_random1, cifar10n_worse, cifar100n
from autoweight.data.convert import as_samples
from autoweight.data.corruptions import corrupt
from autoweight.data.dataset import Samples, check_training_data
from autoweight.data.digits import digits
from autoweight.data.image_folder import image_folder
from autoweight.data.splits import stratified_split
from autoweight.errors import unknown

__all__ = ["DATASETS", "Pool", "Samples", "Splits", "as_samples", "check_training_data", "load_pool"]

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


class Splits(NamedTuple):
    """Parts of a data set; only the training part's labels may be wrong and its classes rare.

    They are disjoint, but for final trainings with `train_on_all`, whose training part holds the validation part's
    samples too.
    """

    train: Samples
    val: Samples
    test: Samples


class Pool(NamedTuple):
    """A data set as it was read: the samples to train and validate on, and those to test on."""

    samples: Samples
    test: Samples

    def splits(self, config: DataConfig, seed: int, *, final: bool = False) -> Splits:
        """The set's own test part, and a training and validation part that depend on the seed.

        For a `final` training of a set with `train_on_all`, the training part is everything but the test part; the
        validation part, with its true labels, then only shows how the training goes.
        """
        train, val, _ = stratified_split(self.samples, (config.train_size, config.val_size), seed)
        chosen = self.samples if final and config.train_on_all else train
        return Splits(corrupt(chosen, config, seed), val.trusted(), self.test)


def load_pool(config: DataConfig) -> Pool:
    """Read a data set."""
    if config.dataset not in DATASETS:
        raise unknown("data set", config.dataset, DATASETS)
    return Pool(*DATASETS[config.dataset](Path(config.folder) if config.folder else None))
