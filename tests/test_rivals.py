"""Each rival does what it claims, on toys where the right answer is known."""

import copy
import json
import re
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import autoweight as aw
from autoweight.cli.run import run
from autoweight.data.corruptions import uniform_noise
from autoweight.methods import METHODS, told_of
from autoweight.methods.coteaching import CoTeaching, smallest
from autoweight.methods.elr import ELR, regularised
from autoweight.methods.gce import GCE
from autoweight.methods.l2rw import L2RW
from autoweight.training.checks import check_method

from .conftest import make_blobs
from .rivals import CONFIG, batch_of, begun, double_losses, trained, with_norm
from .settings import RIVALS, SETTINGS, one_target
from .test_captured import rival_slot


def test_coteaching_drops_the_largest_losses():
    losses = torch.tensor([0.5, 3.0, 0.1, 0.5, 2.0])
    assert smallest(losses, torch.tensor(0.4)).tolist() == [1, 0, 1, 1, 0]
    assert smallest(losses, torch.tensor(0.0)).tolist() == [1] * 5
    assert smallest(losses, torch.tensor(0.99)).tolist() == [0, 0, 1, 0, 0]
    progress = torch.tensor([0.0, 0.05, 0.1, 0.7], dtype=torch.double)
    method = CoTeaching(drop=0.4, rise=0.1)
    assert_close(method.dropped(progress), torch.tensor([0.0, 0.2, 0.4, 0.4], dtype=torch.double))
    assert_close(CoTeaching(drop=0.4, rise=0.0).dropped(progress), torch.full((4,), 0.4, dtype=torch.double))


def test_coteaching_networks_choose_for_each_other():
    method = CoTeaching(drop=0.5, rise=0.0)
    _, batch, _ = begun(method)
    twins = copy.deepcopy(method.networks)
    losses = [double_losses(twin(batch.inputs), batch.labels) for twin in twins]
    chosen = [own.detach().argsort()[:8] for own in losses]
    assert set(chosen[0].tolist()) != set(chosen[1].tolist())
    method.step(batch, 0.5)
    for network, twin, own, taught in zip(method.networks, twins, losses, reversed(chosen), strict=True):
        own[taught].mean().backward()
        for one, two in zip(network.parameters(), twin.parameters(), strict=True):
            assert_close(one, two - 0.05 * two.grad)


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.6])
def test_coteaching_estimates_how_many_labels_are_wrong(noise):
    method = CoTeaching(rise=0.3)
    _, noisy = trained(method, noise=noise, count=480)
    wrong = float((~noisy.clean).float().mean())
    assert float(method.dropped(torch.tensor(1.0))) == pytest.approx(wrong, abs=0.06)


def test_coteaching_reports_the_mean_of_both_by_name():
    method = CoTeaching(drop=0.3)
    slot, noisy = trained(method, count=64)
    (name, mean), (one, two) = *slot.evaluated().items(), method.networks
    assert name == "mean_of_both"
    inputs = noisy.inputs
    for network in (one, two, mean):
        network.eval()
    assert_close(mean(inputs).softmax(-1), (one(inputs).softmax(-1) + two(inputs).softmax(-1)) / 2)


def test_elr_targets_are_the_running_mean_of_what_was_said():
    method = ELR(strength=2.0, keep=0.7)
    slot, _, _ = begun(method)
    samples = uniform_noise(make_blobs(64), 0.6, seed=1)
    method.networks[0].float()
    target = torch.zeros(16, 3)
    for _ in range(3):
        model = copy.deepcopy(method.networks[0])
        outputs = model(samples.inputs[:16])
        said = outputs.softmax(-1)
        target = 0.7 * target + 0.3 * said.detach()
        term = (1 - (said * target).sum(-1)).log().mean()
        (cross_entropy(outputs, samples.labels[:16]) + 2 * term).backward()
        momentum = [slot.method.optimizers[0].state[p].get("momentum_buffer") for p in method.networks[0].parameters()]
        expected = [
            param - 0.05 * (param.grad + (0 if before is None else 0.9 * before))
            for param, before in zip(model.parameters(), momentum, strict=True)
        ]
        method.step(batch_of(samples), 0.5)
        assert_close(method.targets[:16], target)
        for one, two in zip(method.networks[0].parameters(), expected, strict=True):
            assert_close(one, two, rtol=1e-4, atol=1e-6)
    assert not method.targets[16:].any()  # of samples that did not come


def test_elr_stays_finite_where_a_network_is_sure():
    outputs = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    terms, moved = regularised(outputs, torch.tensor([[1.0, 0.0], [1.0, 0.0]]), 0.7)
    terms.sum().backward()
    assert terms.isfinite().all()
    assert outputs.grad.isfinite().all()
    assert_close(moved[1], torch.tensor([0.7, 0.3]), atol=1e-3, rtol=0)


def test_gce_has_the_gradient_of_its_loss():
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.arange(6) % 3
    likelihood = logits.softmax(-1)[torch.arange(6), labels]
    (expected,) = torch.autograd.grad(((1 - likelihood**0.7) / 0.7).mean(), logits)
    losses = cross_entropy(logits, labels, reduction="none")
    weights = GCE(0.7).weigh(losses, logits, labels, progress=0.0)
    (gradient,) = torch.autograd.grad(aw.weighted_mean(losses, weights), logits)
    assert_close(gradient, expected)
    assert_close(weights, likelihood.detach() ** 0.7)
    assert (GCE(0.0).weigh(losses, logits, labels, progress=0.0) == 1).all()


class NoPeeking(TorchDispatchMode):
    """Forbids what makes the host wait for the data, which a captured step cannot."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        names = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique")
        assert func.overloadpacket.__name__ not in names, f"{func} at a captured step"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", [name for name, rival in RIVALS.items() if rival.method not in ("gce", "mentornet")])
def test_no_step_decides_by_the_data(name, monkeypatch):
    slot = rival_slot(RIVALS[name])
    batch = slot.loader.batch(slot.loader.plan(0).row(0))
    trusted = slot.trusted.batch(slot.trusted.plan(0).row(0)) if slot.trusted else None
    for optimizer in slot.method.optimizers:
        monkeypatch.setattr(optimizer, "step", lambda: None)  # on a CPU they count steps on the host
    slot.train_mode()
    with NoPeeking():
        slot.step(batch, torch.tensor(0.5, dtype=torch.double), trusted)


def test_every_method_says_what_it_is_told():
    told = {name: re.split("[.:]", told_of(name))[0] for name in METHODS}
    assert {name for name, what in told.items() if "trusted samples" in what.lower()} == {
        "early_stop", "law", "l2rw", "mwnet",
    }  # fmt: skip
    assert {name for name, what in told.items() if "noise rate" in what} == {"mentornet", "coteaching"}
    assert told["auto"] == told["gce"] == told["elr"] == "Nothing"
    with pytest.raises(aw.UserError, match="did you mean 'elr'"):
        told_of("elrr")


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ("coteaching.drop=1.0", "coteaching.drop goes from 0 to below 1, but is 1.0"),
        ("coteaching.drop=-0.1", "coteaching.drop goes from 0 to below 1"),
        ("coteaching.drop=half", "coteaching.drop takes a number, but got 'half'"),
        ("coteaching.rise=2.0", "coteaching.rise is a share of the training"),
        ("l2rw.trusted=-1", "l2rw.trusted is a number of samples"),
        ("l2rw.trusted_batch=-1", "l2rw.trusted_batch is a number of samples"),
        ("l2rw.trusted=20", "l2rw learns from trusted samples in batches of 64, but there are only 20"),
        ("l2rw.total=0", "l2rw.total is the sum of a batch's weights"),
        ("mwnet.rate=0.0", "mwnet.rate is a learning rate above 0"),
        ("mwnet.hidden=0", "mwnet.hidden is a number of units"),
        ("mwnet.trusted_batch=300", "mwnet learns from trusted samples in batches of 300, but there are only 250"),
        ("mentornet.percentile=0.0", "mentornet.percentile is a share above 0"),
        ("mentornet.burn_in=2.0", "mentornet.burn_in is a share of the training"),
        ("mentornet.mentor=missing", "missing: learn one with autoweight.runs.mentor"),
        ("mentornet.heed_labels=true", "mentornet.heed_labels is for a mentor"),
        ("gce.q=1.5", "gce's q goes from 0 to 1"),
        ("elr.strength=-1", "elr's strength must be at least 0"),
        ("elr.keep=1.0", "elr's keep goes from 0 to below 1"),
    ],
)
def test_wrong_knobs_get_one_sentence_before_a_folder_is_made(knobs, sentence, tmp_path):
    out, method = tmp_path / "run", knobs.partition(".")[0]
    with pytest.raises(aw.UserError, match=re.escape(sentence)):
        run(["train", "digits-noise", "--method", method, "--knob", knobs, "--out", str(out)])
    assert not out.exists()


@pytest.mark.parametrize("method", [CoTeaching(), ELR()])
def test_a_task_without_classes_is_refused(method):
    blobs = make_blobs(32)
    with pytest.raises(aw.UserError, match="is for classification, not for regression"):
        check_method("mine", method, with_norm, blobs, blobs, replace(CONFIG, task="regression"))
    check_method("mine", L2RW(), one_target, *[SETTINGS["regression"].train] * 2, replace(CONFIG, task="huber"))


def test_all_rivals_are_compared_by_a_command(tmp_path, capsys):
    words = "compare digits-noise --methods uniform,l2rw,mwnet,mentornet,coteaching,gce,elr,oracle --training.epochs 2"
    knobs = ("coteaching.drop=0.4", "mentornet.percentile=0.7", "l2rw.total=0.3", "mwnet.exact=true")
    settings = [word for knob in knobs for word in ("--knob", knob)]
    run(
        [
            *words.split(),
            "--training.num-stages",
            "2",
            "--training.drop-stages",
            "--out",
            str(tmp_path / "run"),
            *settings,
        ]
    )
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert {"l2rw", "mwnet", "mentornet", "coteaching", "gce", "elr"} < result["methods"].keys()
    assert all(values["test_accuracy"][0] > 0.3 for values in result["methods"].values())
    assert result["methods"]["coteaching"]["test_accuracy_mean_of_both"][0] > 0.3
    assert "mean of both" in capsys.readouterr().out
