"""Optimisers, schedules and averaged weights against plain PyTorch and numbers made by hand."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.loader import Loader
from autoweight.training.average import Average
from autoweight.training.loop import Training, train
from autoweight.training.optimizers import make_optimizer, state_tensors
from autoweight.training.schedules import check_schedule, learning_rate_at

from .conftest import make_blobs


@pytest.mark.parametrize(
    ("options", "make"),
    [
        (
            {"optimizer": "adam", "weight_decay": 0.1},
            lambda p: torch.optim.Adam(p, 0.05, (0.9, 0.999), weight_decay=0.1),
        ),
        (
            {"optimizer": "adamw", "momentum": 0.8, "weight_decay": 0.1},
            lambda p: torch.optim.AdamW(p, 0.05, (0.8, 0.999), weight_decay=0.1),
        ),
        ({"nesterov": True}, lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True)),
        ({"momentum": 0.0}, lambda p: torch.optim.SGD(p, 0.05)),
    ],
)
def test_the_loop_is_that_of_the_optimiser_alone(options, make):
    model, blobs = nn.Linear(2, 3), make_blobs()
    by_hand = copy.deepcopy(model)
    optimizer = make(by_hand.parameters())
    for step, batch in enumerate(Loader(blobs, 20, seed=4).batches(0, 9)):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / 9)
        optimizer.zero_grad()
        cross_entropy(by_hand(batch.inputs), batch.labels).backward()
        optimizer.step()
    config = TrainingConfig(epochs=3, batch_size=20, num_stages=3, schedule="linear", learning_rate=0.05, **options)
    train([Training(lambda: model, blobs, blobs, None, seed=4)], config)
    for one, two in zip(model.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_states_made_beforehand_train_as_those_that_the_first_step_makes(optimizer):
    config = TrainingConfig(optimizer=optimizer, learning_rate=0.01)
    models = [nn.Linear(2, 3)]
    models.append(copy.deepcopy(models[0]))
    for model, beforehand in zip(models, (False, True), strict=True):
        chosen = make_optimizer(model.parameters(), config)
        if beforehand:
            assert len(list(state_tensors(chosen))) == (2 if optimizer == "sgd" else 6)
        for batch in Loader(make_blobs(), 20, seed=4).batches(0, 4):
            chosen.zero_grad()
            cross_entropy(model(batch.inputs), batch.labels).backward()
            chosen.step()
    assert torch.equal(models[0].weight, models[1].weight)


def rates(steps=8, **options):
    config = TrainingConfig(epochs=4, num_stages=4, learning_rate=1.0, **options)
    return [learning_rate_at(config, step, steps) for step in range(steps)]


def test_schedules_by_hand():
    assert rates(schedule="constant") == [1.0] * 8
    assert rates(schedule="linear") == pytest.approx([1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125])
    assert rates(4, schedule="cosine") == pytest.approx([1.0, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2])
    assert rates(schedule="stages", drop_stages=(1, 3)) == pytest.approx([1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01])
    assert rates(schedule="stages", drop_stages=()) == [1.0] * 8
    assert rates(10, schedule="stages") == pytest.approx([1, 1, 1, 1, 1, 0.1, 0.1, 0.01, 0.001, 0.001])
    assert rates(4, schedule=lambda progress: progress**2) == [0, 0.0625, 0.25, 0.5625]


def test_drops_behind_the_last_stage_are_said():
    with pytest.warns(UserWarning, match="is to drop at stage 12, but the last of 10 stages, counted from 0, is 9"):
        check_schedule(TrainingConfig(num_stages=10, drop_stages=(6, 12, 18)))
    for fine in ({}, {"drop_stages": (9,)}, {"drop_stages": (12,), "schedule": "cosine"}):
        check_schedule(TrainingConfig(num_stages=10, **fine))


def test_a_warm_up_rises_to_what_the_schedule_says():
    assert rates(schedule="constant", warmup_epochs=2.0) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1, 1, 1])
    assert rates(schedule="linear", warmup_epochs=1.0) == pytest.approx(
        [0.5, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
    )
    assert rates(4, schedule="constant", warmup_epochs=1.5) == pytest.approx([1 / 1.5, 1, 1, 1])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TrainingConfig(schedule="cosin"), "unknown schedule 'cosin': did you mean 'cosine'"),
        (lambda: TrainingConfig(optimizer="sdg"), "did you mean 'sgd'"),
        (lambda: TrainingConfig(task="token"), "did you mean 'tokens'"),
        (lambda: TrainingConfig(epochs=3, warmup_epochs=4), "longer than the training's 3 epochs"),
        (lambda: TrainingConfig(nesterov=True, momentum=0.0), "nesterov is for sgd with momentum"),
        (lambda: TrainingConfig(nesterov=True, optimizer="adam"), "nesterov is for sgd with momentum"),
        (lambda: TrainingConfig(drop_stages=(1.5,)), "drop_stages takes whole numbers"),
        (lambda: TrainingConfig(average=1.0), "average goes from 0 to below 1"),
        (lambda: check_schedule(TrainingConfig(schedule=lambda progress: -1)), "0 or more, but -1"),
        (lambda: check_schedule(TrainingConfig(schedule=lambda progress: 1 / 0)), "does not answer to 0.0: division"),
        (lambda: check_schedule(TrainingConfig(schedule=lambda progress: "a")), "does not answer to 0.0"),
    ],
)
def test_what_cannot_be_trained_gets_one_sentence(make, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        make()


def test_averaged_weights_by_hand():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    average = Average(model, keep=0.5)
    assert torch.equal(average.network()[0].weight, model[0].weight)  # nothing to average yet
    for value in (1.0, 2.0, 4.0):
        with torch.no_grad():
            model[0].weight.fill_(value)
            model[1].running_mean.fill_(10 * value)
            model[1].num_batches_tracked += 1
        average.update()
    expected = (1 * 0.125 + 2 * 0.25 + 4 * 0.5) / 0.875
    averaged = average.network()
    assert float(averaged[0].weight.detach()) == pytest.approx(expected)
    assert float(averaged[1].running_mean) == pytest.approx(10 * expected)
    assert int(averaged[1].num_batches_tracked) == 3
    assert float(model[0].weight.detach()) == 4  # the network itself trains on


def test_an_average_is_evaluated_beside_its_network_and_leaves_no_trace_in_it():
    blobs, networks = make_blobs(), {}
    for share in (0.0, 0.9):
        config = TrainingConfig(epochs=4, batch_size=20, num_stages=2, average=share)
        (one,) = train([Training(lambda: nn.Linear(2, 3), blobs, blobs, None, seed=4)], config).trained
        networks[share] = one.slot
    assert torch.equal(networks[0.0].model.weight, networks[0.9].model.weight)
    assert networks[0.0].evaluated() == {}
    averaged = networks[0.9].evaluated()["averaged"]
    assert not torch.equal(averaged.weight, networks[0.9].model.weight)
