"""Memory that workers share with the training: one batch after the other passes through it.

Torch shares memory anew for every batch: two processes connect, check each other and pass a file descriptor, which
takes longer than copying a batch of small images.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from autoweight.data.inputs import Inputs, each, parts

AHEAD = 2
"""So many batches DataLoader asks of each worker ahead."""
_ROOMS = AHEAD + 1  # it asks for the next one just before it hands over a batch, whose room is still needed then
_ALIGNED = 64  # bytes; a tensor of any kind may begin at a multiple


class Parcel(NamedTuple):
    """What a worker sends of a batch's inputs, which lie in a room."""

    name: tuple[int, int]
    """The worker and its room."""
    room: Tensor | None
    """Bytes in shared memory; None where the room was sent before."""
    sketch: Inputs
    """The inputs without their values."""


class Sender:
    """A worker's rooms, which it fills in turn."""

    def __init__(self) -> None:
        self.rooms = [torch.empty(0, dtype=torch.uint8)] * _ROOMS
        self.turn = 0

    def pack(self, inputs: Inputs) -> Parcel:
        """Put inputs into the next room; a larger one takes its place where they do not fit."""
        self.turn = (self.turn + 1) % _ROOMS
        sketch = each(
            inputs, lambda part: torch.empty_strided(part.shape, part.stride(), dtype=part.dtype, device="meta")
        )
        spans = _spans(sketch)
        new = spans[-1].stop > len(self.rooms[self.turn])
        if new:
            self.rooms[self.turn] = torch.empty(spans[-1].stop, dtype=torch.uint8).share_memory_()
        room = self.rooms[self.turn]
        for part, span in zip(parts(inputs), spans, strict=True):
            memory = room[span].view(part.dtype)
            memory.copy_(part.detach().as_strided(memory.shape, (1,)))
        worker = get_worker_info()
        assert worker is not None
        return Parcel((worker.id, self.turn), room if new else None, sketch)


class Receiver:
    """The rooms of all workers, as the training sees them."""

    def __init__(self, pin: bool) -> None:
        self.rooms: dict[tuple[int, int], Tensor] = {}
        self.pin = pin

    def unpack(self, parcel: Parcel) -> Inputs:
        """A copy of the inputs, in pinned memory if so asked; the room may be used again."""
        if parcel.room is not None:
            self.rooms[parcel.name] = parcel.room
        spans = _spans(parcel.sketch)
        own = torch.empty(spans[-1].stop, dtype=torch.uint8, pin_memory=self.pin)
        # Not torch's copy: its threads would wait for the cores that workers use.
        np.copyto(own.numpy(), self.rooms[parcel.name][: len(own)].numpy())
        memory = iter([own[span] for span in spans])
        return each(parcel.sketch, lambda part: next(memory).view(part.dtype).as_strided(part.shape, part.stride()))


def _spans(sketch: Inputs) -> list[slice]:
    """Where the tensors lie in a room."""
    spans, start = [], 0
    for part in parts(sketch):
        spans.append(slice(start, start + part.untyped_storage().nbytes()))
        start = spans[-1].stop + -spans[-1].stop % _ALIGNED
    return spans
