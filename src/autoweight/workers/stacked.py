"""All networks stacked into one batched computation: for CPUs and small networks."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from autoweight.data.inputs import Inputs, arguments, each, outputs_of, together
from autoweight.data.loader import Batch
from autoweight.strategy.memory import Memory
from autoweight.training.device import seed_draws
from autoweight.training.evaluate import CHUNK
from autoweight.training.optimizers import copy_state, make_optimizer, set_learning_rate
from autoweight.workers.base import ParamsWeigher, SteppedWorkers

Tensors = dict[str, Tensor]


class StackedWorkers(SteppedWorkers):
    """Every parameter, buffer and memory gets a leading dimension of slots; `torch.vmap` runs the module over it."""

    fewest_slots = 2  # matrices of a stack of one are multiplied by another routine, which rounds otherwise

    def _start_networks(self, starts: list[nn.Module]) -> None:
        self.params, self.buffers = stack_module_state(starts)
        self.skeleton = copy.deepcopy(starts[0])
        memory = self.problem.memory()
        own = {} if memory is None else memory.tensors()
        self.memories = {name: tensor.repeat(len(starts), *[1] * tensor.dim()) for name, tensor in own.items()}
        self.optimizer = make_optimizer(self.params.values(), self.problem.training)

    def _copy_networks(self, slots: Tensor) -> None:
        slots = slots.to(self.problem.device)
        former = self.optimizer
        self.params = {
            name: param.detach()[slots].requires_grad_(param.requires_grad) for name, param in self.params.items()
        }
        self.buffers = {name: buffer[slots] for name, buffer in self.buffers.items()}
        self.memories = {name: memory[slots] for name, memory in self.memories.items()}
        self.optimizer = make_optimizer(self.params.values(), self.problem.training)
        copy_state(former, self.optimizer, slots)

    def _train_step(
        self, batches: tuple[Batch, ...], strategy_params: Tensor, learning_rate: float, seed: int
    ) -> Tensor:
        seed_draws(seed, self.problem.device)
        self.skeleton.train()
        batch, dim = self._batch(batches)
        step = torch.vmap(self._losses, in_dims=(0, 0, 0, dim, dim, dim, 0), randomness="same")
        weighted, plain = step(self.params, self.buffers, self.memories, *batch, strategy_params)
        self.optimizer.zero_grad(set_to_none=True)
        weighted.sum().backward()
        set_learning_rate(self.optimizer, learning_rate)
        self.optimizer.step()
        return plain.detach()

    def _losses(
        self,
        params: Tensors,
        buffers: Tensors,
        memory: Tensors,
        inputs: Inputs,
        labels: Tensor,
        indices: Tensor,
        strategy_params: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """One slot's weighted loss, and its unweighted mean."""
        outputs = self._forward(params, buffers, inputs)
        losses = self.task.losses(outputs, labels)
        own_memory = Memory(memory) if memory else None
        weigher = ParamsWeigher(self.problem.rule, self.label_values, strategy_params, own_memory)
        weights = weigher.weigh(losses, outputs, labels, progress=0.0, indices=indices)
        return self.task.mean(losses, weights, labels), self.task.mean(losses.detach(), None, labels)

    def _forward(self, params: Tensors, buffers: Tensors, inputs: Inputs) -> Tensor:
        args, named = arguments(inputs)
        return outputs_of(functional_call(self.skeleton, (params, buffers), args, named))

    def _batch(self, batches: tuple[Batch, ...]) -> tuple[tuple[Any, Tensor, Tensor], int | None]:
        """A batch for `vmap`, with the dimension of slots, or None where all see the same."""
        if self.num_starts == 1:
            return batches[0], None
        groups = self.group_of_slot.to(self.problem.device)
        inputs = each(together([batch.inputs for batch in batches], torch.stack), lambda part: part[groups])
        labels = torch.stack([batch.labels for batch in batches])[groups]
        indices = torch.stack([batch.indices for batch in batches])[groups]
        return (inputs, labels, indices), 0

    @torch.no_grad()
    def _evaluate(self) -> Tensor:
        self.skeleton.eval()

        def tally(params: Tensors, buffers: Tensors, inputs: Inputs, labels: Tensor) -> Tensor:
            return self.task.tally(self._forward(params, buffers, inputs), labels)

        of_slots = torch.vmap(tally, in_dims=(0, 0, None, None))
        sums = torch.zeros((), device=self.problem.device)
        for inputs, labels in self.val.chunks(CHUNK):
            sums = sums + of_slots(self.params, self.buffers, inputs, labels)
        return self.task.score(sums)
