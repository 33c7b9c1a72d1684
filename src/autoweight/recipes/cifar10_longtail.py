"""CIFAR-10 with a long tail, the first class 100 times the last, ResNet-32 (Table 5).

    autoweight search cifar10-longtail --data-dir DIR --device cuda
    autoweight compare cifar10-longtail --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: search 4 minutes when alone, each of four trainings side by side one or two.
Expect    71.0 % without weights, 73.5 with class-balanced ones, 77.2 with LAW, and 79.0 with label weights set by hand
          (docs/results-paper.md). The paper has 76.3 with LAW.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import LONGTAIL_SEARCH, LONGTAIL_TRAINING, RARE_DATA

RECIPE = RunConfig(
    recipe="cifar10-longtail",
    data=replace(RARE_DATA, dataset="cifar10", imbalance="longtail", imbalance_factor=100.0),
    network="resnet32",
    training=LONGTAIL_TRAINING,
    search=LONGTAIL_SEARCH,
    methods=("uniform", "law", "class_balanced", "focal"),
    side_by_side=4,
)
