"""CIFAR-100 with a long tail, the first class 100 times the last, ResNet-32, 100 epochs (Table 5).

    autoweight search cifar100-longtail --data-dir DIR --device cuda
    autoweight compare cifar100-longtail --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200, reckoned from measured steps: search 5 minutes, each training a quarter of one.
Expect    not measured yet; the paper has 40.2 % with class-balanced weights and 43.6 with LAW.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import PAPER_TRAINING, RARE_DATA, RARE_SEARCH

RECIPE = RunConfig(
    recipe="cifar100-longtail",
    data=replace(RARE_DATA, dataset="cifar100", imbalance="longtail", imbalance_factor=100.0),
    network="resnet32",
    training=replace(PAPER_TRAINING, epochs=100, drop_stages=(14, 18)),
    search=replace(RARE_SEARCH, episode_share=1.0),  # its learning rate falls late
    methods=("uniform", "law", "class_balanced", "focal"),
    side_by_side=4,
)
