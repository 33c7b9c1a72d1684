"""How a strategy is found."""

from autoweight.search.loop import Progress
from autoweight.search.search import check_search, make_agent, search

__all__ = ["Progress", "check_search", "make_agent", "search"]
