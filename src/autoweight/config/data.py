"""Which data, and what is wrong with them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from autoweight.config.strict import Strict
from autoweight.errors import require

Augmentation = Literal["none", "crop_flip", "resized_crop_flip"]
Noise = Literal["none", "uniform", "uniform_other", "asymmetric", "cifar10_asymmetric"]
Imbalance = Literal["none", "step", "longtail"]
BadSamples = Literal["refuse", "skip"]

TEXT_BUCKETS = 2**14
"""Numbers that words are hashed to; 0 stands for no word."""


@dataclass(frozen=True)
class DataConfig(Strict):
    """Which data, how they are split, and what bias is put into the training part."""

    prefix: ClassVar[str] = "data."

    dataset: str = "digits"
    """Name of the data set; own is that at path."""
    folder: str = ""
    """Where the data set's files are, for sets that are read from files."""
    path: str = ""
    """Your own data: a folder of class folders or of .tar archives, a table (.csv, .tsv, .parquet), .npz arrays, or a
    .txt of texts."""
    label: str = ""
    """Column of a table that holds the labels; by default the one called label, target or class. Several labels of a
    sample, for the task multilabel, are written as a;b."""
    text: str = ""
    """Column of a table that holds texts; the other columns are then left aside."""
    test: str = ""
    """Your own data to test on, as path; by default a part of path is split off."""
    test_share: float = 0.2
    """Share of your own data that is split off to test on, always the same part; 0 tests on what is trained on, which
    tells nothing, but leaves all samples to an audit."""
    trusted: str = ""
    """Your own samples whose labels were checked: a column or array that marks them, a file or folder like path that
    holds them, or a .txt with their file names. They validate; nobody trains on them."""
    image_size: int = 0
    """Side of your own images in pixels, to which they are scaled and cut; 0 takes theirs, 64 at most. Of a streamed
    imagefolder 0 takes 224."""
    stream: bool = False
    """Read images as they come, for those that do not fit into memory: your own, or an imagefolder."""
    workers: int = 0
    """Processes that read streamed images; 0 reads them between the steps."""
    bad_samples: BadSamples = "refuse"
    """Your own images that cannot be read: refuse names one and stops, skip leaves them out and says how many."""
    per_class: int = 0
    """Samples of each class that are drawn first, to train and validate on, as the paper does to search on ImageNet; 0
    takes all. Where train_on_all holds, final trainings have all."""
    train_size: int = 1000
    """Samples to train on, before rare classes are cut; 0 takes all that are left."""
    val_size: int = 250
    """Trusted samples, that searches and choices look at; searches do not train on them. 0 does without; own data that
    name their trusted samples need none."""
    train_on_all: bool = False
    """Final trainings use all samples but the test part, as the paper does; searches keep to train_size."""
    noise: Noise = "none"
    """Wrong labels: uniform (the true class may be drawn again), uniform_other (never), asymmetric (the next class),
    cifar10_asymmetric (truck to automobile, bird to airplane, deer to horse, cat and dog swapped)."""
    noise_rate: float = 0.0
    """Probability that a training label is redrawn."""
    imbalance: Imbalance = "none"
    """Rare classes: step (rare_classes are cut) or longtail (class sizes fall geometrically)."""
    imbalance_factor: float = 1.0
    """Size of the largest class over that of the smallest."""
    rare_classes: tuple[int, ...] = (0, 1)
    """The classes that step imbalance cuts."""
    augmentation: Augmentation = "none"
    """crop_flip shifts training images by up to 4 pixels and flips half of them; resized_crop_flip enlarges a random
    part of each, 8 to 100 % of its area, to its whole size, and flips half of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "imbalance_factor")
        self._require_at_least(0, "per_class", "train_size", "val_size", "image_size", "workers")
        require(0 <= self.test_share < 1, f"data.test_share goes from 0 to below 1, but is {self.test_share}.")
        self._require_share("noise_rate")
        require(
            self.noise != "none" or self.noise_rate == 0,
            f"a data.noise_rate of {self.noise_rate} does nothing while data.noise is none: set one of them.",
        )
        require(
            self.imbalance != "none" or self.imbalance_factor == 1,
            f"a data.imbalance_factor of {self.imbalance_factor:g} does nothing while data.imbalance is none: set one "
            "of them.",
        )
