"""What the ranks of test_streaming_ranks.py do, and one process alone."""

from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn

from autoweight import ranks
from autoweight.config import TrainingConfig
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.methods.method import Weighted
from autoweight.storage.shared import SharedCheckpointFile
from autoweight.strategy.shipped import load
from autoweight.training.loop import Training, train

from .conftest import make_blobs
from .test_streaming import Blobs

TRAINING = TrainingConfig(epochs=3, batch_size=16, num_stages=5, drop_stages=(3,), weight_decay=1e-3)
"""Nine steps, so that stages end in the middle of epochs."""


class StoppedError(Exception):
    """A training was stopped on purpose."""


def streamed(bad: tuple[int, ...]) -> Streamed:
    """Blobs that differ from visit to visit; the bad ones turn out to be so when they come up."""
    data = Blobs(noise=0.1, bad=bad)
    return Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)


def trained(
    data: Streamed, of: ranks.Ranks, checkpoint: Path | None = None, stop_after: int | None = None
) -> dict[str, torch.Tensor]:
    """What a training with `auto` comes to: the network, and what is remembered of each sample."""

    def stop(report):
        if report.stage == stop_after:
            raise StoppedError

    def make_model():
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))

    file = None if checkpoint is None else SharedCheckpointFile(checkpoint, of)
    method = Weighted(load("auto", class_counts=data.class_counts))
    job = Training(make_model, data, make_blobs(30, seed=9), method, seed=3, on_stage=stop)
    (one,) = train([job], TRAINING, file, of).trained
    assert not one.failure
    return one.slot.model.state_dict() | one.slot.method.tensors()


def over_ranks(rank: int, out: Path) -> None:
    """Whole trainings, and one that is stopped in the middle of an epoch and goes on."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    of = ranks.of_process_group()
    data = streamed(bad=(7, 20))
    found = {"bad": trained(data, of), "whole": trained(streamed(bad=()), of)}
    try:
        trained(streamed(bad=()), of, out / "half", stop_after=1)
    except StoppedError:
        found["gone on"] = trained(streamed(bad=()), of, out / "half")
    torch.save(found | {"skipped": data.bad}, out / f"found-{rank}")
