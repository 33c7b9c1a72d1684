"""One call that trains."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset, TensorDataset

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data import as_samples
from autoweight.data.corruptions import uniform_noise
from autoweight.methods.l2rw import L2RW
from autoweight.methods.method import Weighted
from autoweight.training.loop import Training, train

from .conftest import make_blobs

SHORT = TrainingConfig(epochs=4, batch_size=16, num_stages=4, optimizer="adam", learning_rate=0.01)


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))


def test_fit_is_the_training_of_the_command_line():
    data, weigher = make_blobs(), aw.Focal(gamma=2.0)
    fitted = aw.fit(make_model, data, weigher=weigher, training=SHORT, seed=5)
    (trained,) = train([Training(make_model, data, None, Weighted(weigher), 5)], SHORT).trained
    for one, two in zip(fitted.network.parameters(), trained.slot.model.parameters(), strict=True):
        assert torch.equal(one, two)
    assert fitted.weigher is weigher
    assert not fitted.network.training
    assert not {"history", "labels", "positions"} & set(re.findall(r"\w+(?==)", repr(fitted)))


def test_a_training_of_the_package_is_judged_by_its_settings_not_its_batches():
    strategy = aw.Strategy(torch.zeros(4, 3), info={"found_in": {"steps": 1000, "batch_size": 16}})
    aw.fit(make_model, make_blobs(), weigher=strategy, training=SHORT)  # 12 steps: a proxy has other samples
    other = aw.Strategy(torch.zeros(4, 3), info={"found_in": {"epochs": 500}})
    with pytest.warns(UserWarning, match=r"found in another training \(with epochs 500, here 4\)"):
        aw.fit(make_model, make_blobs(), weigher=other, training=SHORT)


def test_an_audit_is_of_its_own_training_whatever_the_weigher_is_used_for_later():
    weigher = aw.load("auto")
    first = aw.fit(make_model, make_blobs(), weigher=weigher, training=SHORT)
    said = first.audit()["label_score"].tolist()
    aw.fit(make_model, make_blobs(seed=3), weigher=weigher, training=SHORT)
    assert first.audit()["label_score"].tolist() == said
    other = torch.zeros(2, 3), (make_blobs(seed=3).labels[:2] + 1) % 3
    with pytest.raises(aw.UserError, match=r"sample \d has label \d, but had \d before"):  # in a loop of one's own
        weigher.weigh(torch.ones(2), *other, progress=0.5, indices=torch.arange(2))


def test_an_audit_is_of_its_own_training_also_where_its_weigher_goes_on_in_a_loop():
    data = make_blobs(90)
    fitted = aw.fit(make_model, data, training=SHORT)
    before = fitted.audit()["label_score"]
    logits = torch.randn(90, 3, generator=torch.Generator().manual_seed(0))
    losses = nn.functional.cross_entropy(logits, data.labels, reduction="none")
    fitted.weigher.weigh(losses, logits, data.labels, progress=0.9, indices=torch.arange(90))
    assert np.array_equal(fitted.audit()["label_score"], before)


def test_history_and_scores():
    heard = []
    data = make_blobs(), make_blobs(30, seed=9)
    fitted = aw.fit(make_model, data[0], val_data=data[1], test_data=data[1], training=SHORT, listen=heard.append)
    assert [report.stage for report in fitted.history] == [0, 1, 2, 3]
    assert heard == fitted.history
    assert fitted.history[-1].train_loss < fitted.history[0].train_loss
    right = (fitted.network(data[1].inputs).argmax(dim=1) == data[1].labels).float().mean()
    assert fitted.val_score == fitted.test_score == fitted.history[-1].val_score == pytest.approx(float(right))
    alone = aw.fit(make_model, data[0], training=SHORT)
    assert alone.val_score is alone.test_score is None
    assert all(report.val_score is None for report in alone.history)


def test_wrong_labels_are_weighed_down_without_being_told_anything():
    images, labels = load_digits(return_X_y=True)
    digits = as_samples((torch.tensor(images).float() / 8 - 1, torch.tensor(labels)))
    train_part, test = digits.take(torch.arange(1200)), digits.take(torch.arange(1200, 1797))
    noisy = uniform_noise(train_part, 0.4, seed=0)

    def network() -> nn.Module:
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))

    training = TrainingConfig(
        epochs=40, batch_size=64, num_stages=4, optimizer="adamw", learning_rate=2e-3, schedule="constant"
    )
    plain = aw.fit(network, noisy, test_data=test, weigher=None, training=training)
    fitted = aw.fit(network, noisy, test_data=test, weigher="auto", training=training)
    assert fitted.test_score > plain.test_score + 0.05
    pytest.importorskip("autoweight.audit")
    issues = fitted.issues
    found = torch.as_tensor(issues["index"][issues["is_label_issue"]])
    assert float(noisy.clean[found].float().mean()) < 0.2
    assert len(found) > 0.7 * int((~noisy.clean).sum())


def test_without_a_word_on_training_it_suits_the_data():
    fitted = aw.fit(make_model, make_blobs(90), val_data=make_blobs(60, seed=4))
    assert fitted.val_score > 0.9
    assert torch.equal(fitted.labels, make_blobs(90).labels)


def test_regression_in_one_call():
    inputs = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    data = inputs, inputs[:, 0] - inputs[:, 1]
    training = TrainingConfig(
        "regression", epochs=10, batch_size=16, num_stages=4, optimizer="adam", learning_rate=0.01, schedule="constant"
    )
    fitted = aw.fit(lambda: nn.Linear(2, 1), data, val_data=data, weigher=None, training=training)
    assert fitted.val_score > 0.5


def test_a_strategy_that_looks_at_classes_is_refused_for_numbers():
    training = TrainingConfig("regression", epochs=4, batch_size=16, num_stages=4)
    with pytest.raises(aw.UserError, match="regression has no feature 'entropy'"):
        aw.fit(
            lambda: nn.Linear(2, 1),
            (torch.randn(60, 2), torch.randn(60)),
            weigher=aw.Strategy(torch.zeros(1, 3), aw.Rule(("loss", "entropy"))),
            training=training,
        )


@pytest.mark.parametrize(
    ("data", "weigher", "sentence"),
    [
        (None, "auto", "^train_data is missing: pass tensors"),
        (
            (torch.randn(48, 2), torch.zeros(48).long()),
            "auto",
            r"^there is one class only \('0'\): there is nothing to",
        ),
        ({"x": torch.randn(48, 2), "y": torch.zeros(48)}, "auto", r"cannot be used: pass a pair, .*, not a dict\.$"),
        (make_blobs(), L2RW(), "^L2RW learns from trusted samples, and there are none: pass some as val_data"),
    ],
)
def test_what_fit_cannot_train_gets_one_sentence(data, weigher, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        aw.fit(make_model, data, weigher=weigher, training=SHORT)


def test_the_audit_needs_a_weigher():
    with pytest.raises(aw.UserError, match="the audit reads what a weigher remembers, and none was used"):
        _ = aw.fit(make_model, make_blobs(), weigher=None, training=SHORT).issues


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    def fit(data=0, **changes):
        given = {"weigher": aw.load("auto"), "training": SHORT, "seed": 1, "checkpoint": tmp_path / "kept"}
        return aw.fit(make_model, make_blobs(seed=data), **given | changes)

    first = fit()
    again = fit()
    assert again.history == []
    assert all(map(torch.equal, first.network.parameters(), again.network.parameters()))
    tables = torch.zeros(1, 3), torch.ones(1, 3)
    others = [{"seed": 2}, {"data": 3}, {"training": replace(SHORT, learning_rate=0.02)}, {"weigher": None}]
    for other in [*others, {"weigher": aw.Strategy(tables[0])}]:
        with pytest.raises(aw.UserError, match="the checkpoint is of another training"):
            fit(**other)
    (tmp_path / "kept").unlink()  # which leaves the one before
    with pytest.raises(aw.UserError, match=r"to begin anew, delete \S+kept and kept\.previous beside it"):
        fit(seed=2)
    fit(weigher=aw.Strategy(tables[0]), checkpoint=tmp_path / "other")
    with pytest.raises(aw.UserError, match="the checkpoint is of another training"):
        fit(weigher=aw.Strategy(tables[1]), checkpoint=tmp_path / "other")


def test_a_training_that_blows_up_says_so():
    data = (1e18 * make_blobs().inputs, make_blobs().labels)
    with pytest.raises(aw.RunError, match="the training: the loss turned NaN or infinite at step"):
        aw.fit(
            make_model,
            data,
            weigher=None,
            training=TrainingConfig(epochs=4, batch_size=16, num_stages=4, learning_rate=1e12),
        )


class Corrupt(Dataset):
    """Blobs, of which the seventh cannot be read."""

    def __init__(self) -> None:
        self.blobs = make_blobs()

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitem__(self, place):
        if place == 7:
            raise OSError("cannot identify image file")
        return self.blobs.inputs[place], int(self.blobs.labels[place])


def test_a_sample_that_cannot_be_read_is_named_or_skipped_without_a_word_on_streams():
    with pytest.raises(aw.UserError, match=r"sample 7 cannot be read, cannot identify image file: .*bad_samples=\"sk"):
        aw.fit(make_model, Corrupt(), training=SHORT)
    with pytest.warns(UserWarning, match="sample 7, cannot identify image file"):
        fitted = aw.fit(make_model, Corrupt(), training=SHORT, bad_samples="skip")
    assert list(fitted.skipped) == [7]
    with pytest.raises(aw.UserError, match="leave out stream=False"):
        aw.fit(make_model, Corrupt(), training=SHORT, bad_samples="skip", stream=False)


def test_frames_indexed_sets_and_double_precision_are_what_they_hold():
    data = make_blobs()
    whole = aw.fit(make_model, (data.inputs, data.labels), training=SHORT).history[-1].train_loss
    pandas = pytest.importorskip("pandas")
    frames = pandas.DataFrame(data.inputs.numpy()), pandas.Series(data.labels.numpy())
    indexed = aw.Indexed(TensorDataset(data.inputs, data.labels))
    rows = [(row, label) for (_, row), label in zip(frames[0].iterrows(), data.labels.tolist(), strict=True)]
    for same in (frames, indexed, rows):
        assert aw.fit(make_model, same, training=SHORT).history[-1].train_loss == whole
    assert aw.fit(make_model, indexed, training=SHORT, stream=True).history[-1].train_loss == whole
    torch.set_default_dtype(torch.float64)
    try:
        for stream in (None, True):
            double = TensorDataset(data.inputs.double(), data.labels)
            fitted = aw.fit(make_model, double, training=SHORT, stream=stream)
            assert next(fitted.network.parameters()).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("labels", [["cat"] * 60, np.array(["cat", "dog"] * 30), np.array(["cat"] * 60, object)])
def test_labels_that_are_text_say_how_to_number_them(labels):
    with pytest.raises(aw.UserError, match="labels are text, such as 'cat': number the classes"):
        aw.fit(make_model, (make_blobs().inputs, labels), training=SHORT)


def test_an_audit_of_tokens_names_the_token():
    torch.manual_seed(0)
    ids = torch.randint(5, (80, 6))
    labels = ids.clone()
    labels[:, 0] = -100
    wrong = torch.zeros_like(ids, dtype=torch.bool)
    wrong[:12, 3] = True
    labels[wrong] = (labels[wrong] + 1) % 5
    training = aw.TrainingConfig(
        task="tokens", epochs=20, batch_size=20, num_stages=4, optimizer="adam", learning_rate=0.1
    )
    fitted = aw.fit(lambda: torch.nn.Embedding(5, 5), (ids, labels), training=training)
    issues = fitted.audit(names=[f"text {place}" for place in range(80)])
    assert len(issues) == 80 * 5
    found = {(row.index, row.token, row.name) for row in issues if row.is_label_issue}
    assert found == {(place, 3, f"text {place}") for place in range(12)}
    with pytest.raises(aw.UserError, match="token 1 of sample 0 has label"):
        aw.find_label_issues(fitted.weigher, ids.where(labels < 0, (labels + 1) % 5).where(labels >= 0, -100))
