"""One network after the other in a plain loop: slow, and the truth that faster workers are tested against."""

import copy

import torch
from torch import Tensor, nn

from autoweight.data.loader import Batch
from autoweight.training.evaluate import accuracy
from autoweight.training.steps import Slot
from autoweight.workers.base import ParamsWeigher, SteppedWorkers


class SequentialWorkers(SteppedWorkers):
    """A list of networks, each trained by the step that every training uses."""

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.slots = [self._slot(model, group) for group, model in enumerate(starts)]

    def _copy_networks(self, slots: Tensor) -> None:
        old, groups = self.slots, self.group_of_slot.tolist()
        self.slots = [self._slot(copy.deepcopy(old[group].model), group) for group in groups]
        for slot, group in zip(self.slots, groups, strict=True):
            slot.optimizer.load_state_dict(copy.deepcopy(old[group].optimizer.state_dict()))

    def _slot(self, model: nn.Module, group: int) -> Slot:
        return Slot(model, self.loaders[group], None, self.problem.training)

    def _train_step(self, batches: tuple[Batch, ...], params: Tensor, learning_rate: float, seed: int) -> Tensor:
        losses = []
        for slot, group, own_params in zip(self.slots, self.group_of_slot.tolist(), params, strict=True):
            torch.manual_seed(seed)
            slot.model.train()
            slot.set_learning_rate(learning_rate)
            slot.weigher = ParamsWeigher(self.problem, self.label_values, own_params)
            losses.append(slot.step(batches[group], progress=0.0))
        return torch.stack(losses)

    def _evaluate(self) -> Tensor:
        return torch.tensor([accuracy(slot.model, self.val, self.problem.training.precision) for slot in self.slots])
