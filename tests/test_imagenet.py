"""ImageNet's recipe on small trees in ImageNet's layout, streamed, as a user types it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import autoweight as aw
from autoweight.cli.run import run
from autoweight.config import DataConfig
from autoweight.data import load_pool
from autoweight.data.decoding import decode
from autoweight.data.streamed import Streamed
from autoweight.recipes import get_recipe

from .launch import Launched
from .rank_jobs import command

WORDS = ["--data.workers", "0", "--training.batch-size", "12", "--training.epochs", "3", "--training.num-stages", "3"]
WORDS += ["--training.warmup-epochs", "1", "--training.drop-stages", "2", "--no-report"]
SEARCH = [
    "--search.warmup-stages",
    "1",
    "--search.num-workers",
    "5",
    "--search.num-episodes",
    "1",
    "--search.choice-rounds",
    "1",
]


def tree(root: Path, classes: int, train: int, size: tuple[int, int]) -> Path:
    """Images in ImageNet's layout, whose class is their colour."""
    random = np.random.default_rng(0)
    for part, count in (("train", train), ("val", 4)):
        for label in range(classes):
            folder = root / part / f"n{label:08}"
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 60, (size[1], size[0], 3)) + 190 * np.eye(classes)[label][:3]
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{folder.name}_{number}.JPEG", quality=95)
    return root


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Four classes of photographs."""
    return tree(tmp_path_factory.mktemp("imagenet"), classes=4, train=22, size=(50, 40))


@pytest.fixture(scope="module")
def trained(large):
    """A search on a few images of each class, and what is trained on all of them with what was found."""
    words = ["imagenet-noise", "--data-dir", str(large), "--data.image-size", "16", "--data.val-size", "20", *WORDS]
    found = [*words, "--data.per-class", "14", "--network", "small_cnn"]
    with pytest.warns(UserWarning, match="20 validation samples tell little"):
        run(["search", *found, *SEARCH, "--out", str(large / "found")])
    transfer = ["train", *words, "--method", "law", "--strategy", str(large / "found"), "--network", "mlp"]
    run([*transfer, "--out", str(large / "run")])
    return transfer


def test_the_recipe_is_the_papers():
    recipe = get_recipe("imagenet-noise")
    training, data = recipe.training, recipe.data
    assert (recipe.network, data.per_class, data.noise, data.noise_rate) == (
        "torchvision:resnet18",
        100,
        "uniform",
        0.4,
    )
    assert (training.num_stages, training.drop_stages, training.warmup_epochs) == (20, (6, 12, 18), 2)
    assert (training.batch_size, training.epochs, training.learning_rate) == (1024, 100, 0.1)
    assert (training.weight_decay, training.momentum, data.augmentation) == (2e-5, 0.9, "resized_crop_flip")
    assert data.stream


def test_a_strategy_is_searched_on_some_of_each_class_and_used_on_all(trained, large):
    strategy = aw.load(large / "found" / "strategy.safetensors", class_counts=[1, 1, 1, 1])
    assert strategy.info["found_in"]["steps"] == (4 * 14 - 20) // 12 * 3  # of 14 images of four classes, 20 validate
    columns = np.load(large / "run" / "samples" / "law-0.npz")
    assert len(columns["label"]) == 4 * 22
    assert str(columns["names"][0]) == "train/n00000000/n00000000_0.JPEG"
    assert json.loads((large / "run" / "result.json").read_text())["methods"]["law"]["test_accuracy"][0] >= 0


def test_ranks_share_a_streamed_training(trained, large, tmp_path):
    launched = Launched(2, command, [*trained, "--out", str(tmp_path / "run")], out=tmp_path)
    assert launched.wait() == [0, 0], launched.said
    lines = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines() if "train_loss" in line]
        for folder in (tmp_path / "run", large / "run")
    ]
    for one, two in zip(*lines, strict=True):
        assert one["train_loss"] == pytest.approx(two["train_loss"], rel=1e-3)
        assert one["val_score"] == two["val_score"]


def test_small_images_keep_their_margin_and_large_ones_lose_it(large, tmp_path):
    config = replace(get_recipe("imagenet-noise").data, folder=str(large), workers=0)
    pool = load_pool(config)
    assert isinstance(pool.samples, Streamed)
    assert pool.samples.input_shape == (3, 224, 224)
    first = large / "train" / "n00000000" / "n00000000_0.JPEG"
    assert torch.equal(pool.samples.head(1)[0], decode(first, 256, 224))
    small = tree(tmp_path / "small", classes=5, train=3, size=(64, 64))
    pool = load_pool(replace(config, folder=str(small), image_size=64))
    assert torch.equal(pool.samples.head(1)[0], decode(small / "train" / "n00000000" / "n00000000_0.JPEG", 64, 64))
    assert (pool.samples.num_classes, len(pool.samples), len(pool.test)) == (5, 15, 20)


def test_images_of_64_pixels_are_searched_on(tmp_path):
    folder = tree(tmp_path / "small", classes=6, train=9, size=(64, 64))
    words = ["search", "imagenet-noise", "--data-dir", str(folder), "--data.image-size", "64", "--data.val-size", "18"]
    words += ["--network", "strided_cnn", *WORDS, *SEARCH, "--out", str(tmp_path / "run")]
    with pytest.warns(UserWarning, match="18 validation samples tell little"):
        run(words)
    assert (tmp_path / "run" / "strategy.safetensors").exists()


def test_some_of_each_class(large):
    config = DataConfig("imagefolder", str(large), stream=True, image_size=8, per_class=5, train_size=0, val_size=4)
    pool = load_pool(config)
    splits = pool.splits(config, seed=0)
    assert splits.train.class_counts.tolist() == [4] * 4
    assert splits.val.class_counts.tolist() == [1] * 4
    assert not set(splits.train.source.tolist()) & set(splits.val.source.tolist())
    whole = pool.splits(replace(config, train_on_all=True), seed=0, final=True)
    assert len(whole.train) == 88
    assert load_pool(config).splits(config, seed=0).train.source.tolist() == splits.train.source.tolist()
    assert pool.splits(config, seed=1).train.source.tolist() != splits.train.source.tolist()


def test_only_folders_of_images_are_streamed():
    with pytest.raises(aw.UserError, match=r"data.stream is for folders of images \(imagefolder\), but digits lies in"):
        load_pool(DataConfig(stream=True))
    with pytest.raises(aw.UserError, match="images are read from a folder: pass --data-dir DIR with"):
        load_pool(DataConfig("imagefolder", stream=True))
