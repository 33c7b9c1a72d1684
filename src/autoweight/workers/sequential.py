"""One network after the other in a plain loop: slow, and the truth that faster workers are tested against."""

import copy

import torch
from torch import Tensor, nn

from autoweight.data.loader import Batch
from autoweight.methods.method import Weighted
from autoweight.training.device import seed_draws
from autoweight.training.evaluate import score
from autoweight.training.steps import Slot
from autoweight.workers.base import ParamsWeigher, SteppedWorkers


class SequentialWorkers(SteppedWorkers):
    """A list of networks, each trained by the step that every training uses."""

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.slots = [self._slot(model, group) for group, model in enumerate(starts)]

    def _copy_networks(self, slots: Tensor) -> None:
        old = self.slots
        self.slots = [self._slot(copy.deepcopy(old[group].model), group) for group in slots.tolist()]
        for slot, group in zip(self.slots, slots.tolist(), strict=True):
            slot.load_state_dict(copy.deepcopy(old[group].state_dict()))

    def _slot(self, model: nn.Module, group: int) -> Slot:
        problem = self.problem
        nothing = torch.zeros(problem.num_params, device=problem.device)
        weigher = ParamsWeigher(problem.rule, self.label_values, nothing, problem.memory())
        return Slot(model, self.loaders[group], Weighted(weigher), problem.training)

    def _train_step(
        self, batches: tuple[Batch, ...], strategy_params: Tensor, learning_rate: float, seed: int
    ) -> Tensor:
        losses = []
        for slot, group, own in zip(self.slots, self.group_of_slot.tolist(), strategy_params, strict=True):
            seed_draws(seed, self.problem.device)
            slot.train_mode()
            slot.set_learning_rate(learning_rate)
            slot.method.weigher.strategy_params = own  # type: ignore[attr-defined]
            losses.append(slot.step(batches[group], progress=0.0))
        return torch.stack(losses)

    def _evaluate(self) -> Tensor:
        precision = self.problem.training.precision
        return torch.tensor([score(slot.model, self.val, self.task, precision) for slot in self.slots])
