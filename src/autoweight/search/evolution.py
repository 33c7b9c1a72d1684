"""CMA-ES over a smooth table: a few knots, linear between them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from autoweight.errors import UserError, require
from autoweight.search.agent import Agent
from autoweight.search.smooth import interpolate


class Evolution(Agent):
    """Proposes tables drawn by CMA-ES; worker 0 runs the distribution's mean."""

    def __init__(
        self,
        num_workers: int,
        episode_stages: int,
        warmup_stages: int,
        bounds: Tensor,
        knots: int,
        sigma: float,
        seed: int,
    ) -> None:
        try:
            from cmaes import CMA
        except ImportError as error:
            raise UserError("the cmaes agent needs a package: pip install 'autoweight[search]'.") from error
        size = knots * len(bounds)
        box = np.tile([-1.0, 1.0], (size, 1))
        require(num_workers > 4, f"the cmaes agent needs at least 5 workers, but has {num_workers}.")
        self.cma = CMA(np.zeros(size), sigma, bounds=box, population_size=num_workers - 1, seed=seed)
        self.episode_stages, self.warmup_stages = episode_stages, warmup_stages
        self.bounds, self.knots = bounds, knots
        self.told: list[list[float]] = []
        self.points: list[Any] = []

    def begin_episode(self, progress: float) -> None:
        """Draw a population."""
        self.points = [self.cma.ask() for _ in range(self.cma.population_size)]
        mean = np.clip(self.cma.mean, -1, 1)
        self.tables = self._tables(np.stack([mean, *self.points]))

    def act(self, stage: int, state: Tensor) -> Tensor:
        """The row of each worker's table."""
        return self.tables[:, stage]

    def end_episode(self, returns: Tensor) -> None:
        """Tell CMA-ES the returns; a training that blew up counts as the worst."""
        explored = returns[1:]
        worst = float(explored[explored.isfinite()].min()) if bool(explored.isfinite().any()) else 0.0
        self._tell(explored.nan_to_num(nan=worst).tolist())

    def _tell(self, returns: list[float]) -> None:
        self.told.append(returns)
        self.cma.tell([(point, -value) for point, value in zip(self.points, returns, strict=True)])

    def _tables(self, points: np.ndarray[Any, Any]) -> Tensor:
        values = torch.as_tensor(points, dtype=torch.float32).view(len(points), self.knots, -1) * self.bounds
        return interpolate(values, self.episode_stages, self.warmup_stages)

    def state_dict(self) -> dict[str, Any]:
        """What CMA-ES was told; asking and telling again rebuilds it."""
        return {"told": self.told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Live through the search again, without the trainings."""
        for returns in state["told"]:
            self.points = [self.cma.ask() for _ in range(self.cma.population_size)]
            self._tell(returns)
