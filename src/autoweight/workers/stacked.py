"""All networks stacked into one batched computation: for CPUs and small networks."""

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn.functional import cross_entropy

from autoweight.data.loader import Batch
from autoweight.strategy.weigher import weighted_mean
from autoweight.workers.base import ParamsWeigher, SteppedWorkers

Tensors = dict[str, Tensor]

_CHUNK = 1000  # validation samples at a time


class StackedWorkers(SteppedWorkers):
    """Every parameter and buffer gets a leading dimension of slots; `torch.vmap` runs the unchanged module over it."""

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.params, self.buffers = stack_module_state(starts)
        self.skeleton = copy.deepcopy(starts[0])
        self._make_optimizer()

    def _copy_networks(self, slots: Tensor) -> None:
        slots = slots.to(self.problem.device)
        momenta = [self.optimizer.state[param].get("momentum_buffer") for param in self.params.values()]
        self.params = {
            name: param.detach()[slots].requires_grad_(param.requires_grad) for name, param in self.params.items()
        }
        self.buffers = {name: buffer[slots] for name, buffer in self.buffers.items()}
        self._make_optimizer()
        for param, momentum in zip(self.params.values(), momenta, strict=True):
            if momentum is not None:
                self.optimizer.state[param]["momentum_buffer"] = momentum[slots]

    def _make_optimizer(self) -> None:
        training = self.problem.training
        self.optimizer = torch.optim.SGD(
            self.params.values(), training.learning_rate, training.momentum, weight_decay=training.weight_decay
        )

    def _train_step(self, batches: tuple[Batch, ...], params: Tensor, learning_rate: float, seed: int) -> Tensor:
        torch.manual_seed(seed)
        self.skeleton.train()
        inputs, labels, dim = self._inputs(batches)
        step = torch.vmap(self._losses, in_dims=(0, 0, dim, dim, 0), randomness="same")
        weighted, plain = step(self.params, self.buffers, inputs, labels, params)
        self.optimizer.zero_grad(set_to_none=True)
        weighted.sum().backward()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        return plain.detach()

    def _losses(
        self, net: Tensors, buffers: Tensors, inputs: Tensor, labels: Tensor, params: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One slot's weighted loss, and its unweighted mean."""
        logits = functional_call(self.skeleton, (net, buffers), inputs)
        losses = cross_entropy(logits, labels, reduction="none")
        weights = ParamsWeigher(self.problem, self.label_values, params).weigh(losses, logits, labels, progress=0.0)
        return weighted_mean(losses, weights), losses.detach().mean()

    def _inputs(self, batches: tuple[Batch, ...]) -> tuple[Tensor, Tensor, int | None]:
        """Inputs and labels for `vmap`, with the dimension of slots, or None where all see the same batch."""
        if self.num_starts == 1:
            return batches[0].inputs, batches[0].labels, None
        inputs = torch.stack([batch.inputs for batch in batches])
        labels = torch.stack([batch.labels for batch in batches])
        groups = self.group_of_slot.to(inputs.device)
        return inputs[groups], labels[groups], 0

    @torch.no_grad()
    def _evaluate(self) -> Tensor:
        self.skeleton.eval()

        def predict(net: Tensors, buffers: Tensors, inputs: Tensor) -> Tensor:
            logits: Tensor = functional_call(self.skeleton, (net, buffers), inputs)
            return logits.argmax(dim=-1)

        correct = torch.zeros(len(self.group_of_slot), device=self.problem.device)
        for inputs, labels in zip(self.val.inputs.split(_CHUNK), self.val.labels.split(_CHUNK), strict=True):
            predicted = torch.vmap(predict, in_dims=(0, 0, None))(self.params, self.buffers, inputs)
            correct += (predicted == labels).sum(dim=-1)
        return correct / len(self.val)
