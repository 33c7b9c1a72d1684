"""Batches of samples that are read as they come."""

from collections.abc import Iterator
from itertools import tee

import torch
from torch import Tensor

from autoweight.data.inputs import Inputs, each, rows
from autoweight.data.loader import Batch, EpochPlan, Loader
from autoweight.data.mixing import mix
from autoweight.data.reading import ReadBatch, Ticket
from autoweight.data.streamed import Streamed
from autoweight.errors import RunError

_TO_SPARE = 32  # samples read beyond those that a batch lacks, since some of them may be unreadable too


class StreamedLoader(Loader):
    """A `Loader` of samples that are read as they come: the same order for the same seed and step.

    A batch does without its samples that cannot be read. Where that leaves fewer than two, of which batch norm can make
    nothing, others take their places, drawn by the seed and the step alone.
    """

    samples: Streamed

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The batches of steps `start` to `stop - 1`, counted over the whole training."""
        for inputs, row in self.read(start, stop):
            yield self.sent(inputs, row)

    def sent(self, inputs: Inputs, row: EpochPlan) -> Batch:
        """The batch of what was read, sent to the device."""
        device = self.samples.device
        here = each(inputs, lambda part: part.to(device, non_blocking=True))
        return self.finished(here, EpochPlan(*(part.to(device, non_blocking=True) for part in row)))

    def read(self, start: int, stop: int) -> Iterator[tuple[Inputs, EpochPlan]]:
        """What is read for the batches of these steps, on the host, and the rows of the plan that describe them."""
        asked, answered = tee(self._rows(start, stop, self.draw))
        tickets = (self._ticket(epoch, row.indices) for epoch, row in asked)
        for (epoch, row), batch in zip(answered, self.samples.read(tickets), strict=True):
            if len(batch.kept) < min(2, len(row.indices)):
                yield self._topped_up(epoch, row, batch)
            else:
                assert batch.inputs is not None
                yield batch.inputs, row if not batch.bad else EpochPlan(*(part[batch.kept] for part in row))

    def _topped_up(self, epoch: int, row: EpochPlan, short: ReadBatch) -> tuple[Inputs, EpochPlan]:
        """What is left of a batch, and others in the places of those that could not be read."""
        size = len(row.indices)  # of a rank's part, fewer than the batch has
        generator = torch.Generator().manual_seed(mix(self.seed, epoch, *row.indices.tolist()))
        others = torch.randperm(len(self.samples), generator=generator)
        others = others[~torch.isin(others, row.indices)][: size + _TO_SPARE]
        indices = torch.cat([row.indices[short.kept], others])
        (batch,) = self.samples.read([self._ticket(epoch, indices)])
        kept = batch.kept[:size]
        if batch.inputs is None or len(kept) < min(2, size):
            raise RunError(f"next to no samples can be read, nor others in their places: {short.bad[0].why}.")
        own = EpochPlan(indices[kept], *(part[: len(kept)] for part in row[1:]))
        return rows(batch.inputs, slice(len(kept))), own

    def look(self) -> Inputs:
        """Inputs of a few samples, as networks get them."""
        return self.samples.head(2)

    def finished(self, inputs: Inputs, row: EpochPlan) -> Batch:
        """The batch of what was read, once it lies on the device."""
        whole = self.augmented(self.samples.finished(inputs), row)
        return Batch(whole, self.samples.labels[row.indices], row.indices)

    def _ticket(self, epoch: int, indices: Tensor) -> Ticket:
        return Ticket(self.samples.source[indices].tolist(), (self.seed, epoch))
