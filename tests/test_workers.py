from typing import get_args

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import LabelFeature, SearchConfig, TrainingConfig
from autoweight.data import Samples
from autoweight.finding.reward import reward
from autoweight.models import make_network
from autoweight.strategy import Rule
from autoweight.workers import Problem, SequentialWorkers, StackedWorkers, make_workers
from autoweight.workers.base import ParamsWeigher

from .conftest import make_blobs

TRAINING = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,), weight_decay=1e-3)


def images(count=48, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    return Samples.of(torch.randn(count, 1, 6, 6, generator=generator) + labels[:, None, None, None], labels, 3)


def mlp():
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))


def with_dropout():
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 3))


def cnn():
    return make_network("small_cnn", (1, 6, 6), 3)


def problem(make_model, training=TRAINING, **options):
    data = images if make_model is cnn else make_blobs
    return Problem(make_model, data(48), data(30, seed=9), training, **options)


def run(kind, problem, params, num_starts=1):
    workers = kind(problem, len(params), num_starts)
    workers.begin(seed=3)
    zeros = torch.zeros_like(params)
    return [workers.run_stage(stage, zeros if stage == 0 else params) for stage in range(4)], workers


PARAMS = torch.tensor([[-3.0, 1.0, -0.5], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [-8.0, 0.0, -2.0]])


@pytest.mark.parametrize("num_starts", [1, 2, 4])
@pytest.mark.parametrize("make_model", [mlp, with_dropout, cnn])
def test_stacked_equals_sequential_to_rounding(make_model, num_starts):
    stacked, _ = run(StackedWorkers, problem(make_model), PARAMS, num_starts)
    sequential, _ = run(SequentialWorkers, problem(make_model), PARAMS, num_starts)
    for one, two in zip(stacked, sequential, strict=True):
        assert_close(one.loss, two.loss, atol=2e-4, rtol=2e-4)
        assert_close(one.score, two.score, atol=0.034, rtol=0)  # one sample of thirty may tip over
        assert_close(one.reference_score, two.reference_score, atol=0.034, rtol=0)


@pytest.mark.parametrize("options", [{"features": ("loss", "density", "label")}, {"features": ("entropy",)}])
@pytest.mark.parametrize("normalise", [False, True])
def test_all_features_agree(options, normalise):
    params = torch.tensor([[-1.0] * (len(options["features"]) + 1), [0.5] * (len(options["features"]) + 1)])
    rule = Rule(**options, normalised=normalise)
    stacked, _ = run(StackedWorkers, problem(mlp, rule=rule), params)
    sequential, _ = run(SequentialWorkers, problem(mlp, rule=rule), params)
    assert_close(stacked[-1].loss, sequential[-1].loss, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
@pytest.mark.parametrize("make_model", [mlp, with_dropout, cnn])
@pytest.mark.parametrize("num_starts", [1, 2])
@pytest.mark.parametrize("normalise", [False, True])
def test_zero_parameters_give_a_reward_of_exactly_0_at_every_stage(kind, make_model, num_starts, normalise):
    config = SearchConfig()
    for params in (torch.zeros(4, 3), PARAMS):  # on its own, and beside workers that are weighted
        outcomes, _ = run(kind, problem(make_model, rule=Rule(normalised=normalise)), params, num_starts)
        assert all(float(reward(config, outcome, 0.5)[1]) == 0 for outcome in outcomes)


def test_zero_parameters_train_to_the_same_bits_as_the_reference():
    _, workers = run(StackedWorkers, problem(cnn), PARAMS)
    for tensors in (workers.params, workers.buffers):
        for value in tensors.values():
            assert torch.equal(value[1], value[-1])  # worker 1 has zero parameters; the last slot is the reference
    assert not torch.equal(workers.params["0.weight"][0], workers.params["0.weight"][-1])


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
def test_workers_of_different_starts_differ_and_seeds_repeat(kind):
    first, _ = run(kind, problem(mlp), torch.zeros(4, 3), num_starts=2)
    again, _ = run(kind, problem(mlp), torch.zeros(4, 3), num_starts=2)
    assert torch.equal(first[-1].loss, again[-1].loss)
    assert first[-1].loss[0] == first[-1].loss[2]
    assert first[-1].loss[0] != first[-1].loss[1]


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
def test_a_network_that_blows_up_leaves_the_others_alone(kind):
    poisoned = PARAMS.clone()
    poisoned[0] = float("nan")
    sound, _ = run(kind, problem(mlp), PARAMS)
    outcomes, _ = run(kind, problem(mlp), poisoned)
    assert outcomes[-1].loss[0].isnan()
    assert torch.equal(outcomes[-1].loss[1:], sound[-1].loss[1:])
    assert torch.equal(outcomes[-1].score[1:], sound[-1].score[1:])


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
def test_without_a_sound_reference_nothing_counts(kind, monkeypatch):
    workers = kind(problem(mlp), 4, num_starts=2)
    workers.begin(0)
    trained = workers._train
    monkeypatch.setattr(workers, "_train", lambda *a: trained(*a).index_fill(0, torch.tensor([5]), float("nan")))
    assert workers.run_stage(0, PARAMS).loss.isnan().tolist() == [False, True, False, True]


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
def test_frozen_parameters_stay_frozen(kind):
    def half_frozen():
        model = mlp()
        model[0].requires_grad_(False)
        return model

    def weights(workers):
        if kind is StackedWorkers:
            return [workers.params[name][0].detach().clone() for name in ("0.weight", "2.weight")]
        return [workers.slots[0].model[layer].weight.detach().clone() for layer in (0, 2)]

    workers = kind(problem(half_frozen), 4)
    workers.begin(0)
    before = weights(workers)
    workers.run_stage(0, PARAMS)
    after = weights(workers)
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


@pytest.mark.parametrize("label_feature", get_args(LabelFeature))
@pytest.mark.parametrize("normalise", [False, True])
def test_workers_weigh_as_strategies_do(label_feature, normalise):
    features, params = ("loss", "entropy", "density", "label"), torch.tensor([-2.0, 1.0, 0.5, 1.5, -0.5])
    task = problem(mlp, rule=Rule(features, label_feature, normalised=normalise))
    logits, labels = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    batch = nn.functional.cross_entropy(logits, labels, reduction="none"), logits, labels
    counts = task.train.class_counts
    strategy = aw.Strategy(params[None], task.rule, class_counts=counts)
    weigher = ParamsWeigher(task.rule, SequentialWorkers(task, 1).label_values, params)
    assert torch.equal(weigher.weigh(*batch, progress=0.5), strategy.weigh(*batch, progress=0.5))


def test_network_steps_are_counted():
    _, workers = run(StackedWorkers, problem(mlp), PARAMS, num_starts=2)
    assert workers.network_steps == 3 * 2 + 9 * (4 + 2)  # the references alone in the warm-up, then all


def test_make_workers_stacks_where_it_can_and_where_it_pays():
    assert isinstance(make_workers(problem(cnn), 4), StackedWorkers)
    large = torch.zeros(48, 1, 16, 16)
    labels = torch.arange(48) % 3
    for make_model, kind in ((cnn, SequentialWorkers), (flat, StackedWorkers)):
        data = Samples.of(large, labels, 3)
        assert type(make_workers(Problem(make_model, data, data, TRAINING), 4)) is kind


class Branching(nn.Linear):
    """Decides by its outputs, which differ between networks."""

    def __init__(self):
        super().__init__(2, 3)

    def forward(self, inputs):
        outputs = super().forward(inputs)
        return outputs if outputs.sum() > 0 else 2 * outputs


class ReplacingItsBuffer(nn.Linear):
    """Keeps a running mean by putting a new tensor in the old one's place."""

    def __init__(self):
        super().__init__(2, 3)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, inputs):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * inputs.detach().mean(dim=0)
        return super().forward(inputs - self.mean)


class LookingAtItsInputs(nn.Linear):
    """Decides by the data, which vmap can follow only as long as all networks see the same."""

    def __init__(self):
        super().__init__(2, 3)

    def forward(self, inputs):
        return super().forward(inputs / 10 if inputs.abs().max() > 1 else inputs)


@pytest.mark.parametrize(
    ("make_model", "num_starts"), [(Branching, 1), (Branching, 2), (LookingAtItsInputs, 2), (ReplacingItsBuffer, 1)]
)
def test_make_workers_falls_back_with_a_sentence(make_model, num_starts):
    with pytest.warns(UserWarning, match="cannot be stacked, so networks train one after the other"):
        workers = make_workers(problem(make_model), 4, num_starts)
    assert isinstance(workers, SequentialWorkers)
    workers.begin(0)
    assert workers.run_stage(0, PARAMS).loss.isfinite().all()


@pytest.mark.parametrize("augment_stages", [True, False])
def test_a_head_start_trains_the_references_beforehand_at_their_cost_alone(augment_stages):
    options = {"augmentation": "crop_flip", "augment_stages": augment_stages}
    headed = problem(cnn, head_start=3, **options)
    stacked, workers = run(StackedWorkers, headed, PARAMS, num_starts=2)
    sequential, _ = run(SequentialWorkers, headed, PARAMS, num_starts=2)
    for one, two in zip(stacked, sequential, strict=True):
        assert_close(one.loss, two.loss, atol=2e-4, rtol=2e-4)
    assert workers.network_steps == 3 * (3 * 2) + 3 * 2 + 9 * (4 + 2)
    unprepared, _ = run(StackedWorkers, problem(cnn, **options), PARAMS, num_starts=2)
    assert (stacked[0].score > unprepared[0].score).all()
    assert [stage.score[1] for stage in stacked] == [stage.reference_score[1] for stage in stacked]


def test_stages_may_go_without_the_augmentation_of_the_head_start():
    workers = StackedWorkers(problem(cnn, head_start=1, augmentation="crop_flip", augment_stages=False), 4)
    assert [loader.augmentation for loader in workers.loaders] == ["none"]
    assert [loader.augmentation for loader in workers.head_loaders] == ["crop_flip"]


def check_meanwhile(kind):
    workers, events = kind(problem(mlp), 4), []
    evaluate = workers._evaluate
    workers._evaluate = lambda: (events.append("looked"), evaluate())[1]
    workers.begin(seed=0)
    workers.run_stage(0, PARAMS, meanwhile=lambda: events.append("meanwhile"))
    assert events == ["looked", "meanwhile"]


@pytest.mark.parametrize("kind", [SequentialWorkers, StackedWorkers])
def test_what_is_done_meanwhile_is_done_once_when_the_work_is_under_way(kind):
    check_meanwhile(kind)


def test_every_repeat_of_a_head_start_and_every_group_has_batches_of_its_own():
    workers, seeds = StackedWorkers(problem(mlp, head_start=3), 4, num_starts=2), []
    train = workers._train
    workers._train = lambda stage, params, loaders: (
        seeds.extend(loader.seed for loader in loaders),
        train(stage, params, loaders),
    )[1]
    workers.begin(seed=0)
    workers.run_stage(0, PARAMS)
    assert len(set(seeds)) == len(seeds) == (3 + 1) * 2
