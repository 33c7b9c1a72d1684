import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from autoweight.errors import UserError
from autoweight.strategy.features import (
    OF_THE_BATCH,
    check_features,
    density,
    entropy,
    label_values,
    normalise,
)

from .conftest import batch_features


def test_normalise_by_hand():
    # mean 2, population deviation sqrt(((1)^2 + 0 + (1)^2) / 3)
    deviation = (2 / 3) ** 0.5
    assert_close(normalise(torch.tensor([1.0, 2.0, 3.0])), torch.tensor([-1, 0, 1]) / deviation, atol=1e-5, rtol=1e-5)


def test_entropy_by_hand():
    logits = torch.tensor([[0.0, 0.0], [torch.log(torch.tensor(3.0)), 0.0], [1e4, -1e4]])
    expected = torch.tensor([0.6931472, -(0.75 * torch.tensor(0.75).log() + 0.25 * torch.tensor(0.25).log()), 0.0])
    assert_close(entropy(logits), expected)


def test_density_is_the_mean_similarity_to_the_others_up_to_scale():
    logits = torch.tensor([[1.0, 0.0], [0.5, 1.0], [-1.0, 1.0]])
    similarity = logits @ logits.T
    expected = (similarity.sum(dim=1) - similarity.diagonal()) / 2
    assert_close(density(logits), expected)  # the largest logit is 1, so the scale is 1
    assert_close(normalise(density(7 * logits)), normalise(expected))


def test_label_values():
    counts = torch.tensor([60, 30, 10])
    assert_close(label_values(counts, "log_frequency"), torch.tensor([0.6, 0.3, 0.1]).log())
    assert label_values(counts, "raw").tolist() == [0, 1, 2]
    logs = torch.tensor([0.6, 0.3, 0.1]).log()
    assert_close(label_values(counts, "class_frequency"), (logs - logs.mean()) / logs.std(correction=0))


def test_class_frequency_does_not_depend_on_who_else_is_in_the_batch():
    values = label_values(torch.tensor([60, 30, 10]), "class_frequency")
    for labels in ([0, 2], [0, 0, 0, 0, 2]):
        batch = torch.rand(len(labels)), torch.rand(len(labels), 3), torch.tensor(labels)
        features = batch_features(*batch, ("label",), values, "class_frequency")
        assert torch.equal(features.squeeze(), values[labels])


def test_label_feature_is_zero_on_balanced_data():
    values = label_values(torch.tensor([5, 5, 5]), "log_frequency")
    features = batch_features(torch.rand(4), torch.rand(4, 3), torch.tensor([0, 1, 2, 0]), ("label",), values)
    assert features.abs().max() < 1e-3


def _features(losses, logits, labels, classes=3):
    values = label_values(torch.arange(1, classes + 1), "log_frequency")
    return batch_features(losses, logits, labels, OF_THE_BATCH, values)


@pytest.mark.parametrize(
    ("losses", "logits", "labels"),
    [
        (torch.tensor([2.0]), torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0])),
        (torch.full((4,), 0.7), torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])),
        (torch.rand(4), torch.rand(4, 3), torch.zeros(4, dtype=torch.long)),
        (torch.tensor([0.0, 3e38]), torch.tensor([[3e38, -3e38, 0], [-3e38, 3e38, 0]]), torch.tensor([0, 1])),
        (torch.tensor([1e-45, 1e-40]), torch.full((2, 3), 1e-40), torch.tensor([0, 1])),
    ],
    ids=["one sample", "all equal", "one class", "saturated", "denormal"],
)
def test_features_are_finite_for_any_finite_batch(losses, logits, labels):
    features = _features(losses, logits, labels)
    assert features.shape == (len(losses), 4)
    assert features.isfinite().all()


def test_equal_values_are_no_difference():
    assert _features(torch.full((64,), 0.1), torch.zeros(64, 3), torch.zeros(64, dtype=torch.long)).abs().max() < 0.2


finite = st.floats(-(2.0**99), 2.0**99, allow_nan=False, width=32)


@given(st.lists(st.tuples(finite, finite, finite, finite), min_size=1, max_size=12), st.randoms())
def test_features_are_finite_and_follow_a_permutation(rows, random):
    table = torch.tensor(rows)
    losses, logits = table[:, 0].abs(), table[:, 1:]
    labels = torch.tensor([random.randrange(3) for _ in rows])
    order = torch.tensor(random.sample(range(len(rows)), len(rows)))
    features = _features(losses, logits, labels)
    assert features.isfinite().all()
    assert_close(_features(losses[order], logits[order], labels[order]), features[order], atol=1e-2, rtol=1e-2)


def test_features_carry_no_gradient():
    losses, logits = torch.rand(4, requires_grad=True), torch.rand(4, 3, requires_grad=True)
    assert not _features(losses, logits, torch.tensor([0, 1, 2, 0])).requires_grad


@pytest.mark.parametrize("names", [(), ("los",), ("loss", "loss")])
def test_wrong_features_are_refused(names):
    with pytest.raises(UserError):
        check_features(names)
