"""`autoweight.integrations.sklearn`, for short."""

from autoweight.integrations.sklearn import AutoWeightClassifier, sample_weights

__all__ = ["AutoWeightClassifier", "sample_weights"]
