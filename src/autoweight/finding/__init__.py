"""How a strategy is found."""

from autoweight.finding.find import SearchJob, prepare_search, search
from autoweight.finding.loop import Progress

__all__ = ["Progress", "SearchJob", "prepare_search", "search"]
