"""What a method or a weigher of one's own can do, through the same training as all others."""

from functools import partial

import pytest
import torch
from torch import nn

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.corruptions import uniform_noise
from autoweight.methods import METHODS, TrainingFacts, make_method
from autoweight.methods.method import Weighted
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.training.loop import Training, train

from .conftest import make_blobs
from .rivals import LookAhead, Rationed, Twins

CONFIG = TrainingConfig(epochs=6, batch_size=16, num_stages=3, drop_stages=(), learning_rate=0.05)


def linear():
    return nn.Linear(2, 3)


def trained(method, checkpoint=None, on_stage=lambda report: None, config=CONFIG, val_size=48):
    noisy = uniform_noise(make_blobs(96), 0.6, seed=1)
    training = Training(linear, noisy, make_blobs(val_size, seed=9), method, seed=2, on_stage=on_stage, name="mine")
    (one,) = train([training], config, checkpoint).trained
    assert one.failure == ""
    return one.slot, noisy


def test_a_rival_that_looks_ahead_tells_wrong_labels_by_trusted_ones():
    method = LookAhead()
    _, noisy = trained(method)
    weights = method.mean_weight
    assert weights[noisy.clean].mean() > 2 * weights[~noisy.clean].mean()


def test_a_rival_has_its_line_in_the_registry_and_its_knobs(monkeypatch):
    monkeypatch.setitem(METHODS, "look_ahead", LookAhead)
    facts = TrainingFacts(torch.ones(3), torch.ones(6).bool())
    assert make_method("look_ahead", facts, {"rate": 0.5}).rate == 0.5
    with pytest.raises(aw.UserError, match="did you mean 'rate'"):
        make_method("look_ahead", facts, {"rat": 0.5})


def test_two_networks_start_apart_and_both_are_evaluated():
    slot, _ = trained(Twins())
    first, second = slot.method.networks
    assert not torch.equal(first.weight, second.weight)
    assert slot.evaluated() == {"twin": second}
    again, _ = trained(Twins())
    assert torch.equal(again.method.networks[1].weight, second.weight)  # its start is fixed by the seed


class KilledError(Exception):
    pass


@pytest.mark.parametrize("make", [LookAhead, Twins, lambda: Weighted(Rationed())], ids=["ahead", "twins", "rationed"])
@pytest.mark.parametrize("killed_after", [0, 1])
def test_a_killed_rival_goes_on_to_the_same_bits(tmp_path, make, killed_after):
    def kill(report):
        if report.stage == killed_after:
            raise KilledError

    checkpoint = CheckpointFile(tmp_path / "run")
    with pytest.raises(KilledError):
        trained(make(), checkpoint, kill)
    resumed, whole = trained(make(), checkpoint)[0], trained(make())[0]
    tensors = list(zip(resumed.tensors(), whole.tensors(), strict=True))
    assert len(tensors) > 4
    assert all(torch.equal(one, two) for one, two in tensors)


def test_what_is_prepared_is_not_prepared_again_after_a_kill(tmp_path):
    def kill(report):
        if report.stage == 1:
            raise KilledError

    first, second = LookAhead(), LookAhead()
    with pytest.raises(KilledError):
        trained(first, CheckpointFile(tmp_path / "run"), kill)
    trained(second, CheckpointFile(tmp_path / "run"))
    assert (first.prepared, second.prepared) == (1, 0)


def test_a_rival_that_learns_from_trusted_samples_says_where_they_are_too_few():
    with pytest.raises(aw.UserError, match="mine learns from trusted samples in batches of 16, but there are only 12"):
        trained(LookAhead(), val_size=12)


def test_a_rival_of_another_task_is_refused():
    samples = make_blobs(48)
    floats = type(samples).of(samples.inputs, samples.inputs[:, 0], task="regression")
    training = Training(partial(nn.Linear, 2, 1), floats, floats, Twins(), seed=0)
    with pytest.raises(aw.UserError, match="Twins is for classification, not for regression"):
        train([training], TrainingConfig(**vars(CONFIG) | {"task": "regression"}))


def test_nothing_is_captured_that_does_not_say_so():
    class Plain(aw.Weigher):
        def weigh(self, losses, logits, labels, progress, indices=None):
            return torch.ones_like(losses)

    assert not Plain().capturable
    assert not Weighted(Plain()).capturable
    assert not LookAhead().capturable
    assert Weighted(None).capturable
    assert Weighted(Rationed()).capturable


def test_a_state_of_another_weigher_is_refused():
    weigher = Rationed()
    weigher.reserve(10, 3, "cpu")
    with pytest.raises(aw.UserError, match="Rationed was given a state that lacks seen: give what"):
        weigher.load_state_dict({})
    with pytest.raises(aw.UserError, match=r"seen of shape \(3,\), but was given \(4,\): that is of another data set"):
        weigher.load_state_dict({"seen": torch.zeros(4)})
    assert aw.Focal().state_dict() == {}
