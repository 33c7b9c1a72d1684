"""Every network's step captured in one CUDA graph on forked streams: for GPUs."""

import copy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from autoweight.data.loader import Loader
from autoweight.methods.method import Weighted
from autoweight.training.captured import CapturedSteps, capture, draws_random_numbers, fork
from autoweight.training.evaluate import CHUNK
from autoweight.training.optimizers import state_tensors
from autoweight.training.precision import autocast
from autoweight.training.steps import Slot
from autoweight.training.task import forward
from autoweight.workers.base import ParamsWeigher, Workers


class Graphs(NamedTuple):
    """What was captured for some slots: a step, and a pass over the validation set, whose sums make the scores."""

    steps: CapturedSteps
    look: torch.cuda.CUDAGraph
    sums: Tensor


class GraphedWorkers(Workers):
    """Networks, optimisers, memories and strategy parameters live at fixed places, with which graphs were captured.

    There are graphs for the references alone, as long as all networks of a group are equal, and for the own slots.
    """

    run_beside_the_host = True
    graphs: Graphs | None = None
    """Those of the slots that train now."""
    of_references: Graphs
    of_own: Graphs
    head: CapturedSteps

    def _start_networks(self, starts: list[nn.Module]) -> None:
        if self.graphs is None:
            self._build(starts)
        self.graphs = self.of_references
        for slot, start in zip(self.references, starts, strict=True):
            _put(slot.model, start)
            for state in state_tensors(slot.method.optimizers[0]):
                state.zero_()
            if fresh := self.problem.memory():
                for name, value in fresh.tensors().items():
                    slot.method.tensors()[name].copy_(value)

    def _copy_networks(self, slots: Tensor) -> None:
        self.graphs = self.of_own
        for slot, group in zip(self.slots, slots.tolist(), strict=True):
            for place, value in zip(slot.tensors(), self.references[group].tensors(), strict=True):
                place.copy_(value)

    def _train(self, stage: int, strategy_params: Tensor, loaders: list[Loader]) -> Tensor:
        assert self.graphs is not None
        if self.graphs is self.of_own:
            self.strategy_params.copy_(strategy_params)
        start, stop = self.stage_starts[stage], self.stage_starts[stage + 1]
        self.network_steps += len(strategy_params) * (stop - start)
        steps = self.head if loaders is self.head_loaders else self.graphs.steps
        return steps.run(start, stop).losses

    def _evaluate(self) -> Tensor:
        assert self.graphs is not None
        self.graphs.look.replay()
        return self.task.score(self.graphs.sums)

    def _build(self, starts: list[nn.Module]) -> None:
        loader = self.loaders[0]
        if draws_random_numbers(starts[0], loader.look()):
            raise RuntimeError("it draws random numbers, which captured networks cannot draw alike")
        own, device = self.own_slots.tolist(), self.problem.device
        self.strategy_params = torch.zeros(len(own), self.problem.num_params, device=device)
        nothing = torch.zeros(self.problem.num_params, device=device)
        self.references = [self._slot(start, group, nothing) for group, start in enumerate(starts)]
        self.slots = [self._own_slot(row, slot, starts) for row, slot in enumerate(own)]
        self.of_references, self.of_own = self._graph(self.references), self._graph(self.slots)
        if self.problem.head_start:
            heads = [_on_batches_of(*pair) for pair in zip(self.head_loaders, self.references, strict=True)]
            self.head = CapturedSteps(heads, self.problem.training, self.steps)

    def _own_slot(self, row: int, slot: int, starts: list[nn.Module]) -> Slot:
        """A reference, which is there already, or a network of its own."""
        if slot >= self.num_workers:
            return self.references[slot - self.num_workers]
        group = int(self.group_of_worker[slot])
        return self._slot(starts[group], group, self.strategy_params[row])

    def _slot(self, start: nn.Module, group: int, strategy_params: Tensor) -> Slot:
        problem = self.problem
        weigher = ParamsWeigher(problem.rule, self.label_values, strategy_params, problem.memory())
        return Slot(copy.deepcopy(start), self.loaders[group], Weighted(weigher), problem.training)

    def _graph(self, slots: list[Slot]) -> Graphs:
        steps = CapturedSteps(slots, self.problem.training, self.steps)
        with torch.no_grad():
            one = forward(slots[0].model.eval(), self.val.head(1))
        width = len(self.task.tally(one, self.val.labels[:1]))
        sums = torch.zeros(len(slots), width, dtype=torch.float64, device=self.problem.device)

        def tally(slot: Slot, own: Tensor) -> None:
            model = slot.model.eval()
            for inputs, labels in self.val.chunks(CHUNK):
                with torch.no_grad(), autocast(self.problem.training.precision, self.val.device):
                    own += self.task.tally(forward(model, inputs), labels)

        def look() -> None:
            sums.zero_()
            fork([partial(tally, slot, own) for slot, own in zip(slots, sums, strict=True)])

        return Graphs(steps, capture(look), sums)


@torch.no_grad()
def _put(model: nn.Module, start: nn.Module) -> None:
    """All parameters and buffers, those that a state_dict leaves out included."""
    for places, values in ((model.parameters(), start.parameters()), (model.buffers(), start.buffers())):
        for place, value in zip(places, values, strict=True):
            place.copy_(value)


def _on_batches_of(loader: Loader, slot: Slot) -> Slot:
    """The same network and optimiser, fed by another loader."""
    twin = copy.copy(slot)
    twin.loader = loader
    return twin
