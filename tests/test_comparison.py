"""What `compare` and `search` hand to trainings, and what they make of them."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data import DATASETS, load_pool
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.runs import compare as comparing
from autoweight.runs import find as finding
from autoweight.strategy.regime import Regime
from autoweight.strategy.stages import stage_starts
from autoweight.training import loop
from autoweight.training.evaluate import Judged, score
from autoweight.training.loop import Training, make_slots, train
from autoweight.training.steps import PlainSteps

from .conftest import make_blobs, open_folder

SHORT = replace(
    get_recipe("digits-noise"), training=TrainingConfig(epochs=2, num_stages=4), methods=("uniform", "focal", "oracle")
)


def compare(config, path, resume=False):
    job = comparing.prepare(config)
    return job.run(open_folder(path, config, resume), lambda *progress: None)["methods"]


def accuracies(methods):
    return {name: values["test_accuracy"] for name, values in methods.items()}


def test_accuracy_is_that_of_the_last_epoch_on_the_test_part(tmp_path):
    splits = load_pool(SHORT.data).splits(SHORT.data, 3, final=True)
    make = partial(make_network, SHORT.network, splits.train.input_shape, splits.train.num_classes)
    (trained,) = train([Training(make, splits.train, splits.val, None, 3)], SHORT.training).trained
    expected = score(trained.slot.model, splits.test)
    assert expected != score(trained.slot.model, splits.val)
    assert compare(replace(SHORT, methods=("uniform",), seed=3), tmp_path)["uniform"]["test_accuracy"] == [expected]


def test_side_by_side_gives_the_same_and_goes_on_where_one_of_a_group_is_missing(tmp_path):
    together = replace(SHORT, side_by_side=2)
    expected = accuracies(compare(SHORT, tmp_path / "one"))
    assert accuracies(compare(together, tmp_path / "two")) == expected
    assert not list((tmp_path / "two" / "checkpoint").rglob("*-0*"))  # checkpoints have served
    metrics = tmp_path / "two" / "metrics.jsonl"
    lines = metrics.read_text().splitlines()
    without = [
        line for line in lines if (json.loads(line)["event"], json.loads(line)["method"]) != ("trained", "focal")
    ]
    assert len(without) == len(lines) - 1
    metrics.write_text("\n".join(without) + "\n")
    assert accuracies(compare(together, tmp_path / "two", resume=True)) == expected


def test_what_some_seed_cannot_do_is_said_before_anything_is_trained():
    odd = replace(get_recipe("digits-longtail"), methods=("uniform",), num_seeds=12)
    odd = replace(odd, training=replace(odd.training, batch_size=40))
    comparing.prepare(odd)
    with pytest.raises(aw.UserError, match="--side-by-side 1"):
        comparing.prepare(replace(odd, side_by_side=2))
    few = replace(SHORT, data=replace(SHORT.data, train_size=40, noise_rate=0.9), methods=("uniform",))
    few = replace(few, training=replace(few.training, batch_size=8), num_seeds=1)
    comparing.prepare(few)
    with pytest.raises(aw.UserError, match="no training sample"):
        comparing.prepare(replace(few, num_seeds=20))


def test_final_trainings_and_searches_are_augmented_as_configured(tmp_path, monkeypatch):
    config, seen = replace(SHORT, data=replace(SHORT.data, augmentation="crop_flip"), methods=("uniform",)), []

    def note(trainings, *more):
        seen.extend(training.augmentation for training in trainings)
        raise StopIteration

    monkeypatch.setattr(comparing, "train", note)
    with pytest.raises(StopIteration):
        compare(config, tmp_path / "compare")
    config = replace(config, search=replace(config.search, proxy_epochs=7, proxy_network="small_cnn"))
    problem = finding.prepare(config).problems[0]
    assert [*seen, problem.augmentation] == ["crop_flip", "crop_flip"]
    assert problem.training.epochs == 7
    assert any(isinstance(layer, nn.Conv2d) for layer in problem.make_model().modules())
    compared_on = load_pool(config.data).splits(config.data, config.seed)
    assert not torch.equal(problem.train.source, compared_on.train.source)


def test_a_strategy_that_changed_since_is_not_mixed_in(tmp_path):
    path = tmp_path / "s"
    config = replace(SHORT, methods=("law",), strategy=str(path))
    aw.Strategy(torch.zeros(4, 3)).save(path)
    compare(config, tmp_path / "run")
    compare(config, tmp_path / "run", resume=True)
    aw.Strategy(torch.zeros(4, 3), aw.Rule(normalised=True)).save(path)
    with pytest.raises(aw.UserError, match="has changed since this run began"):
        compare(config, tmp_path / "run", resume=True)


def test_early_stop_is_read_off_the_training_of_uniform(tmp_path):
    config = replace(SHORT, methods=("focal", "uniform"), training=TrainingConfig(epochs=8, num_stages=8), num_seeds=2)
    methods = compare(config, tmp_path / "run")
    assert list(methods) == ["focal", "uniform", "early_stop"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {line["method"] for line in lines} == {"focal", "uniform"}  # no training of its own
    for position, seed in enumerate(config.seeds):
        stages = [
            line for line in lines if line["event"] == "stage" and (line["method"], line["seed"]) == ("uniform", seed)
        ]
        best = max(stages, key=lambda line: line["val_score"])  # the first of equals
        assert methods["early_stop"]["best_stage"][position] == best["stage"]
        assert methods["early_stop"]["test_accuracy"][position] == stopped_at(config, seed, best["stage"])
    assert methods["early_stop"]["train_seconds"] == methods["uniform"]["train_seconds"]
    alone = compare(replace(config, methods=("early_stop",)), tmp_path / "alone")
    assert list(alone) == ["early_stop"]
    assert alone["early_stop"]["test_accuracy"] == methods["early_stop"]["test_accuracy"]


def stopped_at(config, seed, stage):
    """The test accuracy at a stage's end."""
    training = config.training
    splits = load_pool(config.data).splits(config.data, seed, final=True)
    make = partial(make_network, config.network, splits.train.input_shape, splits.train.num_classes)
    (slot,) = make_slots([Training(make, splits.train, splits.val, None, seed)], training)
    total = slot.loader.steps_per_epoch * training.epochs
    PlainSteps([slot], training, total).run(0, stage_starts(total, training.num_stages)[stage + 1])
    return score(slot.model, splits.test)


def test_what_is_evaluated_beside_a_network_has_its_column(tmp_path):
    averaged = replace(SHORT, methods=("oracle",), training=replace(SHORT.training, average=0.9))
    values = compare(averaged, tmp_path / "run")["oracle"]
    assert set(values) == {"test_accuracy", "test_accuracy_averaged", "train_seconds"}
    assert (
        values["test_accuracy"]
        == compare(replace(SHORT, methods=("oracle",)), tmp_path / "plain")["oracle"]["test_accuracy"]
    )
    assert values["test_accuracy_averaged"] != values["test_accuracy"]


def test_a_strategy_used_far_from_its_training_gets_a_word(tmp_path):
    found_in = {"epochs": 200, "batch_size": 64, "optimizer": "sgd", "weight_decay": 0.0, "schedule": "stages"}
    aw.Strategy(torch.zeros(4, 3), info={"found_in": found_in}).save(tmp_path / "s")
    config = replace(SHORT, methods=("law",), strategy=str(tmp_path / "s"))
    with pytest.warns(UserWarning, match=r"found in another training \(with epochs 200, here 2\)"):
        comparing.prepare(config)
    strategy = aw.load(tmp_path / "s")
    with pytest.warns(UserWarning, match="little to compare"):
        strategy.weigh(torch.ones(1), torch.zeros(1, 3), torch.zeros(1, dtype=torch.long), progress=0.5)
    with pytest.warns(UserWarning, match="found in another training"):  # one does not silence the other
        strategy.warn_where_far(Regime(epochs=2))


def test_a_test_score_that_is_not_finite_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "judge", lambda *given: Judged(float("nan"), None))
    with pytest.raises(aw.RunError, match="uniform, seed 0: its test_accuracy is nan: look at the data"):
        compare(replace(SHORT, methods=("uniform",)), tmp_path / "run")


def test_data_are_read_once(tmp_path, monkeypatch):
    read, digits = [], DATASETS["digits"]
    monkeypatch.setitem(DATASETS, "digits", lambda folder: (read.append(folder), digits(folder))[1])
    compare(replace(SHORT, num_seeds=2), tmp_path / "run")
    assert len(read) == 1


def test_the_clock_waits_for_the_device(monkeypatch):
    waited = []
    monkeypatch.setattr(loop, "wait_for", waited.append)
    blobs = make_blobs(48)
    train(
        [Training(lambda: nn.Linear(2, 3), blobs, blobs, None, 0)],
        TrainingConfig(epochs=4, batch_size=16, num_stages=4),
    )
    assert waited == [torch.device("cpu")] * 4


def test_small_networks_train_on_one_thread_and_the_users_threads_come_back(monkeypatch):
    threads, now = [], [7]
    monkeypatch.setattr(torch, "get_num_threads", lambda: now[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda count: now.__setitem__(0, count))
    blobs = make_blobs(48)
    config = TrainingConfig(epochs=4, batch_size=16, num_stages=4)
    for make in (lambda: nn.Linear(2, 3), Wide):
        note = Training(make, blobs, blobs, None, 0, on_stage=lambda report: threads.append(now[0]))
        train([note], config)
        assert now == [7]
    assert threads == [1] * 4 + [7] * 4


class Wide(nn.Sequential):
    """Large enough for several threads."""

    def __init__(self):
        super().__init__(nn.Linear(2, 3000), nn.Linear(3000, 4000, bias=False), nn.Linear(4000, 3))
