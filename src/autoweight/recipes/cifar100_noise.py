"""CIFAR-100 with 40 % of the labels redrawn, ResNet-18, 200 epochs (Table 1).

    autoweight search cifar100-noise --data-dir DIR --device cuda
    autoweight compare cifar100-noise --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: search 4.5 minutes, each of three trainings side by side 2.2.
Expect    uniform 43.4 %, law 63.7, oracle 67.7; the paper has 55.2 and 61.3 with LAW.
"""

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import NOISE_DATA_100, NOISE_SEARCH_100, PAPER_TRAINING

RECIPE = RunConfig(
    recipe="cifar100-noise",
    data=NOISE_DATA_100,
    network="resnet18",
    training=PAPER_TRAINING,
    search=NOISE_SEARCH_100,
    methods=("uniform", "law", "constant", "oracle"),
    side_by_side=4,
)
