import os

import pytest
import torch

from autoweight.data import Samples

# Tests run side by side, and so do the commands that they start: two that use all cores slow each other down tenfold.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"


def make_blobs(count: int = 60, num_classes: int = 3, seed: int = 0) -> Samples:
    """Well separated Gaussian blobs in the plane: a network learns them in a few steps."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % num_classes
    angles = 2 * torch.pi * labels / num_classes
    centres = 3 * torch.stack([angles.cos(), angles.sin()], dim=1)
    return Samples.of(centres + torch.randn(count, 2, generator=generator), labels, num_classes)


@pytest.fixture
def blobs() -> Samples:
    return make_blobs()
