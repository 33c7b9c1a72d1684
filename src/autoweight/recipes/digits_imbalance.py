"""Digits with two rare classes: 0 and 1 cut to 4 % of their size, as the paper cuts CIFAR-10.

    autoweight search digits-imbalance --out found
    autoweight compare digits-imbalance --methods uniform,law --seeds 5 --strategy found/strategy.safetensors

The decay is there to make weighting matter: a network that fits everything pays little heed to weights, and without
decay plain training does better too (docs/search.md).
"""

from dataclasses import replace

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import rare

RECIPE = RunConfig(
    recipe="digits-imbalance",
    data=DataConfig(imbalance="step", imbalance_factor=25.0),
    training=TrainingConfig(epochs=40, batch_size=32, learning_rate=0.05, weight_decay=1e-2),
    search=replace(rare(SearchConfig()), features=("label",), label_feature="class_frequency"),
    methods=("uniform", "class_balanced", "focal"),
)
