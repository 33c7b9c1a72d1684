"""Each rival does what it claims, on toys where the right answer is known."""

import copy
import json
import re
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import autoweight as aw
from autoweight.cli.run import run
from autoweight.config import TrainingConfig
from autoweight.data.corruptions import uniform_noise
from autoweight.data.loader import Batch, Loader
from autoweight.methods import METHODS, TrainingFacts, make_method, told_of
from autoweight.methods.coteaching import CoTeaching, smallest
from autoweight.methods.elr import ELR, regularised
from autoweight.methods.gce import GCE
from autoweight.methods.l2rw import L2RW, agreement_weights
from autoweight.methods.mentor import Mentor, Seen, fit_mentor
from autoweight.methods.mentornet import MentorNet
from autoweight.methods.method import trainable
from autoweight.methods.mwnet import MWNet
from autoweight.recipes import get_recipe
from autoweight.runs.mentor import learn_mentor
from autoweight.training.ahead import losses_at, ready_forward_mode, slopes_along
from autoweight.training.checks import check_method
from autoweight.training.loop import Training, train
from autoweight.training.steps import Slot

from .conftest import make_blobs
from .settings import RIVALS, SETTINGS
from .test_captured import rival_slot

CONFIG = TrainingConfig(epochs=12, batch_size=16, num_stages=3, drop_stages=(), learning_rate=0.05)


def with_norm(outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, outputs))


def linear() -> nn.Module:
    return nn.Linear(2, 3)


def double_losses(outputs, labels):
    return cross_entropy(outputs, labels, reduction="none")


def batch_of(samples, count=16, start=0):
    rows = torch.arange(start, start + count)
    return Batch(samples.inputs[rows], samples.labels[rows], rows)


def begun(method, make_model=with_norm, config=CONFIG, noise=0.6):
    """A method with a network in double precision, so that small differences can be told from rounding."""
    samples = uniform_noise(make_blobs(64), noise, seed=1)
    torch.manual_seed(3)
    slot = Slot(make_model(), Loader(samples, 16, seed=0), method, config, make_model=make_model)
    for network in method.networks:
        network.double().train()
    method.setup = replace(
        method.setup,
        look=lambda model, inputs, labels: (lambda out: (out.detach(), double_losses(out, labels)))(model(inputs)),
        ahead=lambda model, inputs, labels, params: losses_at(model, inputs, labels, params, double_losses),
        slopes=lambda model, inputs, labels, along: slopes_along(model, inputs, labels, along, double_losses),
    )
    samples = replace(samples, inputs=samples.inputs.double())
    trusted = replace(make_blobs(32, seed=9), inputs=make_blobs(32, seed=9).inputs.double())
    return slot, batch_of(samples), batch_of(trusted)


def trusted_loss_after(model, params, weights, batch, trusted, rate):
    """The plain computation: a step with these weights, and the trusted loss there, with all derivatives."""
    losses = losses_at(model, batch.inputs, batch.labels, params, double_losses)
    gradient = torch.autograd.grad((weights(losses) * losses).sum(), params, create_graph=True)
    there = [param - rate * own for param, own in zip(params, gradient, strict=True)]
    return losses_at(model, trusted.inputs, trusted.labels, there, double_losses).mean()


def test_slopes_are_dot_products_of_gradients_through_batch_statistics_and_leave_no_trace():
    ready_forward_mode()
    torch.manual_seed(0)
    model, blobs = with_norm().double(), make_blobs(10)
    inputs, direction = blobs.inputs.double(), [torch.randn_like(param) for param in model.parameters()]
    before = copy.deepcopy(model.state_dict())
    slopes = slopes_along(model, inputs, blobs.labels, direction, double_losses)
    losses_at(model, inputs, blobs.labels, list(model.parameters()), double_losses)
    assert all(torch.equal(one, two) for one, two in zip(before.values(), model.state_dict().values(), strict=True))
    for number, slope in enumerate(slopes):
        loss = double_losses(model(inputs), blobs.labels)[number]
        gradient = torch.autograd.grad(loss, list(model.parameters()))
        assert_close(slope, sum((one * two).sum() for one, two in zip(gradient, direction, strict=True)))

    def moved(by):
        params = [param + by * own for param, own in zip(model.parameters(), direction, strict=True)]
        return losses_at(model, inputs, blobs.labels, params, double_losses)

    assert_close(slopes, (moved(1e-5) - moved(-1e-5)) / 2e-5, rtol=1e-6, atol=1e-8)


def test_l2rw_weighs_as_the_second_order_computation_and_finite_differences_do():
    method = L2RW()
    _, batch, trusted = begun(method)
    model, params = method.networks[0], trainable(method.networks[0])
    slopes = method.setup.slopes(model, batch.inputs, batch.labels, method.trusted_gradient(trusted))

    weights = torch.zeros(16, dtype=torch.double, requires_grad=True)
    loss = trusted_loss_after(model, params, lambda losses: weights, batch, trusted, rate=1.0)
    (gain,) = torch.autograd.grad(loss, weights)
    assert_close(slopes, -gain)
    expected = (-gain).clamp(min=0) / (-gain).clamp(min=0).sum()
    assert_close(agreement_weights(slopes), expected)
    assert 0 < int((expected > 0).sum()) < 16
    for number in range(16):
        nudge = 1e-4 * torch.eye(16, dtype=torch.double)[number]
        up, down = (
            trusted_loss_after(model, params, lambda losses, by=by: by, batch, trusted, 1.0) for by in (nudge, -nudge)
        )
        assert_close(-slopes[number], (up - down) / 2e-4, rtol=1e-4, atol=1e-6)


def test_l2rw_steps_by_those_weights_once_through_batch_norm():
    method = L2RW(total=0.5)
    slot, batch, trusted = begun(method)
    other = copy.deepcopy(method.networks[0])
    slopes = method.setup.slopes(other, batch.inputs, batch.labels, method.trusted_gradient(trusted))
    losses = double_losses(other(batch.inputs), batch.labels)
    (losses * agreement_weights(slopes, 0.5)).sum().backward()
    slot.step(batch, 0.0, trusted)
    for own, twin in zip(method.networks[0].parameters(), other.parameters(), strict=True):
        assert_close(own, twin - 0.05 * twin.grad)
    for own, twin in zip(method.networks[0].buffers(), other.buffers(), strict=True):
        assert torch.equal(own, twin)  # running statistics of one pass over the batch, not of looks ahead


def test_agreement_weights_by_hand():
    assert agreement_weights(torch.tensor([3.0, -1.0, 1.0])).tolist() == [0.75, 0, 0.25]
    assert agreement_weights(torch.tensor([3.0, -1.0, 1.0]), total=2.0).tolist() == [1.5, 0, 0.5]
    assert agreement_weights(torch.tensor([-3.0, -1.0])).tolist() == [0, 0]


@pytest.mark.parametrize("normalise", [False, True])
def test_mwnet_learns_by_the_second_order_gradient_and_finite_differences(normalise):
    method = MWNet(hidden=5, normalise=normalise)
    _, batch, trusted = begun(method)
    model, weight_net = method.networks
    params, named = trainable(model), dict(weight_net.named_parameters())

    def after(values):
        def weigh(losses):
            weights = functional_call(weight_net, values, (losses.detach().unsqueeze(-1),))
            return weights / (weights.sum() if normalise else 16)

        return trusted_loss_after(model, params, weigh, batch, trusted, rate=0.05)

    plain = torch.autograd.grad(after(named), list(named.values()))
    direction = {name: torch.randn_like(value) for name, value in named.items()}
    up, down = (
        after({name: value + by * direction[name] for name, value in named.items()}).detach() for by in (1e-4, -1e-4)
    )
    along = sum((one * two).sum() for one, two in zip(plain, direction.values(), strict=True))
    assert_close(along, (up - down) / 2e-4, rtol=1e-5, atol=1e-10)

    method.step(batch, 0.0, trusted)
    for own, expected in zip(weight_net.parameters(), plain, strict=True):
        assert_close(own.grad, expected)


@pytest.mark.parametrize("exact", [False, True])
def test_mwnet_steps_by_its_weights_before_or_after_they_learned(exact):
    method = MWNet(exact=exact, rate=0.01)
    _, batch, trusted = begun(method)
    before = copy.deepcopy(method.networks)
    method.step(batch, 0.0, trusted)
    model, weight_net = before[0], (method.networks if exact else before)[1]
    losses = double_losses(model(batch.inputs), batch.labels)
    (losses * weight_net(losses.detach().unsqueeze(-1)).detach()).mean().backward()
    for own, twin in zip(method.networks[0].parameters(), model.parameters(), strict=True):
        assert_close(own, twin - 0.05 * twin.grad)
    for own, twin in zip(method.networks[0].buffers(), model.buffers(), strict=True):
        assert torch.equal(own, twin)
    assert method.optimizers[1].param_groups[0]["lr"] == 0.01


def test_the_weight_net_keeps_its_own_learning_rate():
    slot, _, _ = begun(MWNet())
    slot.set_learning_rate(0.3)
    assert [optimizer.param_groups[0]["lr"] for optimizer in slot.method.optimizers] == [0.3, 1e-3]


def trained(method, make_model=with_norm, noise=0.6, count=240, **changes):
    """A training on blobs of which so many labels were redrawn."""
    noisy = uniform_noise(make_blobs(count), noise, seed=1)
    training = Training(make_model, noisy, make_blobs(60, seed=9), method, seed=2, name="mine")
    (one,) = train([training], replace(CONFIG, **changes)).trained
    assert one.failure == ""
    return one.slot, noisy


@pytest.mark.parametrize("kind", [L2RW, MWNet])
def test_wrong_labels_count_less(kind):
    method = MWNet(rate=0.005, normalise=True) if kind is MWNet else L2RW(total=0.5)
    _, noisy = trained(method)
    network = method.networks[0].train()
    batch = Batch(noisy.inputs, noisy.labels, torch.arange(240))
    trusted = make_blobs(60, seed=9)
    if kind is L2RW:
        gradient = method.trusted_gradient(Batch(trusted.inputs, trusted.labels, torch.arange(60)))
        weights = agreement_weights(method.setup.slopes(network, batch.inputs, batch.labels, gradient))
    else:
        weights = method.weigh(method.setup.look(network, batch.inputs, batch.labels)[1].detach())
    assert weights[noisy.clean].mean() > 2 * weights[~noisy.clean].mean()


def test_trusted_samples_are_as_many_as_asked_for():
    seen = []

    class Watched(L2RW):
        def step(self, batch, progress, trusted=None):
            seen.append(trusted)
            return super().step(batch, progress, trusted)

    trained(Watched(trusted=12, trusted_batch=6), count=64)
    assert {len(batch.labels) for batch in seen} == {6}
    assert len({tuple(row) for batch in seen for row in batch.inputs.tolist()}) == 12
    assert torch.cat([batch.labels for batch in seen]).bincount().unique().numel() == 1  # classes in equal shares


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


def test_predefined_mentornet_by_hand():
    weigher = MentorNet(percentile=0.5, burn_in=0.2)
    logits, labels = torch.zeros(3, 2), torch.zeros(3).long()
    losses = torch.tensor([1.0, 2.0, 4.0])
    assert weigher.weigh(losses, logits, labels, progress=0.1).tolist() == [1, 1, 1]  # burning in
    assert weigher.weigh(losses, logits, labels, progress=0.2).tolist() == [1, 1, 0]
    assert weigher.weigh(losses + 2, logits, labels, progress=0.5).tolist() == [0, 0, 0]
    assert float(weigher.level) == pytest.approx(0.9 * 2 + 0.1 * 4)


def test_mentornet_remembers_the_last_losses_of_each_sample():
    weigher = MentorNet(percentile=0.5)
    weigher.reserve(4, 2, "cpu")
    logits, labels, indices = torch.zeros(3, 2), torch.zeros(3).long(), torch.tensor([3, 0, 1])
    for add in range(7):
        weigher.weigh(torch.tensor([1.0, 2.0, 4.0]) + add, logits, labels, progress=0.5, indices=indices)
    assert weigher.history[3, :, 0].tolist() == [3, 4, 5, 6, 7]
    assert_close(weigher.history[0, -1], torch.tensor([8.0, 8.0 - float(weigher.level)]))
    assert (weigher.history[2] == -1).all()


@pytest.fixture(scope="module")
def mentor_file(tmp_path_factory):
    """A mentor that learned on a small part of digits."""
    config = get_recipe("digits-noise")
    training = replace(config.training, epochs=20, num_stages=10, drop_stages=())
    path = tmp_path_factory.mktemp("mentor") / "mentor.safetensors"
    learn_mentor(replace(config, data=replace(config.data, train_size=500), training=training), seed=7, steps=150).save(
        path
    )
    return str(path)


def test_a_mentor_that_learned_on_digits_tells_wrong_labels_of_another_set(mentor_file):
    method = make_method("mentornet", TrainingFacts(torch.ones(3), torch.ones(1)), {"mentor": mentor_file})
    slot, noisy = trained(method, noise=0.5)
    weigher, samples = method.weigher, torch.arange(240)
    losses, labels = torch.zeros(240), torch.zeros(240).long()
    seen = Seen(weigher.history, torch.full_like(labels, weigher.mentor.unknown_label), torch.full_like(losses, 0.99))
    right = weigher.mentor(seen).sigmoid()
    assert right[noisy.clean].mean() > 0.8
    assert right[~noisy.clean].mean() < 0.3
    assert torch.equal(Mentor.load(mentor_file)(seen), weigher.mentor(seen))
    outputs, own = slot.method.setup.look(slot.model, noisy.inputs, noisy.labels)
    weights = weigher.weigh(own.detach(), outputs, noisy.labels, progress=0.99, indices=samples)
    assert weights[noisy.clean].mean() > 3 * weights[~noisy.clean].mean()


def test_a_mentor_learns_what_labels_tell():
    torch.manual_seed(0)
    labels = torch.randint(2, (600,))
    seen = Seen(torch.rand(600, 5, 2), labels, torch.rand(600))
    mentor = fit_mentor(seen, labels == 1, num_classes=2, steps=150)
    assert ((mentor(seen) > 0) == (labels == 1)).float().mean() > 0.95
    hidden = seen._replace(labels=torch.full_like(labels, mentor.unknown_label))
    assert mentor(hidden).sigmoid().mean() == pytest.approx(0.5, abs=0.2)


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
    told = {name: told_of(name) for name in METHODS}
    assert {name for name, what in told.items() if "trusted samples" in what.lower()} == {
        "early_stop", "law", "l2rw", "mwnet",
    }  # fmt: skip
    assert {name for name, what in told.items() if "noise rate" in what} == {"mentornet", "coteaching"}
    assert told["auto"] == told["gce"] == told["elr"] == "Nothing"
    with pytest.raises(aw.UserError, match="did you mean 'elr'"):
        told_of("elrr")


class Forwardless(torch.autograd.Function):
    """Says how it goes backwards, but not forwards."""

    @staticmethod
    def forward(ctx, inputs):
        return inputs.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class OnlyBackwards(nn.Linear):
    def forward(self, inputs):
        return Forwardless.apply(super().forward(inputs))


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
        ("mentornet.mentor=missing", "there is no mentor in missing"),
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


@pytest.mark.parametrize("method", [L2RW(), MWNet()])
def test_a_network_that_cannot_be_differentiated_forward_is_refused(method):
    blobs = make_blobs(32)
    with pytest.raises(aw.UserError, match="mine looks ahead, but a layer of the network cannot be differentiated"):
        check_method("mine", method, lambda: OnlyBackwards(2, 3), blobs, blobs, CONFIG)
    check_method("mine", CoTeaching(), lambda: OnlyBackwards(2, 3), blobs, blobs, CONFIG)


@pytest.mark.parametrize("method", [CoTeaching(), ELR()])
def test_a_task_without_classes_is_refused(method):
    blobs = make_blobs(32)
    with pytest.raises(aw.UserError, match="is for classification, not for regression"):
        check_method("mine", method, linear, blobs, blobs, replace(CONFIG, task="regression"))
    check_method(
        "mine", L2RW(), lambda: nn.Linear(2, 1), *[SETTINGS["regression"].train] * 2, replace(CONFIG, task="huber")
    )


def test_no_trusted_set_is_said_in_a_sentence():
    blobs = make_blobs(32)
    training = Training(linear, blobs, blobs.take(torch.arange(0)), L2RW(), seed=0)
    with pytest.raises(aw.UserError, match="the validation set is empty: hold out some trusted samples"):
        train([training], CONFIG)


def test_a_mentor_says_what_it_lacks(tmp_path, mentor_file):
    weigher = MentorNet(mentor=mentor_file)
    with pytest.raises(aw.UserError, match="call reserve first, and pass indices="):
        weigher.weigh(torch.ones(2), torch.zeros(2, 3), torch.zeros(2).long(), progress=0.5)
    with pytest.raises(aw.UserError, match="the mentor knows 10 classes, but there are 3"):
        MentorNet(mentor=mentor_file, heed_labels=True).reserve(8, 3, "cpu")
    aw.Strategy(torch.zeros(1, 3)).save(tmp_path / "strategy")
    (tmp_path / "cut").write_bytes(b"not a mentor")
    with pytest.raises(aw.UserError, match="but holds no mentor"):
        Mentor.load(tmp_path / "strategy")
    with pytest.raises(aw.UserError, match="truncated or holds no mentor"):
        Mentor.load(tmp_path / "cut")


def test_all_rivals_are_compared_by_a_command(tmp_path, mentor_file, capsys):
    words = "compare digits-noise --methods uniform,l2rw,mwnet,mentornet,coteaching,gce,elr,oracle --training.epochs 2"
    knobs = ("coteaching.drop=0.4", f"mentornet.mentor={mentor_file}", "l2rw.total=0.3", "mwnet.exact=true")
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
