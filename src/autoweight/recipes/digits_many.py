"""Digits five times: no wrong label, 20, 40 and 60 % of labels redrawn, and a long tail, for one strategy for all.

    autoweight search digits-many --out found
    autoweight compare digits-many --methods uniform,law,auto,oracle --seeds 5 --strategy found/strategy.safetensors

`train` and `compare` see the recipe's own task, 40 %; `--data.noise-rate` makes it another. A search trains on all five
at once, and is rewarded by the share of the gap between no weighting and an oracle; where nothing is to be won, a loss
counts double. The long tail trains as digits-longtail does.
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TaskConfig, TrainingConfig
from autoweight.recipes import digits_longtail

RECIPE = RunConfig(
    recipe="digits-many",
    data=DataConfig(noise="uniform", noise_rate=0.4),
    training=TrainingConfig(),
    tasks=(
        TaskConfig(DataConfig()),
        TaskConfig(DataConfig(noise="uniform", noise_rate=0.2)),
        TaskConfig(DataConfig(noise="uniform", noise_rate=0.6)),
        TaskConfig(digits_longtail.RECIPE.data, training=digits_longtail.RECIPE.training),
    ),
    search=SearchConfig(
        features=("margin",),
        start={"margin": 4.0},
        warmup_stages=0,
        within_class=True,
        num_workers=11,
        num_episodes=6,
        choice_rounds=2,
    ),
    methods=("uniform", "auto", "oracle"),
)
