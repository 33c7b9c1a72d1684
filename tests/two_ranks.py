"""One of two processes that weigh together; what it found goes into a file for test_distributed.py to look at."""

import sys

import torch
from torch import distributed as dist

import autoweight as aw
from autoweight.distributed import num_processes, weigh_global
from autoweight.sharded import Sharded


def batch(rows: slice):
    """Some rows of a set of twelve."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(12, 3, generator=generator)
    labels = torch.arange(12) % 3
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return losses[rows], logits[rows], labels[rows], torch.arange(12)[rows]


PARTS = [
    (slice(0, 4), slice(4, 8)),
    (slice(8, 11), slice(11, 12)),
    (slice(0, 5), slice(5, 5)),
    (slice(0, 4), slice(2, 6)),
]
"""What the two have at each step: as much, one less, one nothing, and some samples twice."""


def tokens(length: int):
    """Three sentences, padded to a length."""
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(3, 5, 4, generator=generator), torch.arange(15).view(3, 5) % 4
    labels[1, 3:] = labels[2, 2:] = -100
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(3, 5)
    return losses[:, :length], logits[:, :length], labels[:, :length]


def main(rank: int, meeting: str, out: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    found = {"processes": num_processes()}
    constant, auto = aw.Constant(loss=-2.0), aw.load("auto")
    sharded, half = Sharded(aw.load("auto"), 12, 3), Sharded(aw.load("auto"), 12, 3, half=True)
    found["constant"], found["sharded"] = [], []
    for step, parts in enumerate(PARTS):
        losses, logits, labels, indices = batch(parts[rank])
        found["constant"].append(weigh_global(constant, losses, logits, labels, step / 4))
        own = weigh_global(auto, losses, logits, labels, step / 4, indices)
        found["sharded"].append((weigh_global(sharded, losses, logits, labels, step / 4, indices), own))
        weigh_global(half, losses, logits, labels, step / 4, indices)
    found["memory"] = auto.state_dict()
    found["whole"], found["halves"] = sharded.whole().state_dict(), half.whole().state_dict()
    found["share"] = sharded.state_dict()
    losses, logits, labels, indices = batch(PARTS[0][rank])
    found["half"] = weigh_global(constant, losses.bfloat16(), logits.bfloat16(), labels, 0.0)
    losses, logits, labels = tokens(5) if rank == 0 else tuple(one[1:] for one in tokens(3))
    sentences = torch.arange(3) if rank == 0 else torch.arange(3, 5)
    remembering = aw.load("auto")
    found["refused"] = []
    for weigher in (remembering, Sharded(aw.load("auto"), 25, 4)):
        weigh_global(weigher, losses, logits, labels, 0.0, sentences)
        try:
            weigh_global(weigher, *tokens(3), 0.1, torch.arange(3))
        except aw.UserError as error:
            found["refused"].append(str(error))
    found["token_memory"] = remembering.state_dict()
    found["tokens"] = weigh_global(constant, losses, logits, labels, 0.9)
    torch.save(found, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
