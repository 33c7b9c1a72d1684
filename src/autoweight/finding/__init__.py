"""How a strategy is found."""

from autoweight.finding.find import SearchJob, prepare_search, search
from autoweight.finding.outcomes import Progress
from autoweight.finding.tasks import SearchTask

__all__ = ["Progress", "SearchJob", "SearchTask", "prepare_search", "search"]
