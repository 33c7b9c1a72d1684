"""Which data, and what is wrong with them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from autoweight.config.strict import Strict
from autoweight.errors import require

Augmentation = Literal["none", "crop_flip"]
Noise = Literal["none", "uniform", "uniform_other", "asymmetric", "cifar10_asymmetric"]
Imbalance = Literal["none", "step", "longtail"]


@dataclass(frozen=True)
class DataConfig(Strict):
    """Which data, how they are split, and what bias is put into the training part."""

    prefix: ClassVar[str] = "data."

    dataset: str = "digits"
    """Name of the data set."""
    folder: str = ""
    """Where the data set's files are, for sets that are read from files."""
    train_size: int = 1000
    """Samples to train on, before rare classes are cut."""
    val_size: int = 250
    """Trusted samples, that searches and choices look at; searches do not train on them."""
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
    """crop_flip shifts training images by up to 4 pixels and flips half of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "train_size", "val_size", "imbalance_factor")
        require(0 <= self.noise_rate <= 1, f"data.noise_rate goes from 0 to 1, but is {self.noise_rate}.")
        require(
            self.noise != "none" or self.noise_rate == 0,
            f"a data.noise_rate of {self.noise_rate} does nothing while data.noise is none: set one of them.",
        )
        require(
            self.imbalance != "none" or self.imbalance_factor == 1,
            f"a data.imbalance_factor of {self.imbalance_factor:g} does nothing while data.imbalance is none: set one "
            "of them.",
        )
