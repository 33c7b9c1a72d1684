"""mentornet: the predefined curriculum by hand, and a mentor that learns on one data set and serves on another."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import autoweight as aw
from autoweight.cli.run import run
from autoweight.methods import TrainingFacts, make_method
from autoweight.methods.mentor import Mentor, Seen, fit_mentor
from autoweight.methods.mentornet import MentorNet
from autoweight.recipes import get_recipe
from autoweight.runs.mentor import learn_mentor

from .rivals import trained


@pytest.fixture(scope="module")
def mentor_file(tmp_path_factory):
    """A mentor that learned on a small part of digits."""
    config = get_recipe("digits-noise")
    training = replace(config.training, epochs=20, num_stages=10, drop_stages=())
    path = tmp_path_factory.mktemp("mentor") / "mentor.safetensors"
    learn_mentor(replace(config, data=replace(config.data, train_size=500), training=training), seed=7, steps=150).save(
        path
    )
    return str(path)


def test_predefined_mentornet_by_hand():
    weigher = MentorNet(percentile=0.5, burn_in=0.2)
    logits, labels = torch.zeros(3, 2), torch.zeros(3).long()
    losses = torch.tensor([1.0, 2.0, 4.0])
    assert weigher.weigh(losses, logits, labels, progress=0.1).tolist() == [1, 1, 1]  # burning in
    assert weigher.weigh(losses, logits, labels, progress=0.2).tolist() == [1, 1, 0]
    assert weigher.weigh(losses + 2, logits, labels, progress=0.5).tolist() == [0, 0, 0]
    assert float(weigher.level) == pytest.approx(0.9 * 2 + 0.1 * 4)


def test_mentornet_remembers_the_last_losses_of_each_sample():
    weigher = MentorNet(percentile=0.5)
    weigher.reserve(4, 2, "cpu")
    logits, labels, indices = torch.zeros(3, 2), torch.zeros(3).long(), torch.tensor([3, 0, 1])
    for add in range(7):
        weigher.weigh(torch.tensor([1.0, 2.0, 4.0]) + add, logits, labels, progress=0.5, indices=indices)
    assert weigher.history[3, :, 0].tolist() == [3, 4, 5, 6, 7]
    assert_close(weigher.history[0, -1], torch.tensor([8.0, 8.0 - float(weigher.level)]))
    assert (weigher.history[2] == -1).all()


def test_a_mentor_that_learned_on_digits_tells_wrong_labels_of_another_set(mentor_file):
    method = make_method("mentornet", TrainingFacts(torch.ones(3), torch.ones(1)), {"mentor": mentor_file})
    slot, noisy = trained(method, noise=0.5)
    weigher, samples = method.weigher, torch.arange(240)
    losses, labels = torch.zeros(240), torch.zeros(240).long()
    seen = Seen(weigher.history, torch.full_like(labels, weigher.mentor.unknown_label), torch.full_like(losses, 0.99))
    right = weigher.mentor(seen).sigmoid()
    assert right[noisy.clean].mean() > 0.8
    assert right[~noisy.clean].mean() < 0.3
    assert torch.equal(Mentor.load(mentor_file)(seen), weigher.mentor(seen))
    outputs, own = slot.method.setup.look(slot.model, noisy.inputs, noisy.labels)
    weights = weigher.weigh(own.detach(), outputs, noisy.labels, progress=0.99, indices=samples)
    assert weights[noisy.clean].mean() > 3 * weights[~noisy.clean].mean()


def test_a_mentor_learns_what_labels_tell():
    torch.manual_seed(0)
    labels = torch.randint(2, (600,))
    seen = Seen(torch.rand(600, 5, 2), labels, torch.rand(600))
    mentor = fit_mentor(seen, labels == 1, num_classes=2, steps=150)
    assert ((mentor(seen) > 0) == (labels == 1)).float().mean() > 0.95
    hidden = seen._replace(labels=torch.full_like(labels, mentor.unknown_label))
    assert mentor(hidden).sigmoid().mean() == pytest.approx(0.5, abs=0.2)


def test_a_mentor_says_what_it_lacks(tmp_path, mentor_file):
    weigher = MentorNet(mentor=mentor_file)
    with pytest.raises(aw.UserError, match="call reserve first, and pass indices="):
        weigher.weigh(torch.ones(2), torch.zeros(2, 3), torch.zeros(2).long(), progress=0.5)
    with pytest.raises(aw.UserError, match="the mentor knows 10 classes, but there are 3"):
        MentorNet(mentor=mentor_file, heed_labels=True).reserve(8, 3, "cpu")
    aw.Strategy(torch.zeros(1, 3)).save(tmp_path / "strategy")
    (tmp_path / "cut").write_bytes(b"not a mentor")
    with pytest.raises(aw.UserError, match="but holds no mentor"):
        Mentor.load(tmp_path / "strategy")
    with pytest.raises(aw.UserError, match="truncated or holds no mentor"):
        Mentor.load(tmp_path / "cut")


def test_a_mentor_is_named_on_the_command_line_and_found_from_anywhere(tmp_path, monkeypatch, mentor_file):
    words = "train digits-noise --method mentornet --training.epochs 2 --training.num-stages 2 --training.drop-stages"
    monkeypatch.chdir(Path(mentor_file).parent)
    run([*words.split(), "--knob", f"mentornet.mentor={Path(mentor_file).name}", "--out", str(tmp_path / "run")])
    (tmp_path / "run" / "result.json").unlink()
    monkeypatch.chdir(tmp_path)
    run(["train", "--out", "run", "--resume"])
    assert (tmp_path / "run" / "result.json").exists()
