"""`autoweight.integrations.skorch`, for short."""

from autoweight.integrations.skorch import WeightedNetClassifier, WeightedNetRegressor

__all__ = ["WeightedNetClassifier", "WeightedNetRegressor"]
