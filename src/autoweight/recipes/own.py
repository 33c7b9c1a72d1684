"""Your own data: a folder of class folders or of .tar, a .csv, .tsv, .parquet, .npz or .txt; nothing is corrupted.

    autoweight train photos/
    autoweight train rows.csv --label COLUMN
    autoweight search texts.csv --text COLUMN --label COLUMN --trusted checked.csv

Cost      some seconds to a minute on two cores.
Expect    auto ahead of uniform where labels are wrong, beside it where they are right.
"""

import re

from autoweight.config import DataConfig, Feature, RunConfig, SearchConfig, TaskName
from autoweight.config.defaults import sensible_training
from autoweight.config.presets import losses, noise

NETWORKS = {
    "images": "strided_cnn",
    "shards": "strided_cnn",
    "table": "mlp",
    "texts": "text_embedding",
    "arrays": "by_shape",
}
"""The network for each kind of data."""
_OF_TOKENS = "token_window"
_OF_CLASSES = ("classification", "tokens")
"""What auto weighs."""
_WITHOUT_ENTROPY = ("regression", "huber")
_MOST_EPOCHS = {"images": 30, "shards": 30, "texts": 30}
"""A CPU takes its time for images, and texts are soon memorised."""


def own_recipe(name: str, kind: str, num_samples: int, data: DataConfig, task: TaskName) -> RunConfig:
    """A run on the user's own data; `auto` is what needs neither trusted samples nor a search."""
    features: tuple[Feature, ...] = ("loss",) if task in _WITHOUT_ENTROPY else ("loss", "entropy")
    search = SearchConfig(features=features, num_workers=11, num_episodes=6, choice_rounds=2)
    return RunConfig(
        recipe=re.sub(r"[^\w.-]", "_", name),
        data=data,
        network=_OF_TOKENS if task == "tokens" else NETWORKS[kind],
        training=sensible_training(num_samples, task, _MOST_EPOCHS.get(kind, 60)),
        search=(noise if task in _OF_CLASSES else losses)(search),
        methods=("auto", "uniform") if task in _OF_CLASSES else ("uniform",),
    )
