"""Batches pass from workers to the training through a few pieces of shared memory, which are used again and again."""

import torch
from torch.utils.data import Dataset

from autoweight.data.inputs import parts
from autoweight.data.reading import Reading, Ticket, read

TICKETS = [Ticket([place, place + 1], (7,)) for place in range(0, 36, 2)]


class Numbered(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, place):
        return torch.full((3, 4), place) + torch.rand(1), place


def in_all_ways(rows):
    """Inputs whose sizes change, of several kinds, and that lie in memory in several ways."""
    whole = torch.stack([row[0] for row in rows])
    length = 1 + int(rows[0][1]) % 5
    inputs = {
        "images": whole.view(2, 3, 2, 2).contiguous(memory_format=torch.channels_last),
        "long": whole.repeat(1, length, 1),
        "mask": whole[:, :, :1] > 20,
        "turned": whole.transpose(1, 2)[:, ::2],
        "wide": whole[:, :1, :1].expand(2, 5, 3),
        "half": whole.bfloat16(),
        "none": whole[:, :0],
        "needs": whole.requires_grad_(),
    }
    return {**inputs, "label": torch.zeros(2)}


def assert_alike(how):
    here, there = (list(read(Numbered(), TICKETS, Reading(how, num_workers=workers))) for workers in (0, 2))
    assert len(there) == len(TICKETS)
    for one, two in zip(here, there, strict=True):  # all are kept: none may have been written over
        assert type(one.inputs) is type(two.inputs)
        for own, sent in zip(parts(one.inputs), parts(two.inputs), strict=True):
            assert torch.equal(own, sent)
            assert (own.dtype, own.stride()) == (sent.dtype, sent.stride())


def test_what_workers_send_is_what_is_read_here():
    assert_alike(None)
    assert_alike(in_all_ways)
    assert_alike(lambda rows: ((rows[0][0], rows[1][0].long()), torch.zeros(1)))
