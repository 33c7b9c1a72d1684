"""CMA-ES over one theta for the whole training, and then over a smooth table: a few knots, linear between them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.errors import UserError
from autoweight.finding.agents.agent import TableAgent
from autoweight.finding.smooth import interpolate
from autoweight.strategy import Rule


class Evolution(TableAgent):
    """Proposes tables drawn by CMA-ES; worker 0 runs the distribution's mean.

    The first episodes, a share of `coarse_share`, have one knot: a good constant is soon found, and stages part from
    there.
    """

    def __init__(self, search: SearchConfig, rule: Rule, num_stages: int, seed: int) -> None:
        config = search.cmaes
        self.episode_stages, self.warmup_stages = search.episode_stages(num_stages), search.warmup_stages
        self.bounds, self.sigma, self.seed = rule.bounds, config.sigma, seed
        self.population_size = search.num_workers - 1
        self.knots = config.knots if search.stagewise else 1
        self.coarse_episodes = round(config.coarse_share * search.num_episodes) if search.stagewise else 0
        self.start = (rule.place(search.start).double() / rule.bounds.double()).numpy()
        self._begin()

    def _begin(self) -> None:
        self.cma = self._cma(np.tile(self.start, 1 if self.coarse_episodes else self.knots), self.sigma)
        self.told: list[list[float]] = []
        self.points: list[Any] = []

    def begin_episode(self, progress: float, explore: bool = True) -> None:
        """Draw a population."""
        mean = np.clip(self.cma.mean, -1, 1)
        if not explore:
            self.tables = self._tables(np.tile(mean, (self.population_size + 1, 1)))
            return
        self.points = [self.cma.ask() for _ in range(self.cma.population_size)]
        self.tables = self._tables(np.stack([mean, *self.points]))

    def end_episode(self, returns: Tensor) -> None:
        """Tell CMA-ES the returns; a training that blew up counts as the worst."""
        explored = returns[1:]
        worst = float(explored[explored.isfinite()].min()) if bool(explored.isfinite().any()) else 0.0
        self._tell(explored.nan_to_num(nan=worst).tolist())

    def _tell(self, returns: list[float]) -> None:
        self.told.append(returns)
        self.cma.tell([(point, -value) for point, value in zip(self.points, returns, strict=True)])
        if len(self.told) == self.coarse_episodes:
            self.cma = self._cma(np.tile(self.cma.mean, self.knots), self.sigma / 2)

    def _cma(self, mean: np.ndarray[Any, Any], sigma: float) -> Any:
        try:
            from cmaes import CMA
        except ImportError as error:
            raise UserError("the cmaes agent needs a package: pip install 'autoweight[search]'.") from error
        box = np.tile([-1.0, 1.0], (len(mean), 1))
        return CMA(np.clip(mean, -1, 1), sigma, bounds=box, population_size=self.population_size, seed=self.seed)

    def _tables(self, points: np.ndarray[Any, Any]) -> Tensor:
        values = torch.as_tensor(points, dtype=torch.float32).view(len(points), -1, len(self.bounds)) * self.bounds
        return interpolate(values, self.episode_stages, self.warmup_stages)

    def state_dict(self) -> dict[str, Any]:
        """The returns that CMA-ES was told: asking and telling it again rebuilds its state."""
        return {"told": self.told, "coarse_episodes": self.coarse_episodes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Ask and tell again, without the trainings; a search that is to be longer keeps its coarse episodes."""
        self.coarse_episodes = state["coarse_episodes"]
        self._begin()
        for returns in state["told"]:
            self.begin_episode(0.0)
            self._tell(returns)
