"""Streams against memory: a training step on images that DataLoader workers decode, and on images on the device.

    python benchmarks/streaming.py                        50,000 PNGs of 32 x 32, then JPEGs at 224 x 224, on a GPU
    python benchmarks/streaming.py --compile              the same, compiled: a minute more
    python benchmarks/streaming.py --workers 16 14 12     the same with fewer workers, which leave cores to the training
    python benchmarks/streaming.py --device cpu --images 2000 --batch 32 --steps 10 --photos 64 --photo-batch 8

Some hundred images are made and encoded; the files are copies of them under other names. Of two runs, one of twice as
many steps, the difference tells the time of a step, and the rest what it takes until readers have begun. Waiting is
the share of a streamed step that goes beyond one in memory, where the device does the same. Both ways train a ResNet-18
in bfloat16, augmented on the device.
"""

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import nn

from autoweight.config import Augmentation, TrainingConfig
from autoweight.data import Labelled
from autoweight.data.images import ImageFiles
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.models import make_network
from autoweight.training.captured import CapturedSteps
from autoweight.training.device import wait_for
from autoweight.training.split import make_loader
from autoweight.training.steps import PlainSteps, Slot

_DISTINCT = 200
_CLASSES = 10


class Part(NamedTuple):
    """What is measured: images of a kind, and how networks train on them."""

    name: str
    files: list[Path]
    side: int
    resize: int
    batch: int
    augmentation: Augmentation
    make_model: Callable[[], nn.Module]
    resident: int
    """How many of them lie on the device for comparison."""


def encoded(width: int, height: int, kind: str) -> list[bytes]:
    """Images with coarse and fine structure, as photographs have it."""
    random, found = np.random.default_rng(0), []
    for _ in range(_DISTINCT):
        coarse = Image.fromarray(random.integers(256, size=(6, 8, 3), dtype=np.uint8)).resize((width, height))
        pixels = np.asarray(coarse, dtype=np.int16) + random.integers(-12, 13, (height, width, 1))
        file = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, kind, quality=90)
        found.append(file.getvalue())
    return found


def written(folder: Path, contents: list[bytes], count: int, ending: str) -> list[Path]:
    """Files of these contents, over and over."""
    folder.mkdir()
    files = [folder / f"{number:06}{ending}" for number in range(count)]
    for number, file in enumerate(files):
        file.write_bytes(contents[number % len(contents)])
    return files


def large_resnet18() -> nn.Module:
    """ResNet-18 as it is for large images: a stem that quarters them, before the stages of the one for small ones."""
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, make_network("resnet18", (64, 56, 56), _CLASSES))


def streamed(part: Part, workers: int, count: int) -> Streamed:
    """The first of the files as a stream."""
    labels = np.arange(count) % _CLASSES
    images = ImageFiles(part.files[:count], part.side, labels, part.resize)
    return Streamed.of(images, Reading(num_workers=workers), labels=labels)


def step_seconds(part: Part, samples: Labelled, arguments: argparse.Namespace) -> tuple[float, float]:
    """Seconds of a training step, and until the first one can be taken."""
    torch.manual_seed(0)
    config = TrainingConfig(epochs=10_000, batch_size=part.batch, precision="bfloat16", compile=arguments.compile)
    loader = make_loader(samples, part.batch, 0, part.augmentation)
    slot = Slot(part.make_model().to(samples.device), loader, None, config)
    kind = CapturedSteps if samples.device.type == "cuda" else PlainSteps
    steps = kind([slot], config, total_steps=1_000_000)
    steps.run(0, min(arguments.steps, 10))
    times = []
    for count in (arguments.steps, 2 * arguments.steps):
        wait_for(samples.device)
        began = time.perf_counter()
        steps.run(0, count)
        wait_for(samples.device)
        times.append(time.perf_counter() - began)
    step = (times[1] - times[0]) / arguments.steps
    return step, max(times[0] - arguments.steps * step, 0.0)


def decoding_seconds(part: Part) -> float:
    """Processor time that one image takes to be read and decoded, the least of three rounds."""
    images, rounds = ImageFiles(part.files[:_DISTINCT], part.side, resize=part.resize), []
    for _ in range(3):
        began = time.process_time()
        for position in range(len(images)):
            images.raw(position)
        rounds.append((time.process_time() - began) / len(images))
    return min(rounds)


def reading_rate(part: Part, workers: int, steps: int) -> float:
    """Images a second that workers decode, when nobody trains."""
    count = min(len(part.files), 2 * steps * part.batch)
    loader = StreamedLoader(streamed(part, workers, count), part.batch, 0)
    batches = loader.read(0, loader.steps_per_epoch)
    next(batches)
    began = time.perf_counter()
    number = sum(1 for _ in batches)
    return number * part.batch / (time.perf_counter() - began) if number else float("nan")


def measure(part: Part, arguments: argparse.Namespace) -> None:
    """Print what a part comes to, by how many workers read."""
    device = torch.device(arguments.device)
    memory = streamed(part, max(arguments.workers), part.resident).in_memory().to(device)
    resident, _ = step_seconds(part, memory, arguments)
    del memory
    print(f"{part.name}: batches of {part.batch}, {len(os.sched_getaffinity(0))} cores")
    print(f"  decoding, one core  {1000 * decoding_seconds(part):10.3f} ms an image")
    print(f"  a step in memory    {1000 * resident:10.2f} ms {part.batch / resident:10,.0f} images/s")
    for workers in arguments.workers:
        rate = reading_rate(part, workers, arguments.steps)
        stream, start = step_seconds(part, streamed(part, workers, len(part.files)).to(device), arguments)
        print(f"  {workers:2} workers alone    {rate:10,.0f} images/s")
        print(f"  a step of a stream  {1000 * stream:10.2f} ms {part.batch / stream:10,.0f} images/s", end="")
        waiting = max(1 - resident / stream, 0)
        print(f"   {stream / resident - 1:+.1%}, {waiting:.1%} waiting, {start:.1f} s to begin", flush=True)


def main() -> None:
    """Make the files and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+", default=[len(os.sched_getaffinity(0))], help="one or several")
    parser.add_argument("--images", type=int, default=50_000, help="PNGs of 32 x 32")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--photos", type=int, default=8_192, help="JPEGs of 500 x 375")
    parser.add_argument("--photo-batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=600, help="of small images; a tenth as many of JPEGs")
    arguments = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        small = written(Path(place) / "small", encoded(32, 32, "PNG"), arguments.images, ".png")
        large = written(Path(place) / "large", encoded(500, 375, "JPEG"), arguments.photos, ".jpg")
        print(f"{len(small) + len(large):,} files made in {time.perf_counter() - began:.1f} s", flush=True)
        network = lambda: make_network("resnet18", (3, 32, 32), _CLASSES)  # noqa: E731
        pngs = Part("32 x 32 PNG", small, 32, 32, arguments.batch, "crop_flip", network, len(small))
        resident = min(len(large), 8 * arguments.photo_batch)
        jpegs = Part(
            "224 x 224 JPEG", large, 224, 256, arguments.photo_batch, "resized_crop_flip", large_resnet18, resident
        )
        measure(pngs, arguments)
        arguments.steps = max(arguments.steps // 10, 2)
        measure(jpegs, arguments)
    print(f"{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
