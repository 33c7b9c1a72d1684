"""Data sets by name. A new one is a file here and a line in `DATASETS`; each returns all its samples, in one order."""

from collections.abc import Callable
from typing import NamedTuple

from autoweight.config import DataConfig
from autoweight.data.corruptions import asymmetric_noise, long_tail, step_imbalance, uniform_noise
from autoweight.data.dataset import Samples, as_samples, check_training_data
from autoweight.data.digits import digits
from autoweight.data.splits import stratified_split
from autoweight.errors import unknown

__all__ = ["DATASETS", "Samples", "Splits", "as_samples", "check_training_data", "load_splits"]

DATASETS: dict[str, Callable[[], Samples]] = {
    "digits": digits,
}

_TEST_SEED = 0  # the test part is the same for every seed: no search or choice ever sees it


class Splits(NamedTuple):
    """Disjoint parts of a data set; only the training part's labels may be wrong and its classes rare."""

    train: Samples
    val: Samples
    test: Samples


def load_splits(config: DataConfig, seed: int) -> Splits:
    """The data of a run: a fixed test part, and a training and validation part that depend on the seed."""
    if config.dataset not in DATASETS:
        raise unknown("data set", config.dataset, DATASETS)
    samples = DATASETS[config.dataset]()
    pool, test = stratified_split(samples, (config.train_size + config.val_size,), _TEST_SEED)
    train, val, _ = stratified_split(pool, (config.train_size, config.val_size), seed)
    return Splits(corrupt(train, config, seed), val, test)


def corrupt(train: Samples, config: DataConfig, seed: int) -> Samples:
    """The training part with the configured bias: rare classes first, then wrong labels."""
    match config.imbalance:
        case "step":
            train = step_imbalance(train, config.rare_classes, config.imbalance_factor, seed)
        case "longtail":
            train = long_tail(train, config.imbalance_factor, seed)
    match config.noise:
        case "uniform":
            train = uniform_noise(train, config.noise_rate, seed)
        case "uniform_other":
            train = uniform_noise(train, config.noise_rate, seed, redraw_true=False)
        case "asymmetric":
            train = asymmetric_noise(train, config.noise_rate, seed)
    return train
