"""Weights in the real Hugging Face Trainer, on networks made from a configuration."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.data import IterableDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    set_seed,
)

import autoweight as aw
from autoweight.integrations.transformers import INDEX
from autoweight.transformers import WeightedTrainer

from . import two_trainers

pytestmark = pytest.mark.filterwarnings("ignore")  # what transformers and its dependencies deprecate


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """A Trainer collects garbage at its end, which takes longer than these trainings."""
    monkeypatch.setattr("gc.collect", lambda *args: 0)


SMALL = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 16}


def words(count=64, length=6):
    return torch.randint(30, (count, length), generator=torch.Generator().manual_seed(0))


def sentences(count=64):
    return [{"input_ids": ids, "labels": ids.sum() % 3, "source": "somewhere"} for ids in words(count)]


def several_labels(count=64):
    return [{"input_ids": ids, "labels": (ids[:3] % 2).float()} for ids in words(count)]


def numbers(count=64):
    return [{"input_ids": ids, "labels": ids.float().mean()} for ids in words(count)]


def tagged(count=64):
    rows = [{"input_ids": ids, "labels": ids % 3} for ids in words(count)]
    for number, row in enumerate(rows):
        row["labels"][: number % 3] = -100
    return rows


def language(count=64):
    return [{"input_ids": ids, "labels": ids.clone()} for ids in words(count)]


def classifier(num_labels=3, kind=BertForSequenceClassification):
    set_seed(0)
    return kind(BertConfig(num_labels=num_labels, **SMALL, **STILL))


def writer():
    set_seed(0)
    size = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(vocab_size=30, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **size))


def translator():
    set_seed(0)
    size = {"vocab_size": 30, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    return T5ForConditionalGeneration(T5Config(**size, decoder_start_token_id=0))


class Own(torch.nn.Module):
    """No configuration, and a forward that wants labels; it gives a loss, for classes, before its logits."""

    def __init__(self, outputs=3):
        super().__init__()
        set_seed(0)
        self.layer = torch.nn.Linear(6, outputs)

    def forward(self, input_ids, labels):
        logits = self.layer(input_ids / 30)
        return torch.tensor(0.0) if labels.is_floating_point() else cross_entropy(logits, labels), logits


TASKS = {
    "sentences": (classifier, sentences),
    "several labels": (classifier, several_labels),
    "numbers": (lambda: classifier(1), numbers),
    "tags": (lambda: classifier(kind=BertForTokenClassification), tagged),
    "language": (writer, language),
    "translation": (translator, language),
    "labels wanted": (Own, sentences),
}


def trainer_of(folder, task="sentences", weigher=None, rows=None, make_model=None, **settings):
    make_model, make_rows = make_model or TASKS[task][0], TASKS[task][1]
    defaults = {"per_device_train_batch_size": 16, "max_steps": 6, "logging_steps": 1, "save_strategy": "no"}
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "learning_rate": 0.01}
    args = TrainingArguments(str(folder), **quiet, **defaults | settings)
    kind = {"model": make_model(), "args": args, "train_dataset": make_rows() if rows is None else rows}
    return Trainer(**kind) if weigher is None else WeightedTrainer(**kind, weigher=weigher)


def trained(*args, **named):
    trainer = trainer_of(*args, **named)
    trainer.train()
    return trainer


def params(trainer):
    return torch.cat([one.detach().flatten() for one in trainer.model.parameters()])


@pytest.mark.parametrize("task", TASKS)
def test_ones_change_nothing_to_the_bit(task, tmp_path):
    assert torch.equal(params(trained(tmp_path, task, aw.Uniform())), params(trained(tmp_path, task)))


@pytest.mark.parametrize("task", ["sentences", "tags"])
def test_label_smoothing_is_the_trainers(task, tmp_path):
    smooth = {"label_smoothing_factor": 0.2, "max_steps": 1}
    ones, plain = (trained(tmp_path, task, weigher, **smooth) for weigher in (aw.Uniform(), None))
    losses = [one.state.log_history[0] for one in (ones, plain)]
    assert losses[0]["loss"] == pytest.approx(losses[1]["loss"], rel=1e-5)
    assert losses[0]["grad_norm"] == pytest.approx(losses[1]["grad_norm"], rel=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_four_batches_of_16_have_the_gradient_of_one_of_64(task, tmp_path):
    def grad_norm(size, times):
        settings = {"per_device_train_batch_size": size, "gradient_accumulation_steps": times, "max_steps": 1}
        return trained(tmp_path, task, Halving(), **settings).state.log_history[0]["grad_norm"]

    assert grad_norm(16, 4) == pytest.approx(grad_norm(64, 1), rel=1e-4)


class Halving(aw.Weigher):
    """Odd samples count half, whatever else is in the batch."""

    def weigh(self, losses, logits, labels, progress, indices=None):
        odd = (losses.double() * 1000).long() % 2
        return 1 - 0.5 * odd.to(losses.dtype)


class Recorder(aw.Weigher):
    """Ones, and what it was told."""

    def __init__(self):
        self.calls = []

    def weigh(self, losses, logits, labels, progress, indices=None):
        self.calls.append((progress, indices, labels.clone()))
        return torch.ones_like(losses)


@pytest.mark.parametrize("keep", [True, False])
def test_the_index_column_comes_and_goes_by_itself(keep, tmp_path):
    recorder, rows = Recorder(), sentences()
    if not keep:
        rows = [{name: value for name, value in row.items() if name != "source"} for row in rows]
    trained(tmp_path, weigher=recorder, rows=rows, remove_unused_columns=keep, max_steps=4)
    assert [progress for progress, _, _ in recorder.calls] == [0, 0.25, 0.5, 0.75]
    indices = torch.cat([indices for _, indices, _ in recorder.calls])
    assert sorted(indices.tolist()) == list(range(64))
    labels = torch.stack([row["labels"] for row in rows])
    assert torch.equal(torch.cat([labels for _, _, labels in recorder.calls]), labels[indices])
    assert INDEX not in rows[0]


def test_rows_may_be_of_the_datasets_library(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"input_ids": ids.tolist(), "labels": 1, "note": "x"} for ids in words()])
    recorder = Recorder()
    trained(tmp_path, weigher=recorder, rows=rows, max_steps=1)
    assert len(recorder.calls[0][1]) == 16


def test_tokens_are_remembered_each_at_its_own_place(tmp_path):
    weigher = aw.load("auto")
    trained(tmp_path, "tags", weigher, max_steps=4)
    remembered = weigher.state_dict()["label"][: 64 * 6].view(64, 6)
    labels = torch.stack([row["labels"] for row in tagged()])
    assert torch.equal(remembered, labels.where(labels != -100, -1).int())


def test_evaluation_is_not_weighted(tmp_path):
    rows = sentences(16)
    weighted, plain = (trainer_of(tmp_path, weigher=weigher) for weigher in (aw.Focal(gamma=2.0), None))
    assert weighted.evaluate(rows)["eval_loss"] == plain.evaluate(rows)["eval_loss"]


def test_training_goes_on_from_a_checkpoint_as_if_never_stopped(tmp_path):
    whole = trained(tmp_path / "whole", weigher=aw.load("auto"), max_steps=8, save_strategy="steps", save_steps=5)
    assert (tmp_path / "whole" / "checkpoint-5" / "weigher.pt").exists()
    again = trainer_of(tmp_path / "again", weigher=aw.load("auto"), max_steps=8)
    again.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-5"))
    assert torch.equal(params(again), params(whole))
    assert torch.equal(again.weigher.state_dict()["margin"], whole.weigher.state_dict()["margin"])
    trained(tmp_path / "bare", weigher=aw.load("auto"), save_strategy="steps", save_steps=5, save_only_model=True)
    state = tmp_path / "whole" / "checkpoint-5" / "weigher.pt"
    for left in (state.read_bytes()[:-999], b""):
        state.write_bytes(left)
        with pytest.raises(aw.UserError, match=r"weigher\.pt is damaged: resume from an earlier checkpoint"):
            again.train(resume_from_checkpoint=str(state.parent))
    with pytest.raises(aw.UserError, match="saved with save_only_model, or by a Trainer without weights"):
        again.train(resume_from_checkpoint=str(tmp_path / "bare" / "checkpoint-5"))


def test_whole_numbers_are_numbers_where_the_model_predicts_one(tmp_path):
    rows = [[row | {"labels": kind(row["labels"].round())} for row in numbers()] for kind in (int, float)]
    assert torch.equal(*(params(trained(tmp_path, "numbers", aw.Uniform(), rows=one)) for one in rows))


def test_a_plain_module_learns_numbers_and_several_labels(tmp_path):
    def first_loss(outputs, rows):
        made = {"make_model": lambda: Own(outputs), "max_steps": 1}
        loss = trained(tmp_path, weigher=aw.Uniform(), rows=rows, **made).state.log_history[0]["loss"]
        targets = torch.stack([row["labels"] for row in rows])
        return loss, Own(outputs)(torch.stack([row["input_ids"] for row in rows]), targets)[1], targets

    found, logits, targets = first_loss(1, numbers(16))
    assert found == pytest.approx(float((logits.squeeze(1) - targets).square().mean()), rel=1e-4)
    found, logits, targets = first_loss(3, several_labels(16))
    assert found == pytest.approx(float(binary_cross_entropy_with_logits(logits, targets)), rel=1e-4)
    with pytest.raises(aw.UserError, match="for numbers, give the model a config with problem_type = 'regression'"):
        first_loss(3, [row | {"labels": row["labels"] * 2} for row in several_labels(16)])


class Stream(IterableDataset):
    def __iter__(self):
        yield from sentences()


def test_what_cannot_be_weighed_is_said(tmp_path):
    with pytest.raises(aw.UserError, match="this strategy remembers samples"):
        trained(tmp_path, weigher=aw.load("auto"), rows=Stream())
    with pytest.raises(aw.UserError, match="not 'auto'"):
        trainer_of(tmp_path, weigher="auto")
    with pytest.raises(aw.UserError, match="no compute_loss_func"):
        WeightedTrainer(model=classifier(), weigher=aw.Uniform(), compute_loss_func=print)
    with pytest.raises(aw.UserError, match="rows need a column 'labels'"):
        trained(tmp_path, weigher=aw.Uniform(), rows=[{"input_ids": ids} for ids in words()])
    with pytest.raises(aw.UserError, match=r"their shape, \(16,\), .* are \(16, 3\): labels that are classes must be"):
        trained(tmp_path, weigher=aw.Uniform(), rows=numbers())
    with pytest.raises(aw.UserError, match="out of range: with 3 classes, labels go from 0 to 2"):
        trained(tmp_path, weigher=aw.Uniform(), rows=[row | {"labels": row["labels"] + 1} for row in sentences()])


def test_two_processes_train_as_one_with_their_batches_together(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    subprocess.run([sys.executable, two_trainers.__file__, str(tmp_path)], check=True, timeout=150, capture_output=True)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    for case in two_trainers.CASES:
        first, second = (rank[case] for rank in ranks)
        assert torch.equal(first["params"], second["params"])
        assert first["sizes"] == second["sizes"]
        assert all(torch.equal(one, second["memory"][name]) for name, one in first["memory"].items())
    for case in ("by the batch", "tokens"):  # whose batches are full, so that no sampler takes a sample again
        alone, together = two_trainers.trained(case, str(tmp_path), 1), ranks[0][case]
        assert together["grad_norms"] == pytest.approx(alone["grad_norms"], rel=1e-4)
        assert torch.allclose(together["params"], alone["params"], atol=1e-6)
        assert together["sizes"] == alone["sizes"]
        for name, one in alone["memory"].items():
            assert torch.allclose(one.double(), together["memory"][name].double(), atol=1e-5)
    remembered = ranks[0]["remembered"]
    assert remembered["sizes"] == [16] * 9  # five of 43 come again at the end of an epoch
    assert int(remembered["memory"]["counts"][:, 0].sum()) == 43


def test_rows_that_do_not_fit_are_said(tmp_path):
    short = WeightedTrainer(
        classifier(kind=BertForTokenClassification),
        TrainingArguments(str(tmp_path), report_to="none", use_cpu=True, max_steps=1, disable_tqdm=True),
        train_dataset=tagged(),
        weigher=aw.load("auto"),
        max_tokens=5,
    )
    with pytest.raises(aw.UserError, match=r"a row has 6 tokens: tell WeightedTrainer\(max_tokens=...\)"):
        short.train()
    rows = [{"input_ids": ids, "labels": ids % 3} for ids in words()]  # a label a token, and one answer a row
    with pytest.raises(aw.UserError, match=r"rows or tokens, but logits and labels are \(16, 3\) and \(16, 6\)"):
        trained(tmp_path, weigher=aw.Uniform(), rows=rows)
