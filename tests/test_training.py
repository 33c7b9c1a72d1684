import copy
import itertools
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.loader import Loader
from autoweight.methods.method import Weighted
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.training import loop
from autoweight.training.captured import draws_random_numbers
from autoweight.training.device import isolated, seed_draws
from autoweight.training.evaluate import score
from autoweight.training.loop import Training, make_slots, train
from autoweight.training.schedules import learning_rate_at

from .conftest import make_blobs

CONFIG = TrainingConfig(epochs=10, batch_size=16, num_stages=5, drop_stages=(3,), weight_decay=1e-3)


def make_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def run(weigher=None, config=CONFIG, seed=1, make=make_model, checkpoint=None, on_stage=lambda report: None):
    data = make_blobs(), make_blobs(30, seed=9)
    training = Training(make, *data, Weighted(weigher), seed, on_stage=on_stage)
    (trained,) = train([training], config, checkpoint).trained
    assert trained.failure == ""
    return trained.slot.model.state_dict()


def assert_same(one, two):
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_loop_is_plain_sgd():
    model, config = nn.Linear(2, 3), TrainingConfig(epochs=3, batch_size=20, num_stages=3, drop_stages=(1,))
    by_hand = copy.deepcopy(model)
    blobs = make_blobs()
    velocity = [torch.zeros_like(p) for p in by_hand.parameters()]
    for step, batch in enumerate(Loader(blobs, 20, seed=4).batches(0, 9)):
        loss = cross_entropy(by_hand(batch.inputs), batch.labels)
        gradients = torch.autograd.grad(loss, list(by_hand.parameters()))
        rate = 0.1 if step < 3 else 0.01
        with torch.no_grad():
            for param, gradient, v in zip(by_hand.parameters(), gradients, velocity, strict=True):
                v.mul_(0.9).add_(gradient)
                param -= rate * v
    train([Training(lambda: model, blobs, blobs, None, seed=4)], config)
    for one, two in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_same_seed_same_bits_other_seed_others():
    assert_same(run(), run())
    assert not torch.equal(run()["0.weight"], run(seed=2)["0.weight"])


@pytest.mark.parametrize(
    "weigher",
    [
        aw.Uniform(),
        aw.Constant(loss=0.0, bias=0.0),
        aw.Focal(gamma=0.0),
        aw.Strategy(torch.zeros(5, 3), aw.Rule(normalised=True)),
    ],
)
def test_all_ones_weights_train_to_the_bits_of_no_weights(weigher):
    assert_same(run(None), run(weigher))


def test_side_by_side_is_the_same_as_one_by_one():
    data = make_blobs(), make_blobs(30, seed=9)
    weighers = [aw.Constant(), None]
    makes = [partial(make_model, seed) for seed in (0, 1)]
    trainings = [Training(makes[seed], *data, Weighted(weighers[seed]), seed) for seed in (0, 1)]
    for seed, trained in enumerate(train(trainings, CONFIG).trained):
        assert_same(trained.slot.model.state_dict(), run(weighers[seed], seed=seed, make=makes[seed]))


def test_trainings_of_other_lengths_do_not_go_side_by_side():
    with pytest.raises(aw.UserError, match="as many steps each"):
        train([Training(make_model, make_blobs(n), make_blobs(), None, seed=0) for n in (48, 96)], CONFIG)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("weigher", [None, aw.Constant(), aw.SelfPaced()])
@pytest.mark.parametrize("killed_after", [0, 2, 4])
def test_a_killed_run_goes_on_to_the_same_parameters(tmp_path, weigher, killed_after):
    checkpoint = CheckpointFile(tmp_path / "run")

    def kill(report):
        if report.stage == killed_after:
            raise KilledError  # after the stage, before its checkpoint

    with pytest.raises(KilledError):
        run(weigher, checkpoint=checkpoint, on_stage=kill)
    stages = []
    start = partial(make_model, 5 if killed_after else 0)  # what a checkpoint holds replaces any start
    resumed = run(weigher, make=start, checkpoint=checkpoint, on_stage=lambda report: stages.append(report.stage))
    assert stages == list(range(killed_after, 5))
    assert_same(resumed, run(weigher))


def test_time_adds_up_over_sittings(tmp_path):
    def kill(report):
        reports.append(report)
        if report.stage == 2:
            raise KilledError

    reports, checkpoint = [], CheckpointFile(tmp_path / "run")
    with pytest.raises(KilledError):
        run(checkpoint=checkpoint, on_stage=kill)
    run(checkpoint=checkpoint, on_stage=reports.append)
    saved = [report.seconds for report in reports if report.stage < 2]
    assert reports[3].stage == 2  # once more, after the kill
    assert reports[3].seconds > max(saved)


def test_trainings_side_by_side_share_their_time(monkeypatch):
    monkeypatch.setattr(loop.time, "perf_counter", itertools.count().__next__)  # a second between two looks
    blobs = make_blobs(48)
    trainings = [Training(make_model, blobs, blobs, None, seed=0) for _ in range(2)]
    config = TrainingConfig(epochs=4, batch_size=16, num_stages=4)
    assert train(trainings, config).seconds == 4 / 2


class Poisoned(nn.Linear):
    """Its 15th step gives no number; the stages of CONFIG have six."""

    def __init__(self, poison):
        super().__init__(2, 3)
        self.poison, self.steps = poison, 0

    def forward(self, inputs):
        self.steps += self.training
        return super().forward(inputs) * (self.poison if self.training and self.steps == 15 else 1.0)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_loss_that_blows_up_ends_the_training_with_a_sentence_and_keeps_what_was_saved(tmp_path, poison):
    checkpoint, stages = CheckpointFile(tmp_path / "run"), []
    make = partial(Poisoned, poison)
    training = Training(make, make_blobs(), make_blobs(), None, 1, name="mine", on_stage=stages.append)
    why = train([training], CONFIG, checkpoint).trained[0].failure
    assert why.startswith("mine: the loss turned NaN or infinite at step 14: lower the learning rate")
    assert checkpoint.load()["stage"] == len(stages) == 2


@pytest.mark.parametrize("killed_after", [1, 3])
def test_others_go_on_beside_one_that_blows_up_killed_or_not(tmp_path, killed_after):
    def kill(report):
        if report.stage == killed_after:
            raise KilledError

    def both(on_stage=lambda report: None):
        data = make_blobs(), make_blobs(30, seed=9)
        good = Training(make_model, *data, None, 1, on_stage=on_stage)
        bad = Training(partial(Poisoned, float("nan")), *data, None, 1)
        return train([bad, good], CONFIG, CheckpointFile(tmp_path / "c")).trained

    with pytest.raises(KilledError):
        both(on_stage=kill)
    bad, good = both()
    assert "at step" in bad.failure
    assert good.failure == ""
    assert_same(good.slot.model.state_dict(), run())


def test_learning_rate_by_stage_and_cosine():
    paper = TrainingConfig()
    rates = [learning_rate_at(paper, stage, 20) for stage in range(20)]
    assert rates == pytest.approx([0.1] * 10 + [0.01] * 3 + [1e-3] * 3 + [1e-4] * 4)
    cosine = TrainingConfig(schedule="cosine")
    assert [learning_rate_at(cosine, step, 2) for step in (0, 1, 2)] == pytest.approx([0.1, 0.05, 0.0])


def test_accuracy_counts_and_leaves_the_mode(blobs):
    class Says(nn.Module):
        def forward(self, inputs):
            assert not self.training
            return torch.eye(3)[torch.zeros(len(inputs), dtype=torch.long)]

    model = Says()
    assert score(model, blobs, batch_size=7) == pytest.approx(1 / 3)
    assert model.training


class FunctionalDropout(nn.Linear):
    def forward(self, inputs):
        return nn.functional.dropout(super().forward(inputs), 0.5, self.training)


def test_a_step_on_a_cpu_draws_as_by_torch_s_own_seed():
    with isolated("cpu"):
        torch.manual_seed(2**63 - 7)
        expected = torch.rand(5)
        seed_draws(2**63 - 7, "cpu")
        assert torch.equal(torch.rand(5), expected)


def test_networks_that_draw_random_numbers_are_known_by_what_they_do():
    inputs = make_blobs(8).inputs
    quiet = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.0)).eval()
    before = copy.deepcopy(quiet.state_dict())
    assert not draws_random_numbers(quiet, inputs)
    assert_same(before, quiet.state_dict())
    assert draws_random_numbers(FunctionalDropout(2, 4).eval(), inputs)
    assert draws_random_numbers(make_model().eval(), inputs)


def test_trainings_on_the_same_data_with_the_same_seed_share_their_batches():
    blobs = make_blobs()
    trainings = [Training(make_model, blobs, make_blobs(30), None, seed) for seed in (1, 1, 2)]
    trainings.append(Training(make_model, make_blobs(), make_blobs(30), None, 1))
    loaders = [id(slot.loader) for slot in make_slots(trainings, CONFIG)]
    assert loaders[0] == loaders[1]
    assert len(set(loaders)) == 3
