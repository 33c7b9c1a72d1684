"""`autoweight.integrations.lightning`, for short."""

from autoweight.integrations.lightning import Weighting

__all__ = ["Weighting"]
