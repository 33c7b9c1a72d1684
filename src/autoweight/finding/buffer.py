"""The transition buffer: all transitions of all workers, in the order in which they came."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from autoweight.finding.agents.agent import Transition


class TransitionBatch(NamedTuple):
    """Transitions of any workers and stages, `[n, ...]`."""

    state: Tensor
    strategy_params: Tensor
    reward: Tensor
    next_state: Tensor
    done: Tensor
    rest: Tensor
    """Discounted rewards from this stage to the episode's end; NaN until the episode has ended."""


class Buffer:
    """Transitions in rows, each of which holds one transition of every worker; a `capacity` of 0 keeps all."""

    def __init__(self, capacity: int = 0) -> None:
        self.capacity = capacity
        self.data: TransitionBatch | None = None

    @property
    def rows(self) -> int:
        """How many transitions each worker has in the buffer."""
        return 0 if self.data is None else len(self.data.reward)

    def add(self, transition: Transition) -> None:
        """Append a row; beyond the capacity, the oldest rows go."""
        done = torch.full_like(transition.reward, float(transition.done))
        rest = torch.full_like(transition.reward, float("nan"))
        state, strategy_params, reward, next_state, _ = transition
        parts = (state, strategy_params, reward, next_state, done, rest)
        row = TransitionBatch(*(part.unsqueeze(0) for part in parts))
        rows = [row] if self.data is None else [self.data, row]
        self.data = TransitionBatch(*(torch.cat(columns)[-self.capacity :] for columns in zip(*rows, strict=True)))

    def close_episode(self, stages: int, discount: float) -> None:
        """Fill in the discounted rest of the rewards for the newest `stages` rows."""
        assert self.data is not None
        following = torch.zeros_like(self.data.reward[0])
        for row in reversed(range(max(self.rows - stages, 0), self.rows)):
            following = self.data.reward[row] + discount * following
            self.data.rest[row] = following

    def epoch(self, batch_size: int, generator: torch.Generator) -> Iterator[TransitionBatch]:
        """Every transition exactly once, in mini-batches of `batch_size` from each worker's own shuffled rows."""
        if self.data is None:
            return
        workers = self.data.reward.shape[1]
        order = torch.rand(self.rows, workers, generator=generator).argsort(dim=0)
        for rows in order.split(batch_size):
            yield self._pick(rows)

    def sample(self, batch_size: int, generator: torch.Generator) -> TransitionBatch:
        """A random mini-batch of `batch_size` from each worker, with replacement."""
        assert self.data is not None
        return self._pick(torch.randint(self.rows, (batch_size, self.data.reward.shape[1]), generator=generator))

    def _pick(self, rows: Tensor) -> TransitionBatch:
        """Flattened transitions at `rows` `[batch, workers]`, those of trainings that blew up left out."""
        assert self.data is not None
        workers = torch.arange(rows.shape[1]).expand_as(rows)
        picked = TransitionBatch(*(part[rows, workers].flatten(0, 1) for part in self.data))
        sound = picked.reward.isfinite() & picked.next_state.isfinite().all(dim=-1)
        return picked if bool(sound.all()) else TransitionBatch(*(part[sound] for part in picked))

    def state_dict(self) -> dict[str, Any]:
        """The buffer's content."""
        return {} if self.data is None else self.data._asdict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.data = TransitionBatch(**state) if state else None
