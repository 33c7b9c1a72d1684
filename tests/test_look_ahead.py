"""l2rw and mwnet: the look-ahead against the plain second-order computation and finite differences."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.testing import assert_close

import autoweight as aw
from autoweight.data.corruptions import uniform_noise
from autoweight.data.loader import Batch
from autoweight.methods.coteaching import CoTeaching
from autoweight.methods.l2rw import L2RW, agreement_weights
from autoweight.methods.method import trainable
from autoweight.methods.mwnet import MWNet
from autoweight.training.ahead import losses_at, ready_forward_mode, slopes_along, slopes_by_difference
from autoweight.training.checks import check_method
from autoweight.training.loop import Training, train

from .conftest import make_blobs
from .rivals import CONFIG, begun, double_losses, trained, with_norm


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
    slopes = method.setup.slopes(model, batch.inputs, batch.labels, method.trusted_gradient(trusted), torch.zeros(16))

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
    slopes = method.setup.slopes(other, batch.inputs, batch.labels, method.trusted_gradient(trusted), torch.zeros(16))
    losses = double_losses(other(batch.inputs), batch.labels)
    (losses * agreement_weights(slopes, 0.5)).sum().backward()
    slot.step(batch, 0.0, trusted)
    for own, twin in zip(method.networks[0].parameters(), other.parameters(), strict=True):
        assert_close(own, twin - 0.05 * twin.grad)
    for own, twin in zip(method.networks[0].buffers(), other.buffers(), strict=True):
        assert torch.equal(own, twin)  # running statistics of one pass over the batch, not of looks ahead


@pytest.mark.parametrize("halved", [False, True])
def test_half_precision_tells_slopes_by_a_difference_that_is_exact_enough(halved):
    slot, _ = trained(L2RW(total=0.5), make_model=lambda: with_norm(3))
    model, blobs = slot.model.train(), uniform_noise(make_blobs(60, seed=4), 0.6, seed=2)
    direction = slot.method.trusted_gradient(Batch(*(part[:32] for part in (blobs.inputs, blobs.true_labels)), None))
    exact = slopes_along(model, blobs.inputs, blobs.labels, direction, double_losses)
    before = copy.deepcopy(model.state_dict())
    with torch.autocast("cpu", torch.bfloat16, enabled=halved), torch.no_grad():
        here = losses_at(model, blobs.inputs, blobs.labels, trainable(model), float_losses)
        slopes = slopes_by_difference(model, blobs.inputs, blobs.labels, direction, float_losses, here)
    assert float(torch.corrcoef(torch.stack([slopes, exact]))[0, 1]) > (0.95 if halved else 0.99)
    assert all(torch.equal(one, two) for one, two in zip(before.values(), model.state_dict().values(), strict=True))


def float_losses(outputs, labels):
    return double_losses(outputs.float(), labels)


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


@pytest.mark.parametrize("kind", [L2RW, MWNet])
def test_wrong_labels_count_less(kind):
    method = MWNet(rate=0.005, normalise=True) if kind is MWNet else L2RW(total=0.5)
    _, noisy = trained(method)
    network = method.networks[0].train()
    batch = Batch(noisy.inputs, noisy.labels, torch.arange(240))
    trusted = make_blobs(60, seed=9)
    if kind is L2RW:
        gradient = method.trusted_gradient(Batch(trusted.inputs, trusted.labels, torch.arange(60)))
        weights = agreement_weights(
            method.setup.slopes(network, batch.inputs, batch.labels, gradient, torch.zeros(240))
        )
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


@pytest.mark.parametrize("method", [L2RW(), MWNet()])
def test_a_network_that_cannot_be_differentiated_forward_is_refused(method):
    blobs = make_blobs(32)
    said = (
        r"^mine looks ahead, but a layer of the network \(OnlyBackwards\) cannot be differentiated forward: use another"
    )
    with pytest.raises(aw.UserError, match=said):
        check_method("mine", method, lambda: nn.Sequential(OnlyBackwards(2, 3), nn.ReLU()), blobs, blobs, CONFIG)
    check_method("mine", CoTeaching(), lambda: OnlyBackwards(2, 3), blobs, blobs, CONFIG)
    half = replace(CONFIG, precision="bfloat16")
    check_method("mine", method, lambda: OnlyBackwards(2, 3), blobs, blobs, half, "cuda")
    with pytest.raises(aw.UserError, match="draws random numbers, as dropout does"):
        check_method("mine", method, lambda: nn.Sequential(nn.Dropout(), nn.Linear(2, 3)), blobs, blobs, half, "cuda")


def test_no_trusted_set_is_said_in_a_sentence():
    blobs = make_blobs(32)
    training = Training(with_norm, blobs, blobs.take(torch.arange(0)), L2RW(), seed=0)
    with pytest.raises(aw.UserError, match="the validation set is empty: hold out some trusted samples"):
        train([training], CONFIG)
