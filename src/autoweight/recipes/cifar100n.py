"""CIFAR-100N: real noise, the human labels (40 % wrong), ResNet-18, 200 epochs.

    autoweight search cifar100n --data-dir DIR --device cuda
    autoweight compare cifar100n --data-dir DIR --device cuda --strategy FILE

Cost      as cifar100-noise. CIFAR-100_human.pt has to be in DIR too.
Expect    not measured yet.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import NOISE_DATA_100, NOISE_SEARCH_100, PAPER_TRAINING

RECIPE = RunConfig(
    recipe="cifar100n",
    data=replace(NOISE_DATA_100, dataset="cifar100n", noise="none", noise_rate=0.0),
    network="resnet18",
    training=PAPER_TRAINING,
    search=NOISE_SEARCH_100,
    methods=("uniform", "law", "constant", "oracle"),
    side_by_side=4,
)
