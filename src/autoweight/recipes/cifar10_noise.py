"""CIFAR-10 with 40 % of the labels redrawn, ResNet-18, 200 epochs (Table 1).

    autoweight search cifar10-noise --data-dir DIR --device cuda
    autoweight compare cifar10-noise --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: search 4.5 minutes, each of four trainings side by side 2.3.
Expect    uniform 69.7 %, constant 84.0, law 89.0 and 88.6 by two searches, oracle 92.1; the paper has 79.4 and 86.3
          with LAW.
"""

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import NOISE_DATA, NOISE_SEARCH, PAPER_TRAINING

RECIPE = RunConfig(
    recipe="cifar10-noise",
    data=NOISE_DATA,
    network="resnet18",
    training=PAPER_TRAINING,
    search=NOISE_SEARCH,
    methods=("uniform", "law", "constant", "oracle"),
    side_by_side=4,
)
