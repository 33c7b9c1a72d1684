"""CIFAR-100 with a long tail, the first class 100 times the last, ResNet-32 (Table 5).

    autoweight search cifar100-longtail --data-dir DIR --device cuda
    autoweight compare cifar100-longtail --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: search 5 minutes beside a training, each of two trainings side by side 1.2.
Expect    41.6 % without weights, 36.3 with class-balanced ones, 45.0 with LAW. The paper has 43.6 with LAW.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import LONGTAIL_SEARCH, LONGTAIL_TRAINING, RARE_DATA

RECIPE = RunConfig(
    recipe="cifar100-longtail",
    data=replace(RARE_DATA, dataset="cifar100", imbalance="longtail", imbalance_factor=100.0),
    network="resnet32",
    training=LONGTAIL_TRAINING,
    search=LONGTAIL_SEARCH,
    methods=("uniform", "law", "class_balanced", "focal"),
    side_by_side=4,
)
