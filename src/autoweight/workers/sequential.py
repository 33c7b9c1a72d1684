"""One network after the other in a plain loop: slow, and the truth that faster workers are tested against."""

import copy

import torch
from torch import Tensor, nn

from autoweight.config import Feature
from autoweight.data.loader import Batch
from autoweight.strategy import Weigher
from autoweight.strategy.features import batch_features
from autoweight.strategy.weighting import weigh
from autoweight.training.evaluate import accuracy
from autoweight.training.step import make_optimizer, set_learning_rate, train_step
from autoweight.workers.base import Workers


class SequentialWorkers(Workers):
    """A list of networks, each trained by the step that every training uses."""

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.models = starts
        self.optimizers = [self._optimizer_of(model) for model in starts]

    def _copy_networks(self, slots: Tensor) -> None:
        models, optimizers = self.models, self.optimizers
        self.models = [copy.deepcopy(models[slot]) for slot in slots.tolist()]
        self.optimizers = [self._optimizer_of(model) for model in self.models]
        for optimizer, slot in zip(self.optimizers, slots.tolist(), strict=True):
            optimizer.load_state_dict(copy.deepcopy(optimizers[slot].state_dict()))

    def _optimizer_of(self, model: nn.Module) -> torch.optim.SGD:
        training = self.problem.training
        return make_optimizer(model, training.learning_rate, training.momentum, training.weight_decay)

    def _train_step(self, batches: tuple[Batch, ...], params: Tensor, learning_rate: float, seed: int) -> Tensor:
        losses = []
        slots = zip(self.models, self.optimizers, self.group_of_slot.tolist(), params, strict=True)
        for model, optimizer, group, own_params in slots:
            torch.manual_seed(seed)
            model.train()
            set_learning_rate(optimizer, learning_rate)
            weigher = _Params(own_params, self.problem.features, self.label_values)
            losses.append(train_step(model, optimizer, batches[group], weigher, 0.0, self.problem.training.reduction))
        return torch.stack(losses)

    def _evaluate(self) -> Tensor:
        return torch.tensor([accuracy(model, self.val) for model in self.models])


class _Params(Weigher):
    """Weighs by one stage's parameters, whatever they are: those of a search may blow up."""

    def __init__(self, params: Tensor, features: tuple[Feature, ...], label_values: Tensor) -> None:
        self.params, self.features, self.label_values = params, features, label_values

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float, indices: Tensor | None = None
    ) -> Tensor:
        return weigh(batch_features(losses, logits, labels, self.features, self.label_values), self.params)
