"""Digits with two rare classes: 0 and 1 cut to 4 % of their size, as the paper cuts CIFAR-10.

autoweight compare digits-imbalance --methods uniform,class_balanced,focal --seeds 5
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig

RECIPE = RunConfig(
    recipe="digits-imbalance",
    data=DataConfig(imbalance="step", imbalance_factor=25.0),
    training=TrainingConfig(),
    search=SearchConfig(features=("loss", "entropy", "label")),
    methods=("uniform", "class_balanced", "focal"),
)
