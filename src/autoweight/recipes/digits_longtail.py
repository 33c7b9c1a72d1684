"""Digits with a long tail: class sizes fall geometrically, the first class 25 times the last.

autoweight compare digits-longtail --methods uniform,class_balanced,focal --seeds 5
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig

RECIPE = RunConfig(
    recipe="digits-longtail",
    data=DataConfig(imbalance="longtail", imbalance_factor=25.0),
    training=TrainingConfig(),
    search=SearchConfig(features=("loss", "entropy", "label")),
    methods=("uniform", "class_balanced", "focal"),
)
