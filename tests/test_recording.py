"""What a training records: weights and losses by sample, told stage by stage, and left in a small file."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from autoweight.config import DataConfig, RunConfig, TrainingConfig
from autoweight.data import Samples
from autoweight.methods.method import Weighted
from autoweight.methods.oracle import Oracle
from autoweight.methods.record import Record
from autoweight.runs import compare
from autoweight.runs.samples import read_columns, samples_file, write_columns
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.strategy.auto import Auto
from autoweight.training.evaluate import judge
from autoweight.training.loop import Training, train
from autoweight.training.recording import summary

from .conftest import make_blobs, open_folder

CONFIG = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(2,))


def noisy_blobs(count: int = 64) -> Samples:
    blobs = make_blobs(count)
    return blobs.relabel(torch.where(torch.arange(count) % 4 == 0, (blobs.labels + 1) % 3, blobs.labels))


def trained(weigher, recorded, checkpoint=None, on_stage=lambda report: None, data=None):
    data = noisy_blobs() if data is None else data
    make = partial(nn.Linear, 2, 3)
    training = Training(make, data, make_blobs(30), Weighted(weigher), 5, recorded=recorded, on_stage=on_stage)
    (one,) = train([training], CONFIG, checkpoint).trained
    return one.slot


def test_summary_against_hand_computed_values():
    samples = Samples.of(torch.zeros(6, 2), torch.tensor([0, 0, 0, 0, 0, 1]))
    samples = replace(samples, true_labels=torch.tensor([0, 0, 0, 0, 1, 1]))
    record = Record(6, "cpu")
    losses, weights = torch.tensor([1.0, 1, 1, 2, 5]), torch.tensor([1.0, 1, 1, 1, 0])
    record.note(losses, weights, torch.tensor([0, 1, 2, 3, 4]))
    numbers = summary(record, samples)  # the last sample was not visited
    assert numbers["mean"] == 0.8
    assert numbers["effective"] == 0.8  # (4)^2 / 4 / 5
    assert numbers["quantiles"] == [0, 1, 1, 1, 1]
    assert numbers["by_class"] == [0.8, 0]
    groups = numbers["groups"]
    assert groups["wrong"] == groups["low"] == {"count": 1, "weight": 0, "loss": 5}
    assert groups["right"] == {"count": 4, "weight": 1, "loss": 1.25}
    assert "rare" not in groups  # nobody of the rare class was seen
    record.note(torch.tensor([3.0]), None, torch.tensor([5]))
    assert summary(record, samples)["groups"]["rare"] == {"count": 1, "weight": 1, "loss": 3}
    assert summary(Record(6, "cpu"), samples) == {}


@pytest.mark.parametrize("make", [Auto, lambda: None], ids=["auto", "nobody"])
def test_recording_changes_no_bit_and_resumes_to_the_same(make, tmp_path):
    plain = trained(make(), recorded=False)
    recorded = trained(make(), recorded=True)
    for one, two in zip(plain.model.parameters(), recorded.model.parameters(), strict=True):
        assert torch.equal(one, two)

    class KilledError(Exception):
        pass

    def kill(report):
        if report.stage == 1:
            raise KilledError

    checkpoint = CheckpointFile(tmp_path / "half")
    with pytest.raises(KilledError):
        trained(make(), True, checkpoint, kill)
    resumed = trained(make(), True, checkpoint)
    for one, two in zip(recorded.tensors(), resumed.tensors(), strict=True):
        assert torch.equal(one, two)
    assert resumed.method.record.weight.isfinite().all()


def test_a_stage_tells_who_counts_and_where_the_learning_rate_is():
    data, reports = noisy_blobs(), []
    trained(Oracle(data.clean), True, on_stage=reports.append, data=data)
    assert [report.learning_rate for report in reports] == pytest.approx([0.1, 0.1, 0.01, 0.01])
    groups = reports[-1].weights["groups"]
    assert (groups["wrong"]["weight"], groups["right"]["weight"]) == (0, 1)
    assert groups["wrong"]["count"] == 16
    assert groups["wrong"]["loss"] > groups["right"]["loss"]
    assert reports[-1].weights["effective"] == 0.75


@pytest.mark.parametrize("task", ["tokens", "regression"])
def test_other_tasks_are_recorded_too(task):
    if task == "tokens":
        labels = torch.tensor([[0, 1, -100]] * 16)
        data, model = Samples.of(torch.randn(16, 3, 2), labels, 2, task="tokens"), partial(nn.Linear, 2, 2)
    else:
        data, model = Samples.of(torch.randn(16, 2), torch.randn(16), task="regression"), partial(nn.Linear, 2, 1)
    reports = []
    config = TrainingConfig(task=task, epochs=1, batch_size=8, num_stages=1, learning_rate=0.01)
    train([Training(model, data, data, None, 0, recorded=True, on_stage=reports.append)], config)
    assert reports[0].weights["mean"] == reports[0].weights["effective"] == 1


def test_judging_says_on_which_samples_a_classifier_is_right():
    data = make_blobs(7)
    model = nn.Linear(2, 3)
    judged = judge(model, data, batch_size=3)
    expected = model(data.inputs).argmax(dim=1) == data.labels
    assert torch.equal(judged.right, expected)
    assert judged.score == pytest.approx(float(expected.float().mean()))


def test_a_run_leaves_its_samples_in_a_few_bytes_each(tmp_path):
    data = DataConfig(noise="uniform", noise_rate=0.4)
    training = TrainingConfig(epochs=3, num_stages=3)
    config = RunConfig("digits-noise", data=data, training=training, methods=("uniform", "auto"))
    folder = open_folder(tmp_path / "run", config)
    job = compare.prepare(config)
    result = job.run(folder, lambda *progress: None)["methods"]
    splits = job.splits(0)
    for name in ("uniform", "auto"):
        path = samples_file(folder.path, name, 0)
        assert path.stat().st_size < 15 * len(splits.train)
        columns = read_columns(path)
        assert (columns["label"] == splits.train.labels.numpy()).all()
        assert (columns["index"] == splits.train.source.numpy()).all()
        assert (columns["wrong"] == (~splits.train.clean).numpy()).all()
        assert bool(columns["remembered"]) == (name == "auto")
        assert len(columns["test_right"]) == len(splits.test)
        assert columns["test_right"].mean() == pytest.approx(result[name]["test_accuracy"][0])
    assert read_columns(samples_file(folder.path, "uniform", 0))["best_right"].mean() == pytest.approx(
        result["early_stop"]["test_accuracy"][0]
    )
    right = columns["margin"][~columns["wrong"]].astype(float)
    assert np.nanmean(columns["margin"][columns["wrong"]].astype(float)) < np.nanmean(right)
    lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    stages = [line for line in lines if line["event"] == "stage"]
    assert all(len(line["weights"]["by_class"]) == 10 for line in stages)


def test_a_damaged_file_of_samples_is_as_good_as_none(tmp_path):
    path = tmp_path / "samples.npz"
    write_columns(path, {"label": np.arange(9, dtype=np.uint8), "wrong": np.arange(9) % 2 == 0})
    assert read_columns(path)["wrong"].tolist() == [True, False] * 4 + [True]
    path.write_bytes(path.read_bytes()[:40])
    assert read_columns(path) is None
    assert read_columns(tmp_path / "none.npz") is None
