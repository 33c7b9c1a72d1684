"""Weights in the real PyTorch Lightning."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import autoweight as aw
from autoweight.lightning import Weighting

from . import two_lightnings
from .conftest import make_blobs

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice, and what its own dependencies deprecate

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}


class Net(LightningModule):
    """Weighted where it has a weighting, and plain where it has none."""

    def __init__(self, weighting=None):
        super().__init__()
        self.layer, self.weighting, self.seen = nn.Linear(2, 3), weighting, []

    def training_step(self, batch):
        inputs, labels, indices = batch
        logits = self.layer(inputs)
        if self.weighting is None:
            return cross_entropy(logits, labels)
        losses = cross_entropy(logits, labels, reduction="none")
        loss = self.weighting.loss(self, losses, logits, labels, indices)
        self.seen.append({name: float(value) for name, value in self.trainer.logged_metrics.items()})
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fitted(weigher=None, ckpt=None, shuffle=True, net=None, **settings):
    seed_everything(0, verbose=False)
    weighting = None if weigher is None else Weighting(weigher)
    net = net or Net(weighting)
    blobs = make_blobs(44)
    rows = aw.Indexed(TensorDataset(blobs.inputs, blobs.labels))
    settings = {"max_epochs": 3, "enable_checkpointing": False} | settings
    trainer = Trainer(callbacks=[weighting] if weighting else [], **QUIET, **settings)
    trainer.fit(net, DataLoader(rows, batch_size=8, shuffle=shuffle), ckpt_path=ckpt)
    return net, trainer


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 4}, {"precision": "bf16-mixed"}], ids=str)
def test_ones_change_nothing_to_the_bit(settings):
    ones, plain = fitted(aw.Uniform(), **settings)[0], fitted(**settings)[0]
    assert torch.equal(ones.layer.weight, plain.layer.weight)
    assert torch.equal(ones.layer.bias, plain.layer.bias)


class Recorder(aw.Weigher):
    """Weights 2, 1, 0, 1, ..., and what it was told."""

    def __init__(self):
        self.progress, self.sizes = [], []

    def weigh(self, losses, logits, labels, progress, indices=None):
        self.progress.append(progress)
        self.sizes.append(len(losses))
        return torch.tensor([2.0, 1.0, 0.0, 1.0]).repeat(2)[: len(losses)]


def test_progress_is_the_trainers_and_mean_and_effective_size_are_logged():
    recorder = Recorder()
    net, _ = fitted(recorder, max_epochs=2)
    assert recorder.sizes == [8, 8, 8, 8, 8, 4] * 2  # a last batch that is not full is weighed too
    assert recorder.progress == [step / 12 for step in range(12)]
    assert net.seen[1]["weights/mean"] == 1.0
    assert net.seen[1]["weights/effective_sample_size"] == pytest.approx(8**2 / (2 * (4 + 1 + 1)))
    accumulated = Recorder()
    fitted(accumulated, max_epochs=1, accumulate_grad_batches=3)
    assert accumulated.progress == [0.0] * 3 + [0.5] * 3


class ByHand(Net):
    """Two optimisers, and every second batch no step."""

    def __init__(self, weighting=None):
        super().__init__(weighting)
        self.automatic_optimization = False

    def training_step(self, batch, batch_index):
        self.manual_backward(super().training_step(batch))
        for optimizer in self.optimizers() if batch_index % 2 else []:
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD([one], lr=0.1) for one in self.layer.parameters()]


@pytest.mark.parametrize(("settings", "batches"), [({"max_epochs": 2}, 12), ({"max_epochs": -1, "max_steps": 8}, 8)])
def test_steps_by_hand_of_two_optimisers_are_no_faster_progress(settings, batches):
    recorder = Recorder()
    weighting = Weighting(recorder)
    blobs = make_blobs(44)
    rows = DataLoader(aw.Indexed(TensorDataset(blobs.inputs, blobs.labels)), batch_size=8)
    Trainer(callbacks=[weighting], enable_checkpointing=False, **QUIET, **settings).fit(ByHand(weighting), rows)
    done = [batch - batch % 2 if "max_steps" in settings else batch for batch in range(batches)]
    assert recorder.progress == [one / batches for one in done]


class Shared(Net):
    """One step for training and validation, as many modules have it."""

    def validation_step(self, batch):
        self.log("valid", self.training_step(batch))

    test_step = validation_step


def test_validation_is_not_weighed_and_not_remembered():
    rows = DataLoader(aw.Indexed(TensorDataset(torch.randn(8, 2), torch.zeros(8).long())), batch_size=8)
    recorder = Recorder()
    weighting = Weighting(recorder)
    net = Shared(weighting)
    trainer = Trainer(callbacks=[weighting], max_epochs=2, enable_checkpointing=False, **QUIET)
    trainer.fit(net, rows, rows)  # checks its validation before it trains
    assert recorder.sizes == [8, 8]
    found = Trainer(**QUIET).test(net, rows, verbose=False)[0]["valid"]
    inputs, labels, _ = next(iter(rows))
    assert found == pytest.approx(float(cross_entropy(net.layer(inputs), labels)))


def test_training_goes_on_from_a_checkpoint_as_if_never_stopped(tmp_path):
    _, trainer = fitted(aw.load("auto"), max_epochs=2, shuffle=False)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    again, _ = fitted(aw.load("auto"), ckpt=tmp_path / "half.ckpt", max_epochs=4, shuffle=False)
    whole, _ = fitted(aw.load("auto"), max_epochs=4, shuffle=False)
    assert torch.equal(again.layer.weight, whole.layer.weight)
    for name, value in whole.weighting.weigher.state_dict().items():
        assert torch.equal(again.weighting.weigher.state_dict()[name], value), name


def test_a_checkpoint_holds_what_was_remembered(tmp_path):
    net, trainer = fitted(aw.load("auto"), max_epochs=2)
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    kept = torch.load(tmp_path / "two.ckpt", weights_only=False)["callbacks"]["Weighting"]
    assert torch.equal(kept["margin"], net.weighting.weigher.state_dict()["margin"])
    loaded = Weighting(aw.load("auto"))
    loaded.load_state_dict(kept)
    assert torch.equal(loaded.state_dict()["margin"], kept["margin"])  # also before the first batch


class Endless(IterableDataset):
    def __iter__(self):
        blobs = make_blobs(8)
        while True:
            yield from zip(blobs.inputs, blobs.labels, range(8), strict=True)


def test_a_training_without_a_known_end_is_refused():
    for settings in ({"max_time": {"seconds": 60}, "max_epochs": None}, {"max_epochs": -1}):
        with pytest.raises(aw.UserError, match="no known end: give the trainer max_epochs or max_steps"):
            fitted(aw.Uniform(), **settings)
    weighting = Weighting(aw.Uniform())
    trainer = Trainer(callbacks=[weighting], max_epochs=2, enable_checkpointing=False, **QUIET)
    with pytest.raises(aw.UserError, match="no known end"):
        trainer.fit(Net(weighting), DataLoader(Endless(), batch_size=4))


def test_a_trainer_that_does_not_know_the_weighting_is_refused():
    with pytest.raises(aw.UserError, match="checkpoints would lack its memory"):
        fitted(aw.Uniform(), net=Net(Weighting(aw.Uniform())))
    with pytest.raises(aw.UserError, match="takes a weigher such as"):
        Weighting("auto")


def test_two_processes_weigh_the_global_batch_and_remember_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    subprocess.run([sys.executable, two_lightnings.__file__, str(tmp_path)], check=True, timeout=240)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    assert [rank["sizes"] for rank in ranks] == [[16, 16, 12], [16, 16, 12]]  # 43 samples and one again, on both
    assert torch.equal(ranks[0]["weight"], ranks[1]["weight"])
    for name, value in ranks[0]["memory"].items():
        assert torch.equal(value, ranks[1]["memory"][name]), name
    assert int(ranks[0]["memory"]["counts"][:, 0].sum()) == 43
