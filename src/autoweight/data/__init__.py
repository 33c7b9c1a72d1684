"""Data sets by name. A new one is a file here and a line in `DATASETS`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from autoweight.config import DataConfig
from autoweight.data.cifar import cifar10, cifar100
from autoweight.data.cifar_human import cifar10n_aggre, cifar10n_random1, cifar10n_worse, cifar100n
from autoweight.data.corruptions import corrupt
from autoweight.data.dataset import Samples, as_samples, check_training_data
from autoweight.data.digits import digits
from autoweight.data.image_folder import image_folder
from autoweight.data.splits import stratified_split
from autoweight.errors import unknown

__all__ = ["DATASETS", "Samples", "Splits", "as_samples", "check_training_data", "load_splits"]

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
    """Disjoint parts of a data set; only the training part's labels may be wrong and its classes rare."""

    train: Samples
    val: Samples
    test: Samples


def load_splits(config: DataConfig, seed: int, *, final: bool = False) -> Splits:
    """The data of a run: the set's own test part, and a training and validation part that depend on the seed.

    For a `final` training of a set with `train_on_all`, the training part is everything but the test part; the
    validation part then only shows how the training goes.
    """
    if config.dataset not in DATASETS:
        raise unknown("data set", config.dataset, DATASETS)
    pool, test = DATASETS[config.dataset](Path(config.folder) if config.folder else None)
    train, val, _ = stratified_split(pool, (config.train_size, config.val_size), seed)
    return Splits(corrupt(pool if final and config.train_on_all else train, config, seed), val.trusted(), test)
