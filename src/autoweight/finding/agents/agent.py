"""The seam between Algorithm 2 and what learns: an agent proposes strategy parameters and is told their rewards."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor


class Transition(NamedTuple):
    """(s_T, theta_T, r_T, s_T+1, Done) of all workers at one stage, `[workers, ...]`."""

    state: Tensor
    strategy_params: Tensor
    reward: Tensor
    next_state: Tensor
    done: bool


class Agent(ABC):
    """Proposes strategy parameters for every worker and stage; worker 0 runs the agent's best guess."""

    @abstractmethod
    def begin_episode(self, progress: float, explore: bool = True) -> None:
        """Draw what this episode tries; `progress` is the fraction of the search done.

        Without `explore`, all workers run the best guess.
        """

    @abstractmethod
    def act(self, stage: int, state: Tensor) -> Tensor:
        """Strategy parameters `[workers, P]` for a stage, from the workers' states `[workers, 3]`."""

    def learn(self, transition: Transition) -> None:  # noqa: B027 - most agents learn from whole episodes
        """Take in a finished stage, and learn from all that was seen."""

    @abstractmethod
    def end_episode(self, returns: Tensor) -> None:
        """Take in every worker's return, `[workers]`; NaN where its training blew up."""

    def state_dict(self) -> dict[str, Any]:
        """All that the agent's later proposals depend on, as tensors, numbers and lists."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - some agents keep nothing
        """Take back what `state_dict` gave."""


class TableAgent(Agent):
    """Draws whole tables when an episode begins, whatever the states will be."""

    tables: Tensor
    """Every worker's strategy parameters in this episode, `[workers, stages, P]`."""

    def act(self, stage: int, state: Tensor) -> Tensor:
        """The stage's row of each worker's table."""
        return self.tables[:, stage]
