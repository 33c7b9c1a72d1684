"""Today's training beside the paper's: CIFAR with ResNet-18, SGD with Nesterov, decay 5e-4, cosine, 100 epochs.

    autoweight compare cifar10-today-0.4 --data-dir DIR --device cuda --methods uniform,auto,oracle
    autoweight search cifar10-today-0.4 --data-dir DIR --device cuda

One recipe for each kind of wrong label. Add `--network resnet34` to compare with published figures, most of which are
that network's.

Cost      on one NVIDIA H200: each of four trainings side by side about 1.2 minutes.
Expect    docs/results.md.
"""

from dataclasses import replace

from autoweight.config import DataConfig, RunConfig, TrainingConfig
from autoweight.recipes.cifar_settings import NOISE_DATA, TODAY_SEARCH

TRAINING = TrainingConfig(
    epochs=100,
    batch_size=128,
    nesterov=True,
    weight_decay=5e-4,
    schedule="cosine",
    average=0.999,
    precision="bfloat16",
    compile=True,
)

_CIFAR10 = replace(NOISE_DATA, dataset="cifar10", noise="none", noise_rate=0.0, train_size=10_000)


def _noisy(kind: str, rate: float, dataset: str = "cifar10") -> DataConfig:
    return replace(_CIFAR10, dataset=dataset, noise=kind, noise_rate=rate)  # type: ignore[arg-type]


_DATA: dict[str, tuple[str, DataConfig]] = {
    "cifar10-today-clean": ("CIFAR-10 as it is", _CIFAR10),
    "cifar10-today-0.2": ("CIFAR-10, 20 % of the labels redrawn", _noisy("uniform", 0.2)),
    "cifar10-today-0.4": ("CIFAR-10, 40 % of the labels redrawn", _noisy("uniform", 0.4)),
    "cifar10-today-0.6": ("CIFAR-10, 60 % of the labels redrawn", _noisy("uniform", 0.6)),
    "cifar10-today-0.8": ("CIFAR-10, 80 % of the labels redrawn", _noisy("uniform", 0.8)),
    "cifar10-today-other-0.4": ("CIFAR-10, 40 % of the labels another class", _noisy("uniform_other", 0.4)),
    "cifar10-today-asymmetric-0.4": ("CIFAR-10, 40 % of alike classes confused", _noisy("cifar10_asymmetric", 0.4)),
    "cifar100-today-clean": ("CIFAR-100 as it is", replace(_CIFAR10, dataset="cifar100")),
    "cifar100-today-0.4": ("CIFAR-100, 40 % of the labels redrawn", _noisy("uniform", 0.4, "cifar100")),
    "cifar100-today-other-0.4": ("CIFAR-100, 40 % another class", _noisy("uniform_other", 0.4, "cifar100")),
    "cifar10n-today-aggregate": ("CIFAR-10N, majority of three people", replace(_CIFAR10, dataset="cifar10n_aggre")),
    "cifar10n-today-random1": ("CIFAR-10N, the first person", replace(_CIFAR10, dataset="cifar10n_random1")),
    "cifar10n-today-worst": ("CIFAR-10N, a wrong label where there is one", replace(_CIFAR10, dataset="cifar10n")),
}

RECIPES: dict[str, tuple[str, RunConfig]] = {
    name: (
        f"{about}, ResNet-18, today's training.",
        RunConfig(
            recipe=name,
            data=data,
            network="resnet18",
            training=TRAINING,
            search=TODAY_SEARCH,
            methods=("uniform", "auto", "oracle"),
            side_by_side=4,
        ),
    )
    for name, (about, data) in _DATA.items()
}
