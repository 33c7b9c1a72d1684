"""What `compare` and `search` hand to trainings, and what they make of them."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data import load_pool
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.runs import compare as comparing
from autoweight.runs import find as finding
from autoweight.runs.folder import RunFolder
from autoweight.training.evaluate import score
from autoweight.training.loop import Training, train

SHORT = replace(
    get_recipe("digits-noise"), training=TrainingConfig(epochs=2, num_stages=4), methods=("uniform", "focal", "oracle")
)


def compare(config, path, resume=False):
    job = comparing.prepare(config)
    return job.run(RunFolder.open(path, config, resume), lambda *progress: None)["methods"]


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
    assert not list((tmp_path / "two").rglob("*-0*"))  # checkpoints have served
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
    job = finding.prepare(config)
    assert [*seen, job.problem.augmentation] == ["crop_flip", "crop_flip"]
    assert job.problem.training.epochs == 7
    assert any(isinstance(layer, nn.Conv2d) for layer in job.problem.make_model().modules())
    compared_on = load_pool(config.data).splits(config.data, config.seed)
    assert not torch.equal(job.problem.train.source, compared_on.train.source)


def test_a_strategy_that_changed_since_is_not_mixed_in(tmp_path):
    path = tmp_path / "s"
    config = replace(SHORT, methods=("law",), strategy=str(path))
    aw.Strategy(torch.zeros(4, 3)).save(path)
    compare(config, tmp_path / "run")
    compare(config, tmp_path / "run", resume=True)
    aw.Strategy(torch.zeros(4, 3), aw.Rule(normalised=True)).save(path)
    with pytest.raises(aw.UserError, match="has changed since this run began"):
        compare(config, tmp_path / "run", resume=True)
