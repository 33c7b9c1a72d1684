"""Every network's step captured in one CUDA graph on forked streams: for GPUs."""

import copy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from autoweight.data.loader import Loader
from autoweight.training.captured import CapturedSteps, capture, draws_random_numbers, fork, states_of
from autoweight.training.steps import Slot, autocast
from autoweight.workers.base import ParamsWeigher, Workers

_CHUNK = 1000  # validation samples at a time


class Graphs(NamedTuple):
    """What was captured for some slots: a step, and a look at the validation set that counts correct answers."""

    steps: CapturedSteps
    look: torch.cuda.CUDAGraph
    correct: Tensor


class GraphedWorkers(Workers):
    """Networks, momenta and strategy parameters live at fixed places, with which the graphs were captured.

    There are graphs for the references alone, as long as all networks of a group are equal, and for all slots.
    """

    run_beside_the_host = True
    graphs: dict[int, Graphs] | None = None
    head: CapturedSteps

    def _start_networks(self, starts: list[nn.Module]) -> None:
        if self.graphs is None:
            self._build(starts)
        for slot, start in zip(self.slots[-self.num_starts :], starts, strict=True):
            slot.model.load_state_dict(start.state_dict())
            for momentum in _momenta(slot):
                momentum.zero_()

    def _copy_networks(self, slots: Tensor) -> None:
        for slot, group in zip(self.slots, slots.tolist(), strict=True):
            reference = self.slots[self.num_workers + group]
            for place, value in zip(states_of(slot), states_of(reference), strict=True):
                place.copy_(value)

    def _train(self, stage: int, params: Tensor, loaders: list[Loader]) -> Tensor:
        assert self.graphs is not None
        self.params[-len(params) :] = params
        start, stop = self.stage_starts[stage], self.stage_starts[stage + 1]
        self.network_steps += len(params) * (stop - start)
        steps = self.head if loaders is self.head_loaders else self.graphs[len(params)].steps
        return steps.run(start, stop).losses

    def _evaluate(self) -> Tensor:
        assert self.graphs is not None
        graphs = self.graphs[len(self.group_of_slot)]
        graphs.look.replay()
        return graphs.correct / len(self.val)

    def _build(self, starts: list[nn.Module]) -> None:
        loader = self.loaders[0]
        if draws_random_numbers(starts[0], loader.batch(loader.plan(0).row(0)).inputs):
            raise RuntimeError("it draws random numbers, which captured networks cannot draw alike")
        groups = [*self.group_of_worker.tolist(), *range(self.num_starts)]
        self.params = torch.zeros(len(groups), len(self.problem.features) + 1, device=self.problem.device)
        self.slots = [self._slot(starts[group], group, own) for group, own in zip(groups, self.params, strict=True)]
        references = self.slots[-self.num_starts :]
        self.graphs = {len(slots): self._graph(slots) for slots in (references, self.slots)}
        if self.problem.head_start:
            heads = [_on_batches_of(loader, slot) for loader, slot in zip(self.head_loaders, references, strict=True)]
            self.head = CapturedSteps(heads, self.problem.training, self.steps)

    def _slot(self, start: nn.Module, group: int, params: Tensor) -> Slot:
        weigher = ParamsWeigher(self.problem, self.label_values, params)
        return Slot(copy.deepcopy(start), self.loaders[group], weigher, self.problem.training)

    def _graph(self, slots: list[Slot]) -> Graphs:
        steps = CapturedSteps(slots, self.problem.training, self.steps)
        correct = torch.zeros(len(slots), device=self.problem.device)

        def count(slot: Slot, own: Tensor) -> None:
            model = slot.model.eval()
            chunks = zip(self.val.inputs.split(_CHUNK), self.val.labels.split(_CHUNK), strict=True)
            for inputs, labels in chunks:
                with torch.no_grad(), autocast(self.problem.training.precision, inputs.device):
                    own += (model(inputs).argmax(dim=-1) == labels).sum()

        def look() -> None:
            correct.zero_()
            fork([partial(count, *own) for own in zip(slots, correct, strict=True)])

        return Graphs(steps, capture(look), correct)


def _on_batches_of(loader: Loader, slot: Slot) -> Slot:
    """The same network and optimiser, fed by another loader."""
    twin = copy.copy(slot)
    twin.loader = loader
    return twin


def _momenta(slot: Slot) -> list[Tensor]:
    return [slot.optimizer.state[parameter]["momentum_buffer"] for parameter in slot.model.parameters()]
