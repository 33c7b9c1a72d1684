"""Digits with a long tail: class sizes fall geometrically, the first class 50 times the last.

    autoweight search digits-longtail --out found
    autoweight compare digits-longtail --methods uniform,law --seeds 5 --strategy found/strategy.safetensors

The decay is there to make weighting matter: a network that fits everything pays little heed to weights, and without
decay plain training does better too (docs/search.md).
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import rare

RECIPE = RunConfig(
    recipe="digits-longtail",
    data=DataConfig(imbalance="longtail", imbalance_factor=50.0),
    training=TrainingConfig(epochs=40, batch_size=32, learning_rate=0.05, weight_decay=1e-2),
    search=rare(SearchConfig()),
    methods=("uniform", "class_balanced", "focal"),
)
