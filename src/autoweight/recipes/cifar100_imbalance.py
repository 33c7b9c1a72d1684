"""CIFAR-100 with classes 0 to 9 cut to 50 images, ResNet-18 (or --network vgg19), 200 epochs (Table 4).

    autoweight search cifar100-imbalance --data-dir DIR --device cuda
    autoweight compare cifar100-imbalance --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200, reckoned from measured steps: search 4 minutes, each training 2.2.
Expect    not measured yet; the paper has 60.2 % without weighting and 61.9 with LAW.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import IMBALANCE_SEARCH, PAPER_TRAINING, RARE_DATA

RECIPE = RunConfig(
    recipe="cifar100-imbalance",
    data=replace(
        RARE_DATA,
        dataset="cifar100",
        train_size=7_500,
        imbalance="step",
        imbalance_factor=10.0,
        rare_classes=tuple(range(10)),
    ),
    network="resnet18",
    training=PAPER_TRAINING,
    search=IMBALANCE_SEARCH,
    methods=("uniform", "law", "class_balanced", "focal"),
    side_by_side=4,
)
