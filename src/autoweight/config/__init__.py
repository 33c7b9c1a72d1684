"""Typed settings by what they set. `files.py` reads and writes them as YAML; `presets.py` names some of a search."""

from autoweight.config.data import TEXT_BUCKETS, Augmentation, BadSamples, DataConfig, Imbalance, Noise
from autoweight.config.run import Command, Knob, RunConfig, TaskConfig
from autoweight.config.search import (
    ActorCriticConfig,
    AgentName,
    CmaesConfig,
    Feature,
    LabelFeature,
    Reward,
    SearchConfig,
    TrustRegionConfig,
)
from autoweight.config.training import (
    IGNORED,
    OptimizerName,
    Precision,
    Schedule,
    TaskName,
    TrainingConfig,
)

__all__ = [
    "IGNORED",
    "TEXT_BUCKETS",
    "ActorCriticConfig",
    "AgentName",
    "Augmentation",
    "BadSamples",
    "CmaesConfig",
    "Command",
    "DataConfig",
    "Feature",
    "Imbalance",
    "Knob",
    "LabelFeature",
    "Noise",
    "OptimizerName",
    "Precision",
    "Reward",
    "RunConfig",
    "Schedule",
    "SearchConfig",
    "TaskConfig",
    "TaskName",
    "TrainingConfig",
    "TrustRegionConfig",
]
