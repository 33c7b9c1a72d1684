"""Steps captured in one CUDA graph: every network on a forked stream of its own, and nothing left to the host.

The step counter, the learning rate, the progress and the choice of the batch all live on the device, so that a step
is one replay; of streamed samples, the host puts the next ones into their place (feeds.py). The networks are used as
they are.
"""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from autoweight.config import TrainingConfig
from autoweight.data.inputs import Inputs, parts
from autoweight.data.loader import Batch
from autoweight.data.mixing import mix
from autoweight.training.feeds import make_feed
from autoweight.training.precision import compiled
from autoweight.training.schedules import learning_rate_at
from autoweight.training.steps import Slot, Steps, StepsOutcome, first_bad_steps, is_sound
from autoweight.training.task import forward

_WARMUP_RUNS = 3  # for autotuning and lazy initialisation, which a capture does not allow


class CapturedSteps(Steps):
    """All slots' steps as one graph. Slots that share a loader see the same batch."""

    def __init__(self, slots: Sequence[Slot], config: TrainingConfig, total_steps: int) -> None:
        super().__init__(slots, config, total_steps)
        loaders = [loader for slot in slots for loader in (slot.loader, slot.trusted) if loader is not None]
        self.loaders = list({id(loader): loader for loader in loaders}.values())
        device = self.loaders[0].samples.device
        rates = [learning_rate_at(config, step, total_steps) for step in range(total_steps)]
        self.rates = torch.tensor(rates, device=device)
        self.step = torch.zeros((), dtype=torch.long, device=device)
        self.loss_sums = torch.zeros(len(slots), device=device)
        self.good_steps = torch.zeros(len(slots), dtype=torch.long, device=device)
        self.feeds = [make_feed(loader) for loader in self.loaders]
        self.counts: list[int] = []  # of labels that each slot's last step saw
        with kept(state for slot in slots for state in slot.tensors()):
            self.graph = capture(self._all_steps)
        self.counts_of_graph = self.counts

    def run(self, start: int, stop: int) -> StepsOutcome:
        """Steps `start` to `stop - 1` of every slot."""
        torch.manual_seed(mix(self.loaders[0].seed, start, 2))  # dropout masks and the like
        self.step.fill_(start)
        self.loss_sums.zero_()
        self.good_steps.zero_()
        for feed in self.feeds:
            feed.begin(start, stop)
        for step in range(start, stop):
            fits = [feed.load(step) for feed in self.feeds]
            if all(fits):
                self.graph.replay()
                self.counts = self.counts_of_graph
            else:
                with repeatable_kernels():
                    self._all_steps()
            for slot, count in zip(self.slots, self.counts, strict=True):
                slot.method.after_replay(count)
        for feed in self.feeds:
            feed.end()
        return StepsOutcome(self.loss_sums / (stop - start), first_bad_steps(self.good_steps, start, stop))

    def _from_outside(self) -> tuple[Tensor, Tensor, list[Batch]]:
        """Learning rate, progress and every loader's batch: two dozen small operations, or a few when compiled."""
        step = self.step.clamp(max=self.total_steps - 1)  # the runs before a capture go beyond the shortest trainings
        return (
            self.rates.index_select(0, step.view(1)).squeeze(0),
            step.double() / self.total_steps,
            [feed.batch(step) for feed in self.feeds],
        )

    def _all_steps(self) -> None:
        """One step of every slot, forked from and joined to the current stream."""
        from_outside = compiled(CapturedSteps._from_outside, self.config, self.step.device)
        learning_rate, progress, batches = from_outside(self)
        batch_of = {id(loader): batch for loader, batch in zip(self.loaders, batches, strict=True)}

        def take_step(slot: Slot, loss_sum: Tensor, good_steps: Tensor) -> None:
            slot.train_mode()
            slot.set_learning_rate(learning_rate)
            loss_sum += slot.step(batch_of[id(slot.loader)], progress, batch_of.get(id(slot.trusted)))
            good_steps += is_sound(loss_sum)

        self.counts = [batch_of[id(slot.loader)].labels.numel() for slot in self.slots]
        of_slots = zip(self.slots, self.loss_sums, self.good_steps, strict=True)
        fork([partial(take_step, *own) for own in of_slots])
        self.step += 1


def repeatable_kernels() -> AbstractContextManager[None]:
    """Convolutions by the fastest algorithm whose result is the same every time, in full float32 if not bfloat16."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=False)


def capture(work: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """A graph of what `work` does, after it was done a few times for real.

    Algorithms are chosen by speed among those whose result is the same every time: networks that start alike and see
    the same must stay alike to the bit.
    """
    with repeatable_kernels():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARMUP_RUNS):
                work()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the runs took, the graph needs in its own pool
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
    return graph


def fork(works: Sequence[Callable[[], None]]) -> None:
    """Do all works, each on a stream of its own between two points of the current stream; one alone stays on that."""
    if len(works) == 1:
        works[0]()
        return
    current = torch.cuda.current_stream()
    start = current.record_event()
    streams = list(itertools.islice(_streams_beside(current), len(works)))
    for work, stream in zip(works, streams, strict=True):
        stream.wait_event(start)
        with torch.cuda.stream(stream):
            work()
    for stream in streams:
        current.wait_stream(stream)


def _streams_beside(current: torch.cuda.Stream) -> Iterator[torch.cuda.Stream]:
    """Streams come from a small pool, which the current one may be part of: work on that would hold up all others."""
    while True:
        stream = torch.cuda.Stream()
        if stream != current:
            yield stream


@contextmanager
def kept(tensors: Iterator[Tensor]) -> Iterator[None]:
    """Put the tensors' values back at the end."""
    places = list(tensors)
    values = [place.clone() for place in places]
    try:
        yield
    finally:
        for place, value in zip(places, values, strict=True):
            place.copy_(value)


@torch.no_grad()
def draws_random_numbers(model: nn.Module, inputs: Inputs) -> bool:
    """Whether a network in training draws random numbers, as dropout does; those of one graph cannot draw alike."""
    device = parts(inputs)[0].device
    before = _random_states(device)
    forward(copy.deepcopy(model).train(), inputs)
    return any(not torch.equal(*states) for states in zip(before, _random_states(device), strict=True))


def _random_states(device: torch.device) -> list[Tensor]:
    on_device = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_device]
