"""CIFAR-10N: real noise, the worst of three human labels a training image (40 % wrong), ResNet-18, 200 epochs.

    autoweight search cifar10n --data-dir DIR --device cuda
    autoweight compare cifar10n --data-dir DIR --device cuda --strategy FILE

Cost      as cifar10-noise. CIFAR-10_human.pt has to be in DIR too.
Expect    not measured yet.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import NOISE_DATA, NOISE_SEARCH, PAPER_TRAINING

RECIPE = RunConfig(
    recipe="cifar10n",
    data=replace(NOISE_DATA, dataset="cifar10n", noise="none", noise_rate=0.0),
    network="resnet18",
    training=PAPER_TRAINING,
    search=NOISE_SEARCH,
    methods=("uniform", "law", "constant", "oracle"),
    side_by_side=4,
)
