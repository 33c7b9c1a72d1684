"""CIFAR-100 with 40 % of the labels redrawn, WRN-28-10, 120 epochs (Table 2).

    autoweight compare cifar100-noise-wide --data-dir DIR --device cuda --strategy FILE

Cost      on one NVIDIA H200: a training with law 8.6 minutes, with cifar100-noise's strategy; the others have not run.
Expect    law 68.7 %; the paper has 68.2, and 53.1 without weighting.
"""

from dataclasses import replace

from autoweight.config import RunConfig
from autoweight.recipes.cifar_settings import NOISE_DATA_100, NOISE_SEARCH_100, PAPER_TRAINING

RECIPE = RunConfig(
    recipe="cifar100-noise-wide",
    data=NOISE_DATA_100,
    network="wrn_28_10",
    training=replace(PAPER_TRAINING, epochs=120, drop_stages=(18, 19)),
    search=replace(NOISE_SEARCH_100, episode_share=1.0),  # its learning rate falls late
    methods=("uniform", "law", "focal", "self_paced"),
    side_by_side=2,
)
