"""Where captured steps take their batches from: places on the device that a graph reads and the host fills before."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from autoweight.data.inputs import Inputs, each, parts
from autoweight.data.loader import Batch, EpochPlan, Loader
from autoweight.data.streamed_loader import StreamedLoader


class Feed:
    """Batches of samples that lie on the device: the graph picks them by a plan, which is loaded epoch by epoch."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.plan = loader.plan(0)

    def begin(self, start: int, stop: int) -> None:
        """Before steps `start` to `stop - 1`."""
        self.start = start

    def load(self, step: int) -> bool:
        """Put what a step needs where the graph reads it; False where it does not fit there."""
        epoch, row = divmod(step, self.loader.steps_per_epoch)
        if step == self.start or row == 0:
            for place, part in zip(self.plan, self.loader.plan(epoch), strict=True):
                place.copy_(part, non_blocking=True)
        return True

    def batch(self, step: Tensor) -> Batch:
        """The batch of a step, from what was loaded; this is captured."""
        return self.loader.batch(self.plan.row(step % self.loader.steps_per_epoch))

    def end(self) -> None:
        """After the last step."""


class StreamedFeed(Feed):
    """Batches of samples that are read as they come: inputs go through `Lane` to where the graph reads them.

    A batch of another shape, such as one that had to leave a sample out, has no place there: then `batch` gives it as
    it is, and the step has to be taken without the graph.
    """

    loader: StreamedLoader

    def __init__(self, loader: StreamedLoader) -> None:
        super().__init__(loader)
        device = loader.samples.device
        first = loader.samples.raw(1)
        self.inputs = each(first, lambda part: part.to(device).repeat(loader.batch_size, *[1] * (part.dim() - 1)))
        self.lane = Lane(parts(self.inputs))
        self.odd: Batch | None = None
        self.reading: Iterator[tuple[Inputs, EpochPlan]] = iter(())

    def begin(self, start: int, stop: int) -> None:
        """Let the reading begin: it runs ahead of the steps."""
        super().begin(start, stop)
        self.reading = self.loader.read(start, stop)

    def load(self, step: int) -> bool:
        """Put a step's inputs where the graph reads them."""
        super().load(step)
        inputs, row = next(self.reading)
        fits = [(part.shape, part.dtype) for part in parts(inputs)] == self.lane.kinds
        self.odd = None if fits else self.loader.sent(inputs, row)
        if fits:
            self.lane.put(parts(inputs))
        return fits

    def batch(self, step: Tensor) -> Batch:
        """The batch of a step; finished and augmented inside the graph."""
        if self.odd is not None:
            return self.odd
        return self.loader.finished(self.inputs, self.plan.row(step % self.loader.steps_per_epoch))

    def end(self) -> None:
        """Let the readers go."""
        self.reading = iter(())


class Lane:
    """Takes tensors from the host to fixed places, beside the work that is under way on a GPU.

    They are copied into one of two buffers on the device, by a stream of its own while the step before still computes,
    and from there to their places once that step is done. The host is never more than two steps ahead, so that little
    memory is taken. On a CPU all of that happens at once, one after the other.
    """

    def __init__(self, places: list[Tensor]) -> None:
        self.places = places
        self.kinds = [(place.shape, place.dtype) for place in places]
        self.buffers = [[torch.empty_like(place) for place in places] for _ in range(2)]
        self.emptied: list[torch.cuda.Event | None] = [None, None]
        self.turn = 0
        self.stream = torch.cuda.Stream(places[0].device) if places[0].is_cuda else None
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream())  # what used the buffers' memory before

    def put(self, values: list[Tensor]) -> None:
        """Let values from the host take the places, after all that was given to the current stream before."""
        buffer, emptied = self.buffers[self.turn], self.emptied[self.turn]
        if emptied is not None:
            emptied.synchronize()
        with self._beside():
            for place, value in zip(buffer, values, strict=True):
                place.copy_(value, non_blocking=True)
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
        for place, value in zip(self.places, buffer, strict=True):
            place.copy_(value, non_blocking=True)
        self.emptied[self.turn] = None if self.stream is None else torch.cuda.current_stream().record_event()
        self.turn = 1 - self.turn

    def _beside(self) -> AbstractContextManager[object]:
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)


def make_feed(loader: Loader) -> Feed:
    """The feed for a loader's kind of samples."""
    return StreamedFeed(loader) if isinstance(loader, StreamedLoader) else Feed(loader)
