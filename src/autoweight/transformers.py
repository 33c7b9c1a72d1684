"""`autoweight.integrations.transformers`, for short."""

from autoweight.integrations.transformers import WeightedTrainer

__all__ = ["WeightedTrainer"]
