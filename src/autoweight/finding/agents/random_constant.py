"""Random search for one theta: the yardstick that every search must beat at the same cost."""

from typing import Any

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.errors import require
from autoweight.finding.agents.agent import Agent
from autoweight.strategy import Rule


class RandomConstant(Agent):
    """Proposes parameters drawn uniformly from the box and keeps them through the episode; worker 0 runs the best."""

    def __init__(self, search: SearchConfig, rule: Rule, num_stages: int, seed: int) -> None:
        require(search.num_workers > 1, "the constant agent needs at least 2 workers.")
        self.num_workers = search.num_workers
        self.bounds = bounds = rule.bounds
        self.generator = torch.Generator().manual_seed(seed)
        self.best = torch.zeros(len(bounds))
        self.best_return = float("-inf")
        self.strategy_params = torch.zeros(self.num_workers, len(bounds))

    def begin_episode(self, progress: float, explore: bool = True) -> None:
        """Draw from the box."""
        drawn = 2 * torch.rand(self.num_workers, len(self.bounds), generator=self.generator) - 1
        self.strategy_params = drawn * self.bounds
        self.strategy_params[: 1 if explore else None] = self.best

    def act(self, stage: int, state: Tensor) -> Tensor:
        """The same parameters at every stage."""
        return self.strategy_params

    def end_episode(self, returns: Tensor) -> None:
        """Keep the best."""
        explored = returns.nan_to_num(nan=float("-inf"))
        winner = int(explored.argmax())
        if float(explored[winner]) > self.best_return:
            self.best, self.best_return = self.strategy_params[winner].clone(), float(explored[winner])

    def state_dict(self) -> dict[str, Any]:
        """The best so far and the random state."""
        return {"best": self.best, "best_return": self.best_return, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.best, self.best_return = state["best"], state["best_return"]
        self.generator.set_state(state["generator"])
