"""Captured steps of streams, on a CPU: a graph that runs its work anew at every replay stands in for CUDA's."""

import itertools
from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.augmentation import AUGMENTATIONS, resized_crop_flip
from autoweight.data.dataset import Samples
from autoweight.data.loader import Loader
from autoweight.data.reading import Reading
from autoweight.data.shards import ImageShards
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.methods.method import Weighted
from autoweight.training import captured, loop
from autoweight.training.captured import CapturedSteps
from autoweight.training.feeds import Lane, StreamedFeed
from autoweight.training.steps import PlainSteps, Slot

from .archives import pairs, tar
from .test_captured import compiled_whole, run_at_every_replay
from .test_streaming import Bag, Blobs, padded

CONFIG = TrainingConfig(epochs=8, batch_size=16, num_stages=3, drop_stages=(1, 2), weight_decay=1e-3)
TOTAL_STEPS = 24  # three an epoch


@pytest.fixture
def replays(monkeypatch):
    """How often the stand-in for a graph was replayed."""
    count = []

    def capture(work):
        graph = run_at_every_replay(work)
        return type("Graph", (), {"replay": lambda self: count.append(graph.replay())})()

    monkeypatch.setattr(captured, "capture", capture)
    return count


def compare(make_slot, cuts=(0, 24)):
    """Train plainly and captured, from cut to cut; all that steps change has to agree."""
    slots = []
    for kind in (PlainSteps, CapturedSteps):
        slot = make_slot()
        steps = kind([slot], slot.config, TOTAL_STEPS)
        losses = [steps.run(start, stop).losses for start, stop in itertools.pairwise(cuts)]
        slots.append([torch.stack(losses), *slot.tensors()])
    for one, two in zip(*slots, strict=True):
        assert_close(two.double(), one.double(), atol=1e-5, rtol=1e-5)


def blob_slot(data, weigher=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    return Slot(model, StreamedLoader(data, 16, seed=1), Weighted(weigher), replace(CONFIG, average=0.9))


@pytest.mark.parametrize("cuts", [(0, 24), (0, 4, 5, 24), (7, 18)])
def test_captured_steps_of_a_stream_equal_plain_ones(replays, cuts):
    compare(lambda: blob_slot(Streamed.of(Blobs(noise=0.1), Reading(num_workers=1)), aw.load("auto")), cuts)
    assert len(replays) == cuts[-1] - cuts[0]


def test_steps_that_lack_samples_are_taken_without_the_graph(replays):
    data = Blobs(noise=0.1, bad=(7,))

    def stream():
        return Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)

    compare(lambda: blob_slot(stream(), aw.load("auto")))
    loader = StreamedLoader(stream(), 16, seed=1)
    lacking = sum(7 in row.indices for _, row in loader._rows(0, 24, loader.draw))
    assert 0 < lacking < 9  # once an epoch, unless it is left over
    assert len(replays) == 24 - lacking


def test_batches_of_changing_shapes_are_taken_without_the_graph(replays):
    rows = [{"ids": [1 + place % 3] * (1 + place % 4), "label": place % 3} for place in range(18)]

    def slot():
        torch.manual_seed(0)
        config = replace(CONFIG, batch_size=2)
        stream = Streamed.of(rows, Reading(padded))
        return Slot(Bag(), StreamedLoader(stream, 2, seed=1), None, config)

    compare(slot)
    assert 0 < len(replays) < 24  # some are as long as the first sample


def test_captured_steps_of_archived_images_finish_and_augment_them_inside(replays, tmp_path):
    tar(tmp_path / "0.tar", pairs(range(48)))

    def slot():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(100, 3))
        data = Streamed.of(ImageShards(tmp_path, size=12))
        return Slot(model, StreamedLoader(data, 16, 1, "resized_crop_flip"), None, CONFIG)

    compare(slot)
    feed = StreamedFeed(slot().loader)
    assert feed.inputs.dtype == torch.uint8  # what travels
    places = [part.data_ptr() for part in (feed.inputs, *feed.plan)]
    expected = slot().loader.batches(2, 6)
    feed.begin(2, 6)
    for step in range(2, 6):
        assert feed.load(step)
        for one, two in zip(feed.batch(torch.tensor(step)), next(expected), strict=True):
            assert torch.equal(one, two)
    assert places == [part.data_ptr() for part in (feed.inputs, *feed.plan)]  # a graph reads no others


def test_what_a_streamed_step_takes_from_outside_compiles_whole_and_once(replays, tmp_path):
    tar(tmp_path / "0.tar", pairs(range(48)))
    whole, compilations = compiled_whole(CapturedSteps._from_outside)
    for seed in (1, 2):
        loader = StreamedLoader(Streamed.of(ImageShards(tmp_path, size=12)), 16, seed, "resized_crop_flip")
        slot = Slot(nn.Sequential(nn.Flatten(), nn.Linear(432, 3)), loader, None, CONFIG)
        steps = CapturedSteps([slot], CONFIG, TOTAL_STEPS)
        for step in (0, 2, 5):
            steps.step.fill_(step)
            (_, _, [batch]), expected = whole(steps), steps._from_outside()
            for one, two in zip(batch, expected[2][0], strict=True):
                assert_close(one, two)
    assert len(compilations) == 1


def test_a_lane_hands_over_in_order_through_two_buffers():
    places = [torch.zeros(2), torch.zeros(3, dtype=torch.uint8)]
    lane, addresses = Lane(places), [place.data_ptr() for place in places]
    for value in range(1, 6):
        lane.put([torch.full((2,), float(value)), torch.full((3,), value, dtype=torch.uint8)])
        assert [place.tolist() for place in places] == [[value] * 2, [value] * 3]
    assert [buffer[0].tolist() for buffer in lane.buffers] == [[5.0, 5.0], [4.0, 4.0]]
    assert addresses == [place.data_ptr() for place in places]


def test_streamed_trainings_are_captured_on_a_gpu(replays, monkeypatch):
    asked = []
    monkeypatch.setattr(loop, "CapturedSteps", lambda *given: asked.append(given))
    slot = blob_slot(Streamed.of(Blobs(noise=0.1)))
    monkeypatch.setattr(Streamed, "device", type("Device", (), {"type": "cuda"}))
    monkeypatch.setattr(loop, "check_buffers", lambda *network: None)
    loop._make_steps([slot], CONFIG, TOTAL_STEPS)
    assert asked


def test_a_part_of_an_image_is_enlarged_as_pillow_does_it():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (6, 1, 20, 15), generator=generator).float()
    draw = AUGMENTATIONS["resized_crop_flip"].draw
    window, flip = draw((1, 6), (1, 20, 15), generator)
    seen = resized_crop_flip(images, window[0], flip[0])
    assert flip.any()
    assert not flip.all()
    assert seen.is_contiguous(memory_format=torch.channels_last)
    for image, one, (top, left, height, width), flipped in zip(images, seen, window[0].tolist(), flip[0], strict=True):
        box = 15 * left, 20 * top, 15 * (left + width), 20 * (top + height)
        pillows = Image.fromarray(image[0].numpy()).resize((15, 20), Image.Resampling.BILINEAR, box)
        expected = torch.tensor(list(pillows.get_flattened_data())).view(1, 20, 15)
        assert_close(one, expected.flip(-1) if flipped else expected, atol=0.02, rtol=1e-4)


def test_parts_of_images_are_drawn_as_the_convention_has_it():
    draw = AUGMENTATIONS["resized_crop_flip"].draw
    window, flip = draw((20, 500), (3, 30, 60), torch.Generator().manual_seed(0))
    height, width = window[..., 2], window[..., 3]
    area, ratio = height * width, 2 * width / height  # in pixels, images are twice as wide as high
    assert ((window[..., :2] + window[..., 2:]) <= 1 + 1e-6).all()
    assert (window[..., :2] >= 0).all()
    partial = area < 1
    assert area.min() > 0.0799
    assert ((ratio >= 0.7499) & (ratio <= 1.3334))[partial].all()
    assert partial.float().mean() > 0.99  # of ten tries, one nearly always fits
    square, _ = draw((20, 500), (3, 32, 32), torch.Generator().manual_seed(0))
    # The mean of areas from 0.08 to 1, each kept with the probability min(1, -ln(area) / ln(4 / 3)) that it fits.
    assert abs(float((square[..., 2] * square[..., 3]).mean()) - 0.4778) < 0.01
    assert abs(float(flip.float().mean()) - 0.5) < 0.02
    images = Samples.of(torch.rand(40, 3, 6, 6), torch.arange(40) % 2, 2)
    loader = Loader(images, 8, 5, "resized_crop_flip")
    assert torch.equal(loader.draw(3).window, loader.draw(3).window)
    assert not torch.equal(loader.draw(3).window, loader.draw(4).window)
