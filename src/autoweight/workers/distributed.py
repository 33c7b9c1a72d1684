"""Networks dealt over ranks: each rank trains its own with local workers, and all get every network's outcome."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from autoweight.data.loader import Loader
from autoweight.ranks import Ranks
from autoweight.workers.base import StageOutcome, Workers


class DistributedWorkers(Workers):
    """Slots, references included, are dealt to the ranks in turn.

    How a slot trains does not depend on which others train beside it, so the outcome does not depend on the number of
    ranks. As long as the networks of a group are equal, every rank trains the few that stand for all: it needs them.
    """

    def __init__(self, local: Workers, ranks: Ranks) -> None:
        here = replace(local.problem, train=local.train, val=local.val)  # on their device already
        super().__init__(here, local.num_workers, local.num_starts)
        self.local, self.ranks = local, ranks
        self.run_beside_the_host = local.run_beside_the_host
        self.loaders, self.head_loaders = local.loaders, local.head_loaders
        own = self.own_slots[ranks.rank :: ranks.size]
        repeats = max(local.fewest_slots // len(own), 1)  # a slot that is trained twice comes to the same
        self.own_slots = local.own_slots = own.repeat(repeats)

    def run_stage(
        self, stage: int, strategy_params: Tensor, meanwhile: Callable[[], Any] = lambda: None
    ) -> StageOutcome:
        """Train all networks through a stage with the first rank's parameters: other processors may round otherwise."""
        return super().run_stage(stage, self.ranks.share(strategy_params), meanwhile)

    def agreed(self, stop: bool) -> bool:
        """The first rank's answer."""
        return self.ranks.share(stop)

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.local.group_of_slot = self.group_of_slot
        self.local._start_networks(starts)

    def _copy_networks(self, slots: Tensor) -> None:
        self.local.group_of_slot = slots[self.own_slots]
        self.local._copy_networks(self.local.group_of_slot)

    def _train(self, stage: int, strategy_params: Tensor, loaders: list[Loader]) -> Tensor:
        self.network_steps += len(strategy_params) * (self.stage_starts[stage + 1] - self.stage_starts[stage])
        own = strategy_params if self._all_equal else strategy_params[self.own_slots.to(strategy_params.device)]
        return self.local._train(stage, own, loaders)

    def _evaluate(self) -> Tensor:
        return self.local._evaluate()

    def _of_all_slots(self, losses: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        if self._all_equal:
            return losses, scores
        of_ranks = self.ranks.gather((self.own_slots, torch.stack([losses, scores])))
        slots, outcomes = (torch.cat(column, dim=-1) for column in zip(*of_ranks, strict=True))
        everywhere = torch.empty(2, self.num_workers + self.num_starts)
        everywhere[:, slots] = outcomes
        return everywhere[0], everywhere[1]
