"""What only a GPU can show: captured and graphed steps against the plain loop. Skipped where there is none.

Needs PyTorch and pytest alone: python -m pytest -n 0 tests/test_gpu.py
"""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data import Samples
from autoweight.data.decoding import standardised
from autoweight.data.loader import Loader
from autoweight.data.reading import Raw, Reading
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.methods import TrainingFacts, make_method
from autoweight.methods.method import Weighted
from autoweight.models import make_network
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.strategy import waiting
from autoweight.strategy.columns import NONE
from autoweight.strategy.counting import counted, whole
from autoweight.training import loop
from autoweight.training.captured import CapturedSteps, repeatable_kernels
from autoweight.training.feeds import Lane
from autoweight.training.loop import Training, train
from autoweight.training.steps import PlainSteps, Slot
from autoweight.workers import GraphedWorkers, Problem, SequentialWorkers, make_workers

from .conftest import make_blobs
from .rivals import LookAhead, Rationed, WithScratch
from .settings import RIVALS, SETTINGS, TRAINING
from .test_captured import rival_slot, run_twice
from .test_settings import assert_agree, assert_no_reward_without_weights, run, weigher_for
from .test_workers import mlp

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.filterwarnings("default", "error:.*cannot be captured"),  # what other releases of torch warn of
]

DEVICE = "cuda"
SMALL_CNN = partial(make_network, "small_cnn", (3, 16, 16), 3)
PARAMS = torch.tensor([[-3.0, 1.0, -0.5], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [-8.0, 0.0, -2.0]])


def on_gpu(name: str) -> Problem:
    return replace(SETTINGS[name], device=DEVICE)


def images(count: int, seed: int) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    return Samples.of(torch.randn(count, 3, 32, 32, generator=generator), labels, 10)


def assert_near(expected, found, tolerance=1e-3):
    """To rounding; rows of sums count in multiples of 2**-20, one of which is much where a sum is near 0."""
    for one, two in zip(expected, found, strict=True):
        sums = one.dtype == torch.long and one.dim() == 2
        unit = 2**20 if sums else 1
        assert_close(two.double() / unit, one.double() / unit, atol=tolerance, rtol=tolerance)
        assert not sums or torch.equal(two[:, 0], one[:, 0])  # how many were counted


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("network", ["small_resnet", "resnet18"])
def test_graphed_networks_equal_sequential_ones_over_50_steps(network, precision):
    config = TrainingConfig(epochs=1000, batch_size=64, learning_rate=0.01, weight_decay=2e-5, precision=precision)
    make = partial(make_network, network, (3, 32, 32), 10)
    data = images(2_000, 0), images(500, 1)
    problem = Problem(make, *data, config, augmentation="crop_flip", device=DEVICE, head_start=2)
    outcomes = {}
    for kind in (SequentialWorkers, GraphedWorkers):
        workers = kind(problem, 4, num_starts=2)
        workers.stage_starts = [0, 5, 20, 50]
        with repeatable_kernels():
            workers.begin(3)
            outcomes[kind] = [workers.run_stage(stage, PARAMS * (stage > 0)) for stage in range(3)]
    graphed, plain = outcomes[GraphedWorkers], outcomes[SequentialWorkers]
    gap = max(float(((one.loss - two.loss) / two.loss).abs().max()) for one, two in zip(graphed, plain, strict=True))
    assert gap < (1e-4 if precision == "float32" else 5e-2)
    assert_no_reward_without_weights(graphed)


@pytest.mark.parametrize("name", SETTINGS)
def test_graphed_workers_equal_sequential_ones_in_every_setting(name):
    fast, slow = (run(kind, on_gpu(name), 2)[0] for kind in (GraphedWorkers, SequentialWorkers))
    assert_agree(fast, slow)


@pytest.mark.parametrize("name", ["momentum", "adam", "dict inputs", "memory", "memory of tokens"])
def test_a_gpu_gets_graphed_workers(name):
    assert type(make_workers(on_gpu(name), 4)) is GraphedWorkers


@pytest.mark.parametrize("name", ["momentum", "adam", "memory"])
def test_the_same_episode_twice_is_the_same_to_the_bit(name):
    setting = on_gpu(name)
    workers, params, losses = GraphedWorkers(setting, 4), torch.ones(4, setting.num_params), []
    for seed in (3, 4, 3):
        workers.begin(seed)
        losses.append(torch.stack([workers.run_stage(stage, params).loss for stage in range(4)]))
    assert torch.equal(losses[0], losses[2])
    assert not torch.equal(losses[0], losses[1])


def test_no_buffer_is_carried_from_one_episode_into_the_next():
    run_twice(Problem(WithScratch, make_blobs(48), make_blobs(30, seed=9), TRAINING, device=DEVICE))


@pytest.mark.parametrize("name", SETTINGS)
def test_captured_steps_equal_plain_ones_in_every_setting(name):
    setting, slots = SETTINGS[name], []
    config = replace(setting.training, average=0.8)
    for kind in (PlainSteps, CapturedSteps):
        torch.manual_seed(0)
        loader = Loader(setting.train.to(DEVICE), 16, seed=1)
        slot = Slot(setting.make_model().to(DEVICE), loader, Weighted(weigher_for(setting)), config)
        kind([slot], config, total_steps=12).run(0, 12)
        slots.append(slot)
    assert_near(*(slot.tensors() for slot in slots))


@pytest.mark.parametrize("make", [Rationed, lambda: aw.Constant(margin=1.0, history=-1.0, warmup=0.0)])
def test_a_capture_leaves_everything_untouched(make):
    config = replace(TRAINING, optimizer="adam", learning_rate=0.01, average=0.9)
    loader = Loader(make_blobs(64).to(DEVICE), 16, seed=1)
    slot = Slot(nn.Linear(2, 3).to(DEVICE), loader, Weighted(make()), config)
    before = [tensor.clone() for tensor in slot.tensors()]
    steps = CapturedSteps([slot], config, total_steps=16)
    assert all(torch.equal(*pair) for pair in zip(before, slot.tensors(), strict=True))
    steps.run(0, 7)
    assert int(slot.average.steps) == 7
    assert any(bool(tensor.any()) for tensor in slot.method.tensors().values())


class KilledError(Exception):
    pass


def trained(
    setting: Problem, method, checkpoint: CheckpointFile | None = None, kill_at: int | None = None, recorded=False
):
    def kill(report):
        if report.stage == kill_at:
            raise KilledError

    data = setting.train.to(DEVICE), setting.val.to(DEVICE)
    training = Training(setting.make_model, *data, method, seed=5, on_stage=kill, recorded=recorded)
    outcome = train([training], setting.training, checkpoint)
    assert outcome.seconds > 0
    assert outcome.trained[0].failure == ""
    return list(outcome.trained[0].slot.tensors())


@pytest.mark.parametrize("name", ["momentum", "adam", "adamw", "dict inputs", "memory", "tokens"])
def test_a_killed_training_goes_on_to_the_same_parameters(name, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(loop, "CapturedSteps", lambda *parts: made.append(CapturedSteps(*parts)) or made[-1])
    setting, checkpoint = SETTINGS[name], CheckpointFile(tmp_path / "run")
    with pytest.raises(KilledError):
        trained(setting, Weighted(weigher_for(setting)), checkpoint, kill_at=2)
    resumed = trained(setting, Weighted(weigher_for(setting)), checkpoint)
    whole = trained(setting, Weighted(weigher_for(setting)))
    assert len(made) == 3  # all of them captured
    assert_near(whole, resumed, 1e-5)


@pytest.mark.parametrize("name", RIVALS)
def test_captured_rivals_equal_plain_ones(name):
    slots = [rival_slot(RIVALS[name], DEVICE) for _ in range(2)]
    with repeatable_kernels():
        for kind, slot in zip((PlainSteps, CapturedSteps), slots, strict=True):
            kind([slot], slot.config, total_steps=12).run(0, 12)
    assert_near(*(slot.tensors() for slot in slots))


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-2), ("bfloat16", 1e-1)])
@pytest.mark.parametrize("method", ["l2rw", "mwnet"])
def test_captured_and_compiled_look_ahead_equals_the_plain_one(method, precision, tolerance):
    setting = replace(SETTINGS["momentum"].training, compile=True, learning_rate=0.01, precision=precision)
    data, seen = images(320, 0).to(DEVICE), []
    for kind, config in ((PlainSteps, replace(setting, compile=False)), (CapturedSteps, setting)):
        torch.manual_seed(0)
        model = make_network("small_resnet", (3, 32, 32), 10).to(DEVICE)
        made = make_method(method, TrainingFacts(data.class_counts, data.clean), {})
        slot = Slot(model, Loader(data, 64, seed=1), made, config, trusted=Loader(data, 64, seed=2))
        with repeatable_kernels():
            seen.append(kind([slot], config, total_steps=8).run(0, 8).losses)
    assert_close(seen[1], seen[0], atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("compiled", [False, True])
def test_captured_steps_remember_visits_that_wait_as_plain_ones_do(monkeypatch, compiled):
    monkeypatch.setattr(waiting, "_LARGE", 100)
    data, weighers = make_blobs(400).to(DEVICE), []
    for kind, config in ((PlainSteps, TRAINING), (CapturedSteps, replace(TRAINING, compile=compiled))):
        torch.manual_seed(0)
        weighers.append(aw.load("auto"))
        slot = Slot(mlp().to(DEVICE), Loader(data, 16, seed=1), Weighted(weighers[-1]), config)
        kind([slot], config, total_steps=150).run(0, 103)
    plain, fast = (weigher.tensors() for weigher in weighers)
    assert torch.equal(fast["num_visits"], plain["num_visits"])
    assert fast["num_waiting"] == 3 * 16
    for name, numbers in (("margin", 1), ("own", 1), ("waiting", 4)):  # the looks that wait; log-odds magnify rounding
        own, other = (one[name].view(len(one[name]), -1)[:, :numbers] for one in (fast, plain))
        assert_close(own, other, atol=1e-3, rtol=1e-3, msg=name)


def test_compiled_steps_count_what_the_columns_hold():
    """At a visit the old value goes and the new one comes: were one computed otherwise, sums would drift."""
    config, data, weigher = replace(TRAINING, compile=True), make_blobs(400).to(DEVICE), aw.load("auto")
    data = data.relabel(torch.where(torch.arange(400, device=DEVICE) % 5 == 0, 0, data.labels))  # some contradicted
    torch.manual_seed(0)
    slot = Slot(mlp().to(DEVICE), Loader(data, 16, seed=1), Weighted(weigher), config)
    CapturedSteps([slot], config, total_steps=300).run(0, 300)
    columns, census = weigher.memory.columns, weigher.memory.census
    assert weigher.memory.waiting.count == 0
    assert torch.equal(columns["label"], data.labels.int())
    margins, relative, rivals = (columns[name] for name in ("margin", "relative", "rival_class"))
    rows = torch.stack([torch.ones_like(margins), whole(margins)], dim=-1).long()
    assert torch.equal(census.counts, torch.zeros_like(census.counts).index_add(0, data.labels, rows))
    on_trial, contradicted = relative != NONE, (relative < 0) & (rivals >= 0)
    assert (on_trial & contradicted).any()
    believed, rows = torch.where(contradicted, rivals, data.labels)[on_trial], counted(relative, margins)[on_trial]
    assert torch.equal(census.believed, torch.zeros_like(census.believed).index_add(0, believed, rows))


def test_a_captured_training_is_recorded_and_stays_the_same():
    setting = SETTINGS["memory"]
    plain, recorded = (
        trained(setting, Weighted(weigher_for(setting)), recorded=recorded) for recorded in (False, True)
    )
    weight, loss = recorded[-2:]
    assert weight.isfinite().all()
    assert loss.isfinite().all()
    assert all(torch.equal(*pair) for pair in zip(plain, recorded, strict=False))


def test_a_method_that_cannot_be_captured_trains_plainly():
    setting = SETTINGS["momentum"]
    assert all(tensor.isfinite().all() for tensor in trained(setting, LookAhead()))


class Pixels(Raw):
    """Images that travel as bytes; some cannot be read."""

    def __init__(self, count: int = 320, bad: tuple[int, ...] = ()) -> None:
        generator = torch.Generator().manual_seed(0)
        self.bytes = torch.randint(256, (count, 16, 16, 3), dtype=torch.uint8, generator=generator)
        self.targets, self.bad = (torch.arange(count) % 3).tolist(), bad

    def __len__(self) -> int:
        return len(self.bytes)

    def raw(self, position: int):
        if position in self.bad:
            raise OSError("image file is truncated")
        return self.bytes[position], self.targets[position]

    def finish(self, inputs):
        return standardised(inputs)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("bad", [(), (7, 20)])
def test_captured_steps_of_a_stream_equal_plain_ones(workers, bad, monkeypatch):
    config = replace(TRAINING, batch_size=32, learning_rate=0.01, average=0.8)
    slots, replayed, replay = [], [], torch.cuda.CUDAGraph.replay
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", lambda graph: replayed.append(replay(graph)))
    for kind in (PlainSteps, CapturedSteps):
        torch.manual_seed(0)
        reading = Reading(num_workers=workers, bad_samples="skip")
        stream = Streamed.of(Pixels(bad=bad), reading, labels=Pixels().targets).to(DEVICE)
        loader = StreamedLoader(stream, 32, 1, "resized_crop_flip")
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)
        )
        model(torch.zeros(2, 3, 16, 16))
        slot = Slot(model.to(DEVICE), loader, Weighted(aw.load("auto", class_counts=stream.class_counts.cpu())), config)
        steps = kind([slot], config, total_steps=40)
        with repeatable_kernels():
            losses = torch.stack([steps.run(0, 13).losses, steps.run(13, 40).losses])
        slots.append([losses, *slot.tensors()])
    assert_near(*slots)
    assert len(replayed) == 40 if not bad else 32 <= len(replayed) < 40  # at most two of an epoch's ten lack a sample


def test_a_busy_gpu_gets_every_batch_of_a_lane_in_order():
    places = [torch.zeros(64, 1024, device=DEVICE)]
    lane, slow, seen = Lane(places), torch.randn(4096, 4096, device=DEVICE), []
    for value in range(20):
        lane.put([torch.full((64, 1024), float(value)).pin_memory()])
        for _ in range(8):
            slow = (slow @ slow).clamp(-1, 1)  # the host is far ahead of this
        seen.append(torch.stack(places[0].aminmax()))
    assert torch.stack(seen).tolist() == [[value, value] for value in range(20)]


def test_a_streamed_training_is_captured_and_goes_on_to_the_same_parameters(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(loop, "CapturedSteps", lambda *parts: made.append(CapturedSteps(*parts)) or made[-1])
    config = replace(TRAINING, batch_size=32, learning_rate=0.01)

    def run_it(checkpoint: CheckpointFile | None = None, kill_at: int | None = None):
        def kill(report):
            if report.stage == kill_at:
                raise KilledError

        data = Streamed.of(Pixels(), Reading(num_workers=2)).to(DEVICE)
        training = Training(SMALL_CNN, data, data, None, 5, "resized_crop_flip", on_stage=kill)
        return list(train([training], config, checkpoint).trained[0].slot.tensors())

    with pytest.raises(KilledError):
        run_it(CheckpointFile(tmp_path / "run"), kill_at=1)
    for one, two in zip(run_it(CheckpointFile(tmp_path / "run")), run_it(), strict=True):
        assert_close(one.double(), two.double(), atol=1e-5, rtol=1e-5)
    assert len(made) == 3


def test_graphed_workers_on_a_stream_equal_those_in_memory():
    outcomes = []
    for data in (Streamed.of(Pixels()), Streamed.of(Pixels()).in_memory()):
        config = replace(TRAINING, batch_size=32, learning_rate=0.01)
        problem = Problem(
            SMALL_CNN, data, Streamed.of(Pixels(90)).in_memory(), config, augmentation="crop_flip", device=DEVICE
        )
        workers = GraphedWorkers(problem, 4)
        workers.begin(seed=3)
        outcomes.append([workers.run_stage(stage, PARAMS) for stage in range(3)])
    for one, two in zip(*outcomes, strict=True):
        assert_close(one.loss, two.loss, atol=1e-3, rtol=1e-4)  # two graphs, each with kernels of its own choice
