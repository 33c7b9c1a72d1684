"""Whatever a training is made of: stacked and sequential workers agree, and a killed training goes on as if never."""

import pytest
import torch
from torch.testing import assert_close

import autoweight as aw
from autoweight.methods.method import Weighted
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.training.loop import Training, train
from autoweight.workers import SequentialWorkers, StackedWorkers, make_workers

from .settings import RIVALS, SETTINGS, params_of


def run(kind, problem, num_starts=1):
    workers, params = kind(problem, 4, num_starts), params_of(problem)
    workers.begin(seed=3)
    return [workers.run_stage(stage, params * (stage > 0)) for stage in range(4)], workers


def assert_agree(fast, slow):
    """To rounding; of forty samples, or of some hundred tokens, a few may tip over."""
    for one, two in zip(fast, slow, strict=True):
        assert_close(one.loss, two.loss, atol=5e-4, rtol=5e-4)
        assert_close(one.score, two.score, atol=0.03, rtol=0)


def assert_no_reward_without_weights(outcomes):
    """Worker 1 does not weigh: it is its reference to the bit."""
    for outcome in outcomes:
        assert outcome.score[1] == outcome.reference_score[1]
        assert outcome.loss[1] == outcome.reference_loss[1]


def assert_same_memory(one, two):
    """To rounding; sums are whole multiples of 2**-20, and of some dozens of samples one may fall into the next bin."""
    assert one.keys() == two.keys()
    for name, values in one.items():
        if name in ("loss_sums", "counts"):
            assert torch.equal(values[:, 0], two[name][:, 0])  # visited
            assert_close(values / 2**20, two[name] / 2**20, atol=0.05, rtol=1e-3)
        elif name == "histogram":
            assert (values - two[name]).abs().sum() <= 4
        else:
            assert_close(values, two[name], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("num_starts", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_stacked_equals_sequential_to_rounding(name, num_starts):
    stacked, fast = run(StackedWorkers, SETTINGS[name], num_starts)
    sequential, slow = run(SequentialWorkers, SETTINGS[name], num_starts)
    assert_agree(stacked, sequential)
    assert_no_reward_without_weights([*stacked, *sequential])
    assert stacked[-1].loss[0] != stacked[-1].loss[1]  # weighting does something
    for number, slot in enumerate(slow.slots):
        assert_same_memory({name: of_all[number] for name, of_all in fast.memories.items()}, slot.method.tensors())


@pytest.mark.parametrize("name", SETTINGS)
def test_all_of_them_can_be_stacked(name):
    assert type(make_workers(SETTINGS[name], 4, num_starts=2)) is StackedWorkers


def weigher_for(problem):
    """A strategy of four stages, the first of which is warm-up."""
    table = params_of(problem)[[0, 0, 2, 3]]
    return aw.Strategy(table, problem.rule, warmup_stages=1, class_counts=problem.train.class_counts)


class KilledError(Exception):
    pass


def trained(problem, checkpoint=None, kill_at=None, average=0.0, method=None):
    def kill(report):
        if report.stage == kill_at:
            raise KilledError

    method = method or Weighted(weigher_for(problem))
    training = Training(problem.make_model, problem.train, problem.val, method, seed=5, on_stage=kill)
    config = aw.TrainingConfig(**vars(problem.training) | {"average": average})
    (one,) = train([training], config, checkpoint).trained
    assert one.failure == ""
    return [tensor.clone() for tensor in one.slot.tensors()]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_killed_training_goes_on_to_the_same_bits(name, tmp_path):
    problem, checkpoint = SETTINGS[name], CheckpointFile(tmp_path / "run")
    with pytest.raises(KilledError):
        trained(problem, checkpoint, kill_at=2, average=0.9)
    resumed, whole = trained(problem, checkpoint, average=0.9), trained(problem, average=0.9)
    assert all(torch.equal(one, two) for one, two in zip(resumed, whole, strict=True))


@pytest.mark.parametrize("name", RIVALS)
def test_a_killed_rival_goes_on_to_the_same_bits(name, tmp_path):
    rival, checkpoint = RIVALS[name], CheckpointFile(tmp_path / "run")
    problem = SETTINGS[rival.setting]
    with pytest.raises(KilledError):
        trained(problem, checkpoint, kill_at=1, average=0.9, method=rival.make())
    resumed = trained(problem, checkpoint, average=0.9, method=rival.make())
    whole = trained(problem, average=0.9, method=rival.make())
    assert all(torch.equal(one, two) for one, two in zip(resumed, whole, strict=True))


@pytest.mark.parametrize(
    ("problem", "method"),
    [(problem, None) for problem in SETTINGS.values()]
    + [(SETTINGS[rival.setting], rival.make()) for rival in RIVALS.values()],
    ids=[*SETTINGS, *RIVALS],
)
def test_a_training_learns(problem, method):
    losses = []
    training = Training(
        problem.make_model, problem.train, problem.val, method, seed=5, on_stage=lambda s: losses.append(s.train_loss)
    )
    train([training], problem.training)
    assert losses[-1] < 0.97 * losses[0]
