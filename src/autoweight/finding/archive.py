"""All tables that a search has tried, with their returns, and the best of them as candidates."""

from typing import Any

import torch
from torch import Tensor


class Archive:
    """Tables `[workers, stages, P]` and returns `[workers]` of every episode; worker 0 ran the agent's best guess."""

    def __init__(self) -> None:
        self.tables: list[Tensor] = []
        self.returns: list[Tensor] = []

    @property
    def num_episodes(self) -> int:
        """Episodes tried so far."""
        return len(self.tables)

    @property
    def num_dropped(self) -> int:
        """Trainings that blew up, and so count for nothing."""
        return sum(int(returns.isnan().sum()) for returns in self.returns)

    @property
    def best_guess(self) -> float:
        """The best return of a guess; NaN before the first."""
        guesses = [float(returns[0]) for returns in self.returns if not returns[0].isnan()]
        return max(guesses, default=float("nan"))

    def add(self, tables: Tensor, returns: Tensor) -> None:
        """Take in an episode."""
        self.tables.append(tables)
        self.returns.append(returns)

    def candidates(self, count: int) -> Tensor:
        """The tables that deserve a second look, `[count, stages, P]`: late guesses, the best tries, no weighting.

        One return is mostly luck, and the best of many even more so; the guesses are what the agent made of them all.
        """
        tables, returns = torch.cat(self.tables), torch.cat(self.returns).nan_to_num(nan=float("-inf"))
        guesses = torch.stack([episode[0] for episode in self.tables]).flip(0)[: max(count // 3, 1)]
        best = tables[returns.argsort(descending=True)[: count - 1 - len(guesses)]]
        chosen = torch.cat([guesses, best])[: count - 1]
        nothing = torch.zeros_like(tables[:1]).expand(count - len(chosen), -1, -1)
        return torch.cat([chosen, nothing])

    def state_dict(self) -> dict[str, Any]:
        """The archive's content."""
        return {"tables": self.tables, "returns": self.returns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.tables, self.returns = list(state["tables"]), list(state["returns"])
