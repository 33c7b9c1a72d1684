"""Digits with wrong labels: 40 % of the training labels redrawn uniformly (36 % wrong), an MLP that memorises them.

autoweight compare digits-noise --methods uniform,oracle,focal,self_paced --seeds 5
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import noise

RECIPE = RunConfig(
    recipe="digits-noise",
    data=DataConfig(noise="uniform", noise_rate=0.4),
    training=TrainingConfig(),
    search=noise(SearchConfig(num_workers=11, num_episodes=6, choice_rounds=2)),  # more find nothing better here
    methods=("uniform", "constant", "focal", "self_paced", "oracle"),
)
