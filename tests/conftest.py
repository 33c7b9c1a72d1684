import os
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from autoweight.data import Samples
from autoweight.runs.folder import RunFolder
from autoweight.strategy import Rule
from autoweight.strategy.view import view_of

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


def batch_features(losses, logits, labels, names, values=None, label_feature="log_frequency"):
    """The normalised features of a batch, as a rule sees them, `[batch, features]`."""
    rule, view = Rule(tuple(names), label_feature), view_of(losses, logits, labels, values)
    return torch.stack([rule._column(name, view) for name in names], dim=-1)


def open_folder(path, config, resume=False):
    """A run's folder, which nobody holds any longer."""
    with RunFolder.open(path, config, resume) as folder:
        return folder


@pytest.fixture
def blobs() -> Samples:
    return make_blobs()


@pytest.fixture
def no_torchvision(monkeypatch):
    """torchvision is absent unless a test brings its own."""
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)


def give_torchvision(monkeypatch, **parts):
    """A torchvision with these modules alone."""
    for name, part in {"torchvision": SimpleNamespace(**parts), **parts}.items():
        module = ModuleType(name)
        module.__dict__.update(vars(part))
        monkeypatch.setitem(sys.modules, name if name == "torchvision" else f"torchvision.{name}", module)
