"""CIFAR-10 with classes 0 and 1 cut to 200 images, ResNet-18 (or --network vgg19), 200 epochs (Table 4).

    autoweight search cifar10-imbalance --data-dir DIR --device cuda
    autoweight compare cifar10-imbalance --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: search 3.9 minutes beside a training; each of three trainings side by side 1.8.
Expect    ResNet-18: uniform 86.7 %, law 87.9, class_balanced 88.1; VGG-19: uniform 84.1, law 85.6; one training each.
          The paper has 85.9 without weighting and 88.4 with LAW, and 84.9 and 85.3.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import IMBALANCE_SEARCH, PAPER_TRAINING, RARE_DATA

RECIPE = RunConfig(
    recipe="cifar10-imbalance",
    data=replace(
        RARE_DATA,
        dataset="cifar10",
        train_size=5_000,
        imbalance="step",
        imbalance_factor=25.0,
        rare_classes=(0, 1),
    ),
    network="resnet18",
    training=PAPER_TRAINING,
    search=IMBALANCE_SEARCH,
    methods=("uniform", "law", "class_balanced", "focal"),
    side_by_side=4,
)
