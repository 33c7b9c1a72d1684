"""What a strategy is: features of samples, the weight function, stages, and the file that holds it all."""

from autoweight.strategy.rule import Rule
from autoweight.strategy.strategy import Strategy
from autoweight.strategy.view import check_batch
from autoweight.strategy.weigher import Weigher, weighted_mean

__all__ = ["Rule", "Strategy", "Weigher", "check_batch", "weighted_mean"]
