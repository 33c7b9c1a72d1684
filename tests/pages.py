"""Runs for the tests of the page: small, but made by the commands themselves, and what a kill leaves of one."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autoweight.cli import commands
from autoweight.cli.run import run
from autoweight.data import cifar

from .test_cifar import write as write_cifar

SHORT = ["--training.epochs", "4", "--training.num-stages", "4"]
FEW = ["--search.num-episodes", "2", "--search.num-workers", "5", "--search.choice-rounds", "2"]


def make_compare(folder: Path, methods: str = "uniform,auto,oracle", seeds: int = 2) -> Path:
    words = ["compare", "digits-noise", "--methods", methods, "--seeds", str(seeds), *SHORT]
    run([*words, "--out", str(folder)])
    return folder


def make_search(folder: Path) -> Path:
    run(["search", "digits-noise", *SHORT, *FEW, "--search.warmup-stages", "1", "--out", str(folder)])
    return folder


def make_demo(folder: Path) -> Path:
    config = commands.demo_config()
    training = replace(config.training, epochs=2, num_stages=4, drop_stages=())
    search = replace(config.search, num_episodes=2, num_workers=5, choice_rounds=1, warmup_stages=1)
    commands.demo(replace(config, training=training, search=search, num_seeds=1), commands.Place(folder, False))
    return folder


def make_cifar(data: Path, folder: Path) -> Path:
    """A comparison on 120 images in CIFAR-10's own format."""
    words = ["compare", "cifar10-noise", "--methods", "uniform,auto", "--network", "small_cnn", *SHORT]
    words += ["--training.batch-size", "20", "--training.precision", "float32", "--training.no-compile"]
    words += ["--data.train-size", "60", "--data.val-size", "20", "--seeds", "1", "--side-by-side", "1"]
    with pytest.MonkeyPatch.context() as patch:
        run([*words, "--data-dir", str(write_cifar(patch, data, "cifar10")), "--out", str(folder)])
    cifar._load.cache_clear()
    return folder


def make_killed(whole: Path, folder: Path) -> Path:
    """What is left of a comparison that was killed in its second training: half a line at the end, no result."""
    shutil.copytree(whole, folder)
    (folder / "result.json").unlink()
    (folder / "report.html").unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:7]) + lines[7][:30])
    for path in (folder / "samples").iterdir():
        if path.stem != "uniform-0":
            path.unlink()
    return folder
