import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import autoweight as aw
from autoweight.finding.state import StateTracker
from autoweight.strategy.rule import weigh
from autoweight.strategy.stages import stage_at, stage_starts

number = st.floats(-20, 20, allow_nan=False, width=32)


def test_weigh_by_hand():
    features = torch.tensor([[1.0, -2.0], [0.5, 0.0]])
    params = torch.tensor([0.3, 0.1, -0.2])
    expected = [1 + math.tanh(0.3 - 0.2 - 0.2), 1 + math.tanh(0.15 - 0.2)]
    assert_close(weigh(features, params), torch.tensor(expected))


@given(st.lists(st.tuples(number, number), min_size=1, max_size=8), number, number, number)
def test_weights_lie_between_0_and_2(rows, first, second, bias):
    weights = weigh(torch.tensor(rows), torch.tensor([first, second, bias]))
    assert ((weights >= 0) & (weights <= 2)).all()


@given(st.lists(st.tuples(number, number), min_size=1, max_size=8))
def test_zero_parameters_give_weights_of_exactly_1(rows):
    assert (weigh(torch.tensor(rows), torch.zeros(3)) == 1).all()


def test_small_weights_are_told_apart():
    bias = torch.linspace(-15, 0, 50).double()
    weights = torch.stack([weigh(torch.zeros(1, 1), torch.tensor([1.0, value])) for value in bias]).squeeze()
    assert_close(weights.double(), 2 * torch.exp(2 * bias) / (1 + torch.exp(2 * bias)), rtol=1e-5, atol=0)


def test_an_autocast_around_it_changes_no_bit():
    features, params = (
        torch.randn(64, 3, generator=torch.Generator().manual_seed(0)),
        torch.tensor([1.0, -2.0, 3.0, -4]),
    )
    with torch.autocast("cpu", torch.bfloat16):
        rounded = weigh(features, params, normalised=True)
    assert torch.equal(rounded, weigh(features, params, normalised=True))


def test_weighted_mean_by_hand():
    losses, weights = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1.0, 0.5, 0.0])
    assert aw.weighted_mean(losses, weights).item() == pytest.approx(2 / 3)


@pytest.mark.parametrize("valid", [torch.ones(4, 1).bool(), torch.ones(3).bool(), torch.ones(4, 3)])
def test_a_mask_that_would_be_bent_is_refused(valid):
    with pytest.raises(aw.UserError, match=r"valid tells of each loss whether it counts, \(4, 3\) of bool, but is"):
        aw.weighted_mean(torch.ones(4, 3), torch.ones(4, 3), valid)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"weights": aw.load("auto")}, r"weights must be a tensor, but came as a weigher: pass what its weigh\("),
        ({"weights": [1.0] * 4}, r"weights must be a tensor, but came as list: use torch\.as_tensor\(weights\)"),
        ({"losses": 0.5}, "losses must be a tensor, but came as float"),
        ({"losses": torch.ones(4).mean()}, r"do not fit weights of shape \(4,\): compute them with reduction='none'"),
        ({"valid": [True] * 4}, "valid must be a tensor, but came as list"),
    ],
)
def test_a_mean_of_what_is_no_tensor_is_refused(wrong, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        aw.weighted_mean(**{"losses": torch.ones(4), "weights": torch.ones(4)} | wrong)


@pytest.mark.parametrize("count", [1, 7, 64, 100])
def test_all_ones_give_the_plain_mean_to_the_bit(count):
    plain = torch.rand(count, generator=torch.Generator().manual_seed(count)).requires_grad_()
    weighted = plain.detach().clone().requires_grad_()
    plain.mean().backward()
    loss = aw.weighted_mean(weighted, torch.ones(count))
    loss.backward()
    assert loss == plain.detach().mean()
    assert torch.equal(weighted.grad, plain.grad)


def test_normalised_weights_by_hand():
    features, params = torch.tensor([[0.5], [-0.5], [0.0]]), torch.tensor([2.0, -1.0])
    plain = 1 + torch.tensor([0.0, -2.0, -1.0]).tanh()
    assert_close(weigh(features, params, normalised=False), plain)
    assert_close(weigh(features, params, normalised=True), plain * 3 / plain.sum())


@pytest.mark.parametrize("count", [1, 7, 64, 100])
def test_normalised_weights_of_zero_parameters_are_exactly_1(count):
    assert torch.equal(weigh(torch.randn(count, 2), torch.zeros(3), normalised=True), torch.ones(count))


def test_weights_that_are_all_0_stay_so():
    assert torch.equal(weigh(torch.zeros(4, 1), torch.tensor([0.0, -50.0]), normalised=True), torch.zeros(4))


def test_stages_of_a_training():
    assert [stage_at(step / 10, 5) for step in range(10)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert stage_at(1.0, 5) == 4
    assert stage_starts(10, 4) == [0, 3, 5, 8, 10]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 400))
def test_stage_at_and_stage_starts_agree(num_stages, per_stage, extra):
    total = num_stages * per_stage + extra
    starts = stage_starts(total, num_stages)
    for stage in range(num_stages):
        for step in {starts[stage], starts[stage + 1] - 1}:
            assert stage_at(step / total, num_stages) == stage


@pytest.mark.parametrize("progress", [-0.1, 1.1, float("nan")])
def test_progress_outside_the_training_is_refused(progress):
    with pytest.raises(aw.UserError, match="fraction of the training"):
        stage_at(progress, 20)


def test_progress_that_is_no_single_number_is_refused():
    batch = torch.ones(2), torch.zeros(2, 3), torch.tensor([0, 1])
    with pytest.raises(aw.UserError, match=r"progress is one number, but is a tensor of shape \(2,\)"):
        aw.load("auto").weigh(*batch, progress=torch.tensor([0.1, 0.2]), indices=torch.arange(2))


def test_too_few_steps_for_the_stages():
    with pytest.raises(aw.UserError, match="cannot be cut into"):
        stage_starts(5, 20)


def test_state_smooths_loss_and_accuracy():
    tracker = StateTracker((2,))
    assert tracker.state(0).tolist() == [[0, 0, 0], [0, 0, 0]]
    tracker.end_stage(torch.tensor([2.0, 1.0]), torch.tensor([0.5, 0.6]))
    assert_close(tracker.state(1), torch.tensor([[1, 2.0, 0.5], [1, 1.0, 0.6]]))
    tracker.end_stage(torch.tensor([1.0, 1.0]), torch.tensor([0.7, 0.6]))
    assert_close(tracker.state(2), torch.tensor([[2, 1.5, 0.6], [2, 1.0, 0.6]]))


@pytest.mark.parametrize(
    ("logits", "sentence"),
    [
        (torch.zeros(2, 1), r"with 1 class, .* For one logit z .*, pass torch\.cat\(\[-z, z\], dim=1\) / 2\."),
        ({"logits": torch.zeros(2, 2)}, "logits must be a tensor, but came as dict: pass the logits in it"),
    ],
)
def test_answers_that_are_no_logits_of_classes_are_told_how_to_become_some(logits, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        aw.load("auto").weigh(torch.ones(2), logits, torch.arange(2), progress=0.1, indices=torch.arange(2))


@pytest.mark.parametrize("make", [aw.Uniform, lambda: aw.Strategy(torch.zeros(2, 3))])
@pytest.mark.parametrize("which", ["losses", "logits"])
def test_a_batch_of_what_is_no_tensor_is_refused(make, which):
    batch = {"losses": torch.ones(4), "logits": torch.ones(4, 3), "labels": torch.arange(4) % 3}
    batch[which] = batch[which].tolist()
    with pytest.raises(aw.UserError, match=f"{which} must be a tensor, but came as list: use torch.as_tensor"):
        make().weigh(**batch, progress=0.5)
