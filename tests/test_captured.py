"""The logic of captured steps, on a CPU: a graph that runs its work anew at every replay stands in for CUDA's."""

import copy
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.loader import Loader
from autoweight.methods.method import Weighted
from autoweight.strategy import Rule, waiting
from autoweight.strategy.auto import Auto
from autoweight.training import captured, loop
from autoweight.training.captured import CapturedSteps
from autoweight.training.steps import PlainSteps, Slot
from autoweight.workers import GraphedWorkers, SequentialWorkers, graphed, make_workers
from autoweight.workers.base import ParamsWeigher

from .conftest import make_blobs
from .rivals import Rationed, WithScratch
from .settings import RIVALS, SETTINGS
from .test_settings import assert_agree, assert_no_reward_without_weights, weigher_for
from .test_settings import run as run_setting
from .test_workers import PARAMS, check_meanwhile, cnn, images, mlp, problem, run, with_dropout

CONFIG = TrainingConfig(epochs=6, batch_size=16, num_stages=3, drop_stages=(1, 2), weight_decay=1e-3)
TOTAL_STEPS = 24  # four an epoch


def run_at_every_replay(work):
    for _ in range(3):
        work()
    return SimpleNamespace(replay=work)


@pytest.fixture(params=[iter, reversed], ids=["in order", "in reverse"])
def stand_in(request, monkeypatch):
    """Streams may run in any order, so no result may depend on it."""

    def fork(works):
        for work in request.param(works):
            work()

    for module in (captured, graphed):
        monkeypatch.setattr(module, "capture", run_at_every_replay)
        monkeypatch.setattr(module, "fork", fork)


def make_slots():
    """Two networks that share a loader, and one with another."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    shared, own = Loader(make_blobs(64), 16, seed=1), Loader(make_blobs(64, seed=2), 16, seed=5)
    weighers = (None, aw.Constant(warmup=0.5), aw.SelfPaced())
    return [
        Slot(copy.deepcopy(model), loader, Weighted(weigher), CONFIG)
        for loader, weigher in zip((shared, shared, own), weighers, strict=True)
    ]


@pytest.mark.parametrize("cuts", [[0, 24], [0, 3, 4, 5, 24], [7, 18]])
def test_captured_steps_equal_plain_ones(stand_in, cuts):
    plain, fast = make_slots(), make_slots()
    plain_steps, fast_steps = PlainSteps(plain, CONFIG, TOTAL_STEPS), CapturedSteps(fast, CONFIG, TOTAL_STEPS)
    for start, stop in itertools.pairwise(cuts):
        expected, outcome = plain_steps.run(start, stop), fast_steps.run(start, stop)
        assert_close(outcome.losses, expected.losses)
        assert outcome.first_bad_steps.tolist() == [-1, -1, -1]
    for one, two in zip(plain, fast, strict=True):
        assert_close(two.model.state_dict(), one.model.state_dict())


@pytest.mark.parametrize("kind", [PlainSteps, CapturedSteps])
def test_the_first_bad_step_is_known(stand_in, kind, monkeypatch):
    slots = make_slots()
    steps = kind(slots, CONFIG, TOTAL_STEPS)
    taken, step = [], slots[1].step

    def poisoned(batch, progress, trusted):
        taken.append(progress)
        return step(batch, progress, trusted) * (float("nan") if len(taken) == 4 else 1)

    monkeypatch.setattr(slots[1], "step", poisoned)
    assert steps.run(2, 9).first_bad_steps.tolist() == [-1, 5, -1]


@pytest.mark.parametrize("num_starts", [1, 2])
@pytest.mark.parametrize("options", [{}, {"head_start": 2, "augmentation": "crop_flip", "augment_stages": False}])
def test_graphed_workers_equal_sequential_ones(stand_in, num_starts, options):
    make_model = cnn if options else mlp
    fast, workers = run(GraphedWorkers, problem(make_model, **options), PARAMS, num_starts)
    slow, expected = run(SequentialWorkers, problem(make_model, **options), PARAMS, num_starts)
    assert workers.network_steps == expected.network_steps
    for one, two in zip(fast, slow, strict=True):
        assert_close(one.loss, two.loss, atol=2e-4, rtol=2e-4)
        assert_close(one.score, two.score, atol=0.034, rtol=0)
        assert one.score[1] == one.reference_score[1]
    workers.begin(seed=3)  # another episode, alike to the bit
    again = workers.run_stage(0, PARAMS)
    workers.begin(seed=3)
    assert torch.equal(again.loss, workers.run_stage(0, PARAMS).loss)


@pytest.mark.parametrize("stand_in", [reversed], indirect=True, ids=["in reverse"])
@pytest.mark.parametrize("name", SETTINGS)
def test_graphed_workers_equal_sequential_ones_in_every_setting(stand_in, name):
    fast, slow = (run_setting(kind, SETTINGS[name], 2)[0] for kind in (GraphedWorkers, SequentialWorkers))
    assert_agree(fast, slow)
    assert_no_reward_without_weights(fast)


@pytest.mark.parametrize("stand_in", [reversed], indirect=True, ids=["in reverse"])
@pytest.mark.parametrize("name", SETTINGS)
def test_captured_steps_equal_plain_ones_in_every_setting(stand_in, name):
    setting, slots = SETTINGS[name], []
    config = replace(setting.training, average=0.8)
    for kind in (PlainSteps, CapturedSteps):
        torch.manual_seed(0)
        loader = Loader(setting.train, 16, seed=1)
        slot = Slot(setting.make_model(), loader, Weighted(weigher_for(setting)), config)
        kind([slot], config, total_steps=12).run(0, 12)
        slots.append(slot)
    for one, two in zip(*(slot.tensors() for slot in slots), strict=True):
        assert_close(two.double(), one.double(), atol=1e-4, rtol=1e-4)


def rival_slot(rival, device="cpu"):
    """A rival's training under way, with trusted samples where it needs some."""
    setting = SETTINGS[rival.setting]
    torch.manual_seed(0)
    method, model = rival.make(), setting.make_model().to(device)
    loader, trusted = (Loader(part.to(device), 16, seed=1) for part in (setting.train, setting.val))
    return Slot(model, loader, method, setting.training, trusted=trusted, make_model=setting.make_model)


@pytest.mark.parametrize("stand_in", [reversed], indirect=True, ids=["in reverse"])
@pytest.mark.parametrize("name", RIVALS)
def test_captured_rivals_equal_plain_ones(stand_in, name):
    slots = [rival_slot(RIVALS[name]) for _ in range(2)]
    for kind, slot in zip((PlainSteps, CapturedSteps), slots, strict=True):
        assert slot.method.capturable
        kind([slot], slot.config, total_steps=12).run(0, 12)
    for one, two in zip(*(slot.tensors() for slot in slots), strict=True):
        assert_close(two.double(), one.double(), atol=1e-4, rtol=1e-4)


def run_twice(of):
    """What graphed workers answer in an episode, which has to be the same when they run it again."""
    workers, outcomes = GraphedWorkers(of, 4), []
    for _ in range(2):
        workers.begin(seed=3)
        outcomes.append([workers.run_stage(stage, PARAMS) for stage in range(4)])
    for one, two in zip(*outcomes, strict=True):
        assert torch.equal(one.loss, two.loss)
        assert torch.equal(one.score, two.score)
    return outcomes[0]


def test_no_buffer_is_carried_from_one_episode_into_the_next(stand_in):
    assert_agree(run_twice(problem(WithScratch)), run_stages(SequentialWorkers, problem(WithScratch)))


def run_stages(kind, of):
    workers = kind(of, 4)
    workers.begin(seed=3)
    return [workers.run_stage(stage, PARAMS) for stage in range(4)]


@pytest.mark.parametrize("rule", [Rule(), Rule(("loss", "margin", "history"))])
def test_no_memory_is_carried_from_one_episode_into_the_next(stand_in, rule):
    workers, losses = GraphedWorkers(problem(mlp, rule=rule), 4), []
    params = torch.ones(4, len(rule.param_names))
    for _ in range(2):
        workers.begin(seed=3)
        losses.append(torch.stack([workers.run_stage(stage, params).loss for stage in range(2)]))
    assert torch.equal(*losses)


@pytest.mark.parametrize("make", [Rationed, lambda: aw.Constant(margin=1.0, history=-1.0, warmup=0.0)])
def test_a_capture_leaves_what_a_weigher_keeps_untouched(stand_in, make):
    slots = [Slot(mlp(), Loader(make_blobs(64), 16, seed=1), Weighted(make()), CONFIG) for _ in range(2)]
    slots[1].model.load_state_dict(slots[0].model.state_dict())
    before = [tensor.clone() for tensor in slots[0].tensors()]
    steps = CapturedSteps(slots[:1], CONFIG, TOTAL_STEPS)
    assert all(torch.equal(*pair) for pair in zip(before, slots[0].tensors(), strict=True))
    steps.run(0, 7)
    PlainSteps(slots[1:], CONFIG, TOTAL_STEPS).run(0, 7)
    for name, kept in slots[0].method.tensors().items():
        assert_close(kept.double(), slots[1].method.tensors()[name].double(), atol=20, rtol=1e-4, msg=name)


@pytest.mark.parametrize("where", ["workers", "training"])
def test_a_full_memory_is_not_called_impossible_to_capture(where, monkeypatch):
    def fail(*work):
        raise torch.OutOfMemoryError("CUDA out of memory")

    if where == "workers":
        monkeypatch.setattr("autoweight.workers._probe", fail)
        with pytest.raises(torch.OutOfMemoryError):
            make_workers(problem(mlp), 4)
        return
    monkeypatch.setattr(loop, "CapturedSteps", fail)
    loader = Loader(make_blobs(64), 16, seed=1)
    slot = Slot(mlp(), loader, None, CONFIG)
    monkeypatch.setattr(type(loader.samples), "device", SimpleNamespace(type="cuda"))
    monkeypatch.setattr(loop, "check_buffers", lambda *network: None)
    monkeypatch.setattr(loader, "plan", lambda epoch: SimpleNamespace(row=lambda step: None))
    monkeypatch.setattr(loader, "batch", lambda row: SimpleNamespace(inputs=None))
    with pytest.raises(torch.OutOfMemoryError):
        loop._make_steps([slot], CONFIG, TOTAL_STEPS)


def test_networks_with_dropout_are_not_captured_side_by_side(stand_in):
    with pytest.raises(RuntimeError, match="random numbers"):
        GraphedWorkers(problem(with_dropout), 4).begin(seed=0)


def test_captured_dropout_repeats_from_stage_to_stage(stand_in):
    def losses():
        torch.manual_seed(0)
        slot = Slot(with_dropout(), Loader(make_blobs(64), 16, seed=1), None, CONFIG)
        steps = CapturedSteps([slot], CONFIG, TOTAL_STEPS)
        steps.run(0, 5)
        torch.rand(3)  # whatever else happens between stages
        return steps.run(5, 10).losses

    assert torch.equal(losses(), losses())


def test_graphed_workers_let_the_host_work_meanwhile(stand_in):
    check_meanwhile(GraphedWorkers)


def test_the_shortest_training_can_be_captured(stand_in):
    slot = Slot(mlp(), Loader(make_blobs(16), 16, seed=1), None, CONFIG)
    assert CapturedSteps([slot], CONFIG, total_steps=1).run(0, 1).first_bad_steps.tolist() == [-1]


def compiled_whole(work):
    """The work traced in one piece, without generating code, and a list that grows with every tracing."""
    compilations = []

    def backend(graph, inputs):
        compilations.append(graph)
        return graph.forward

    return torch.compile(work, backend=backend, fullgraph=True), compilations


def test_what_a_step_takes_from_outside_compiles_whole_and_once(stand_in):
    whole, compilations = compiled_whole(CapturedSteps._from_outside)
    for seed in (1, 2):
        loader = Loader(images(48), 16, seed=seed, augmentation="crop_flip")
        steps = CapturedSteps([Slot(cnn(), loader, None, CONFIG)], CONFIG, total_steps=18)
        for step in (0, 2, 17):
            steps.step.fill_(step)
            (rate, progress, [batch]), expected = whole(steps), steps._from_outside()
            assert torch.equal(torch.stack([rate, progress]), torch.stack(expected[:2]))
            assert all(torch.equal(one, two) for one, two in zip(batch, expected[2][0], strict=True))
    assert len(compilations) == 1


def test_weights_are_compiled_in_captured_steps_alone(stand_in, monkeypatch):
    asked = []

    def compiled(work, config, device):
        asked.append(work)
        return work

    for module in ("captured", "steps"):
        monkeypatch.setattr(f"autoweight.training.{module}.compiled", compiled)
    slots = [Slot(mlp(), Loader(make_blobs(16), 16, seed=1), Weighted(aw.Constant()), CONFIG)]
    PlainSteps(slots, CONFIG, total_steps=4).run(0, 2)
    assert aw.Constant.weigh not in asked
    CapturedSteps(slots, CONFIG, total_steps=4).run(0, 2)
    assert aw.Constant.weigh in asked


def test_weights_of_all_workers_compile_whole_and_once():
    whole, compilations = compiled_whole(ParamsWeigher.weigh)
    all_features = Rule(("loss", "entropy", "density", "label"), normalised=True)
    logits, labels = torch.randn(6, 3), torch.arange(6) % 3
    losses = nn.functional.cross_entropy(logits, labels, reduction="none")
    for params in torch.randn(4, 5):
        weigher = ParamsWeigher(all_features, torch.tensor([-1.0, -2.0, -3.0]), params)
        weights = weigher.weigh(losses, logits, labels, progress=0.5)
        assert_close(whole(weigher, losses, logits, labels, progress=0.5), weights)
    assert len(compilations) == 1


@pytest.fixture
def large(monkeypatch):
    """A data set of which visits wait (strategy/waiting.py)."""
    monkeypatch.setattr(waiting, "_LARGE", 100)
    return make_blobs(400)


@pytest.mark.parametrize("name", ["auto", "noise", "rare"])
def test_captured_steps_remember_visits_that_wait_as_plain_ones_do(stand_in, large, name):
    slots = []
    for kind in (PlainSteps, CapturedSteps):
        torch.manual_seed(0)
        slots.append(Slot(mlp(), Loader(large, 16, seed=1), Weighted(aw.load(name)), CONFIG))
        steps = kind(slots[-1:], CONFIG, total_steps=150)
        for start, stop in itertools.pairwise((0, 1, 60, 103)):
            steps.run(start, stop)
    plain, fast = (slot.method.weigher for slot in slots)
    assert fast.memory.waiting.count == 3 * 16  # an eighth of the set, 50, is there after four batches
    assert fast.memory.census.num_visits > 1500
    for (name, one), two in zip(plain.tensors().items(), fast.tensors().values(), strict=True):
        assert_close(two.double(), one.double(), atol=1e-5, rtol=1e-5, msg=name)


def test_a_step_that_is_compiled_needs_a_memory_that_was_reserved():
    weigh = torch.compile(aw.load("auto").weigh, backend="eager")
    with pytest.raises(aw.UserError, match=r"call weigher\.reserve\(num_samples, num_classes, device\) before"):
        weigh(torch.ones(4), torch.zeros(4, 3), torch.arange(4) % 3, progress=torch.zeros(()), indices=torch.arange(4))


def test_visits_that_wait_compile_whole_and_once(stand_in, large):
    whole, compilations = compiled_whole(Auto.weigh)
    slot = Slot(mlp(), Loader(large, 16, seed=1), Weighted(aw.load("auto")), CONFIG)
    auto, twin = slot.method.weigher, copy.deepcopy(slot.method.weigher)
    for step in range(30):
        indices, logits = torch.arange(16) + 16 * (step % 20), torch.randn(16, 3)
        labels, progress = large.labels[indices], torch.tensor(step / 30)
        batch = nn.functional.cross_entropy(logits, labels, reduction="none"), logits, labels
        weights = twin.weigh(*batch, progress=step / 30, indices=indices)
        assert_close(whole(auto, *batch, progress=progress, indices=indices), weights)
        auto.after_replay(16)
    assert len(compilations) == 1
    assert auto.memory.census.num_visits == 28 * 16


def test_one_work_stays_on_the_current_stream():
    done = []
    captured.fork([lambda: done.append("it")])
    assert done == ["it"]
