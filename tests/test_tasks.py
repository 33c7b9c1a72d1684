"""Losses and scores of every task against numbers made by hand or by scikit-learn, and tasks from search to weights."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, r2_score
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import SearchConfig
from autoweight.data import Samples, as_samples
from autoweight.data.corruptions import asymmetric_noise, long_tail, uniform_noise
from autoweight.data.inputs import outputs_of
from autoweight.training.checks import check_network
from autoweight.training.evaluate import score
from autoweight.training.task import TASKS

from .conftest import make_blobs
from .settings import SETTINGS

GENERATOR = torch.Generator().manual_seed(0)
OUTPUTS = torch.randn(40, 5, generator=GENERATOR)


def score_of(task, outputs, labels):
    """In two parts, as chunks of a validation set come."""
    task = TASKS[task]
    return float(task.score(task.tally(outputs[:13], labels[:13]) + task.tally(outputs[13:], labels[13:])))


def test_accuracy_as_scikit_learn_has_it():
    labels = torch.randint(5, (40,), generator=GENERATOR)
    assert score_of("classification", OUTPUTS, labels) == pytest.approx(accuracy_score(labels, OUTPUTS.argmax(dim=1)))


def test_macro_f1_as_scikit_learn_has_it():
    labels = (torch.rand(40, 5, generator=GENERATOR) < 0.4).float()
    expected = f1_score(labels.numpy(), (OUTPUTS > 0).numpy(), average="macro")
    assert score_of("multilabel", OUTPUTS, labels) == pytest.approx(expected)
    never = torch.zeros(40, 5)
    assert score_of("multilabel", -OUTPUTS.abs(), never) == 1  # never there and never said


@pytest.mark.parametrize("task", ["regression", "huber"])
@pytest.mark.parametrize("targets", [1, 3])
def test_r2_as_scikit_learn_has_it(task, targets):
    labels = OUTPUTS[:, :targets] + torch.randn(40, targets, generator=GENERATOR)
    assert score_of(task, OUTPUTS[:, :targets], labels) == pytest.approx(r2_score(labels, OUTPUTS[:, :targets]))
    if targets == 1:
        assert score_of(task, OUTPUTS[:, :1], labels[:, 0]) == pytest.approx(r2_score(labels, OUTPUTS[:, :1]))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_r2_of_targets_that_do_not_vary_is_finite(value):
    labels = torch.full((40, 2), value)
    labels[:, 1] = OUTPUTS[:, 1] + 1
    of_the_other = r2_score(labels[:, 1], OUTPUTS[:, 1])
    assert score_of("regression", OUTPUTS[:, :2], labels) == pytest.approx((0 + of_the_other) / 2)
    assert score_of("regression", labels, labels) == 1


def test_accuracy_of_tokens_looks_past_those_to_ignore():
    outputs = torch.randn(20, 6, 4, generator=GENERATOR)
    labels = torch.randint(4, (20, 6), generator=GENERATOR)
    labels[torch.rand(20, 6, generator=GENERATOR) < 0.5] = -100
    counted = labels != -100
    expected = accuracy_score(labels[counted], outputs.argmax(dim=-1)[counted])
    assert score_of("tokens", outputs, labels) == pytest.approx(expected)


def test_losses_by_hand():
    several = TASKS["multilabel"].losses(torch.tensor([[0.0, math.log(3.0)]]), torch.tensor([[1.0, 0.0]]))
    assert_close(several, torch.tensor([(math.log(2) + math.log(4)) / 2]))
    outputs, targets = torch.tensor([[1.0], [4.0]]), torch.tensor([0.5, 1.0])
    assert_close(TASKS["regression"].losses(outputs, targets), torch.tensor([0.25, 9.0]))
    assert_close(TASKS["huber"].losses(outputs, targets), torch.tensor([0.125, 2.5]))
    two = TASKS["regression"].losses(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
    assert_close(two, torch.tensor([2.5]))
    tokens = TASKS["tokens"].losses(torch.zeros(1, 2, 4), torch.tensor([[3, -100]]))
    assert_close(tokens, torch.tensor([[math.log(4), 0.0]]))


def test_means_of_tokens_are_over_those_that_count():
    losses, labels = torch.tensor([[1.0, 7.0], [3.0, 0.0]]), torch.tensor([[0, -100], [2, 1]])
    assert float(TASKS["tokens"].mean(losses, None, labels)) == pytest.approx(4 / 3)
    weights = torch.tensor([[2.0, 5.0], [1.0, 1.0]])
    assert float(TASKS["tokens"].mean(losses, weights, labels)) == pytest.approx((2 + 3 + 0) / 3)
    assert float(TASKS["tokens"].mean(losses, None, torch.full((2, 2), -100))) == 0
    assert float(aw.weighted_mean(losses, weights, labels != -100)) == pytest.approx(5 / 3)


def test_a_score_is_that_of_the_whole_set_whatever_the_batches():
    samples = SETTINGS["huber"].val
    model = nn.Linear(2, 3)
    parts = [score(model, samples, TASKS["huber"], batch_size=size) for size in (7, 40)]
    assert parts[0] == pytest.approx(parts[1])


def tiny(name, **options):
    setting = SETTINGS[name]
    rule = setting.rule
    config = SearchConfig(
        **{
            "features": rule.features,
            "history_scale": rule.history_scale,
            "num_episodes": 1,
            "num_workers": 5,
            "choice_rounds": 1,
            "warmup_stages": 1,
        }
        | options
    )
    return aw.search(setting.make_model, setting.train, setting.val, config, training=setting.training)


@pytest.mark.parametrize("name", ["several labels", "regression", "tokens", "dict inputs", "memory of tokens"])
def test_a_search_of_any_task_finds_what_weighs_its_batches(name):
    strategy, setting = tiny(name), SETTINGS[name]
    assert strategy.info["task"] == setting.training.task
    labels, task = setting.train.labels[:16], TASKS[setting.training.task]
    shape = (*labels.shape, 3) if setting.train.has_classes else labels.shape
    outputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    losses = task.losses(outputs, labels)
    weights = strategy.weigh(losses, outputs, labels, progress=0.9, indices=torch.arange(16))
    assert weights.shape == losses.shape
    assert weights.isfinite().all()
    if task.counts is not None:
        assert (weights[labels == -100] == 0).all()


@pytest.mark.parametrize(
    ("name", "features", "sentence"),
    [
        (
            "regression",
            ("entropy",),
            "regression has no feature 'entropy', but loss, density, history: choose among these",
        ),
        ("several labels", ("label",), "multilabel has no feature 'label'"),
        ("several labels", ("margin",), "multilabel has no feature 'margin'"),
    ],
)
def test_features_that_a_task_does_not_have_are_refused(name, features, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        tiny(name, features=features)


INPUTS = torch.zeros(3, 2)


@pytest.mark.parametrize(
    ("task", "labels", "sentence"),
    [
        ("multilabel", torch.tensor([[0, 1], [1, 2], [0, 0]]), "zeros and ones"),
        ("multilabel", torch.tensor([0, 1, 0]), "zeros and ones"),
        ("regression", torch.tensor([0.0, float("nan"), 1.0]), "a target is NaN"),
        ("regression", torch.zeros(3, 2, 2), "targets are numbers"),
        ("huber", torch.tensor([True, False, True]), "targets are numbers"),
        ("tokens", torch.tensor([0, 1, 2]), r"whole numbers \[samples, tokens\]"),
        ("tokens", torch.full((3, 2), -100), "all tokens are to be ignored"),
        ("tokens", torch.tensor([[0, 1], [2, -1], [0, 0]]), "one is -1"),
    ],
)
def test_labels_that_do_not_fit_the_task_get_one_sentence(task, labels, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        Samples.of(INPUTS, labels, task=task)


@pytest.mark.parametrize(
    ("name", "make_model", "sentence"),
    [
        (
            "regression",
            lambda: nn.Linear(2, 4),
            r"\(2,\) for 2 samples, but gives \(2, 4\)",
        ),
        ("several labels", lambda: nn.Linear(2, 2), r"\(2, 3\) for 2 samples, but gives \(2, 2\)"),
        ("tokens", lambda: nn.Embedding(7, 2), r"logits \[batch, tokens, classes\] for 3 classes"),
    ],
)
def test_networks_whose_outputs_do_not_fit_get_one_sentence(name, make_model, sentence):
    setting = SETTINGS[name]
    train = setting.train
    if name == "tokens":  # an embedding takes no ids= by name
        train = Samples.of(train.inputs["ids"], train.labels, 3, task="tokens")
    with pytest.raises(aw.UserError, match=sentence):
        check_network(make_model, train, setting.training, "cpu")


def test_what_a_network_answers_with_is_understood():
    logits = torch.zeros(2, 3)
    assert outputs_of(logits) is logits
    assert outputs_of({"logits": logits}) is logits
    assert outputs_of(type("Answer", (), {"logits": logits})) is logits


def test_wrong_targets_are_those_of_other_samples():
    samples = SETTINGS["regression"].train
    noisy = uniform_noise(samples, 0.5, seed=0)
    assert 0.3 < float((~noisy.clean).float().mean()) < 0.7
    assert set(noisy.labels.tolist()) <= set(samples.labels.tolist())
    tokens = uniform_noise(SETTINGS["tokens"].train, 1.0, seed=0)
    assert torch.equal(tokens.labels == -100, tokens.true_labels == -100)  # those to ignore stay so
    for corrupt in (lambda: asymmetric_noise(samples, 0.5, 0), lambda: long_tail(samples, 5.0, 0)):
        with pytest.raises(aw.UserError):
            corrupt()


def test_inputs_of_any_structure_become_samples():
    blobs = make_blobs(12)
    both = {"x": blobs.inputs.double().numpy(), "m": np.ones((12, 3), dtype=bool)}
    named = as_samples((both, blobs.labels.numpy()))
    assert named.inputs["x"].dtype == torch.float32
    assert named.input_shape == {"x": (2,), "m": (3,)}
    rows = [((blobs.inputs[n], blobs.inputs[n, :1]), int(blobs.labels[n])) for n in range(12)]
    tupled = as_samples(rows)
    assert [tuple(part.shape) for part in tupled.inputs] == [(12, 2), (12, 1)]
    assert torch.equal(tupled.take(torch.tensor([3, 1])).inputs[0], blobs.inputs[[3, 1]])
    with pytest.raises(aw.UserError, match="12 inputs, but 4 labels"):
        as_samples((both, blobs.labels[:4]))
