"""Commands on data of one's own, as a user types them, and what their files become."""

import csv
import json
import subprocess
import sys
import warnings
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from autoweight.cli.own import NO_SPLIT, is_path, own_config
from autoweight.cli.run import run
from autoweight.config import DataConfig, RunConfig
from autoweight.config.commented import commented
from autoweight.config.files import load_config
from autoweight.data import load_pool
from autoweight.data.own import load_own
from autoweight.data.streamed import Streamed
from autoweight.errors import UserError
from autoweight.models import NETWORKS, make_network
from autoweight.runs import compare

SHORT = ["--training.epochs", "4", "--training.num-stages", "4"]


def autoweight(*words: object, cwd: Path, status: int = 0) -> SimpleNamespace:
    """What a command shows; in this process, since a fresh one takes seconds to start."""
    shown, said, ended = StringIO(), "", 0
    with chdir(cwd), redirect_stdout(shown), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            run([str(word) for word in words])
        except UserError as error:
            said, ended = str(error), 2
    assert ended == status, said
    return SimpleNamespace(stdout=shown.getvalue(), stderr="\n".join([*(str(one.message) for one in warned), said]))


def accuracy(folder: Path, method: str = "auto") -> float:
    return json.loads((folder / "result.json").read_text())["methods"][method]["test_accuracy"][0]


def write_csv(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def photos(root: Path, count: int = 20) -> Path:
    """Images of different sizes whose class is their colour."""
    random = np.random.default_rng(0)
    for channel, name in enumerate(("ant", "bee", "cat")):
        (root / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 100, (*random.integers(20, 40, 2), 3))
            pixels[..., channel] += 100
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{number}.png")
    return root


def people(path: Path, count: int = 300) -> Path:
    """Rows with missing numbers and categories; whether somebody pays follows from age and city."""
    random = np.random.default_rng(0)
    rows = []
    for number in range(count):
        age, city = random.normal(40, 10), ("Rome", "Oslo", "Bonn")[random.integers(3)]
        pays = "yes" if age + 15 * (city == "Oslo") > 45 else "no"
        shown = "" if random.random() < 0.1 else f"{age:.1f}", "NA" if random.random() < 0.1 else city
        rows.append([100 + number, *shown, pays, int(number % 4 == 0)])
    return write_csv(path, ["id", "age", "city", "pays", "checked"], rows)


def news(path: Path, count: int = 200) -> Path:
    random = np.random.default_rng(0)
    words = {"sport": ["goal", "match", "team"], "law": ["court", "judge", "bill"]}
    rows = []
    for number in range(count):
        topic = ("sport", "law")[number % 2]
        filler = [f"w{random.integers(50)}" for _ in range(4)]
        rows.append([" ".join([*filler, words[topic][random.integers(3)], words[topic][random.integers(3)]]), topic])
    return write_csv(path, ["body", "topic"], rows)


def test_a_folder_of_images(tmp_path):
    photos(tmp_path / "photos", count=40)
    typed = ["train", "photos", "--out", "run", "--training.epochs", "8"]
    subprocess.run([sys.executable, "-m", "autoweight", *typed], cwd=tmp_path, check=True, capture_output=True)
    assert accuracy(tmp_path / "run") > 0.9
    config = load_config(tmp_path / "run" / "config.yaml")
    assert (config.recipe, config.network, config.methods) == ("photos", "strided_cnn", ("auto",))
    assert config.data.path == str(tmp_path / "photos")
    assert (config.data.noise, config.data.imbalance) == ("none", "none")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert not any("val_score" in line for line in lines)
    assert "auto" in autoweight("train", "--out", tmp_path / "run", "--resume", cwd=tmp_path.parent).stdout


def test_a_table_with_missing_values(tmp_path):
    people(tmp_path / "rows.csv")
    words = ["compare", "rows.csv", "--label", "pays", "--training.epochs", 25]
    done = autoweight(*words, "--out", "run", cwd=tmp_path)
    assert "column 'id' only counts the rows, so it is left out" in done.stderr
    assert accuracy(tmp_path / "run") > 0.75
    assert accuracy(tmp_path / "run", "uniform") > 0.75
    assert "early_stop" not in done.stdout
    assert "early_stop stops where trusted samples say, and there are none" in done.stderr


def test_texts_with_the_users_own_network(tmp_path):
    news(tmp_path / "news.csv")
    autoweight("train", "news.csv", "--text", "body", "--label", "topic", "--out", "run", cwd=tmp_path)
    assert accuracy(tmp_path / "run") > 0.9
    assert load_config(tmp_path / "run" / "config.yaml").network == "text_embedding"
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def make(num_classes, input_shape):\n"
        "    return nn.Sequential(nn.Embedding(2**14, 4), nn.Flatten(), nn.Linear(4 * input_shape[0], num_classes))\n"
    )
    words = ["train", "news.csv", "--text", "body", "--label", "topic", *SHORT]
    for number, name in enumerate(("mine:make", "mine.py:make")):
        autoweight(*words, "--network", name, "--out", f"mine{number}", cwd=tmp_path)
    assert accuracy(tmp_path / "mine0") == accuracy(tmp_path / "mine1")


def test_a_search_needs_trusted_samples_and_takes_a_file_of_them(tmp_path):
    people(tmp_path / "rows.csv", 240)
    short = [*SHORT, "--search.num-episodes", 1, "--search.num-workers", 5, "--search.choice-rounds", 1]
    words = ["search", "rows.csv", "--label", "pays", *short, "--search.warmup-stages", 1]
    assert "a search needs trusted samples" in autoweight(*words, cwd=tmp_path, status=2).stderr
    done = autoweight(*words, "--trusted", "checked", "--out", "found", cwd=tmp_path)
    use_it = done.stdout.split("use it: autoweight ")[1].split("\n")[0].split()
    assert use_it[:2] == ["train", str(tmp_path / "rows.csv")]
    autoweight(*use_it, "--out", "used", cwd=tmp_path)
    assert accuracy(tmp_path / "used", "law") > 0.4


def test_init_writes_what_config_reads(tmp_path):
    people(tmp_path / "rows.csv")
    done = autoweight("init", "rows.csv", "--label", "pays", "--trusted", "checked", cwd=tmp_path)
    assert done.stdout == "wrote autoweight.yaml; go on with: autoweight train --config autoweight.yaml\n"
    text = (tmp_path / "autoweight.yaml").read_text()
    assert "# Passes over the training set.\n  epochs: 60\n" in text
    config = load_config(tmp_path / "autoweight.yaml")
    begun = own_config(str(tmp_path / "rows.csv"), "", "classification")
    data = replace(begun.data, label="pays", trusted="checked")
    assert config == replace(begun, data=data, command="any")
    autoweight("compare", "--config", "autoweight.yaml", *SHORT, "--methods", "uniform", "--out", "run", cwd=tmp_path)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert list(result["methods"]) == ["uniform", "early_stop"]
    assert "is there already" in autoweight("init", cwd=tmp_path, status=2).stderr
    autoweight("init", "--out", "blank.yaml", cwd=tmp_path)
    assert yaml.safe_load((tmp_path / "blank.yaml").read_text())["data"]["path"] == "rows.csv"


def test_every_key_of_a_commented_file_says_what_it_is():
    lines = commented(RunConfig(recipe="x")).splitlines()
    keys = [place for place, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")]
    assert len(keys) > 60
    assert all(lines[place - 1].strip().startswith("#") for place in keys)


def own(path: Path, **settings: object) -> DataConfig:
    return replace(NO_SPLIT, path=str(path), **settings)


def test_a_path_is_no_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits-noise").mkdir()
    (tmp_path / "photos").mkdir()
    assert [is_path(word) for word in ("digits-noise", "./digits-noise", "photos", "a.csv", "digits-nose")] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_columns_become_numbers_by_the_training_rows_alone(tmp_path):
    train = write_csv(
        tmp_path / "a.csv",
        ["size", "colour", "same", "label"],
        [[1, "red", 7, "b"], [3, "blue", 7, "a"], ["", "red", 7, "a"], ["?", "", 7, "b"]],
    )
    test = write_csv(
        tmp_path / "b.csv",
        ["label", "size", "colour", "same", "extra"],
        [["a", 5, "green", 9, 1], ["b", "NaN", "", "", 2], ["a", "inf", "blue", 1, 3]],
    )
    data = load_own(own(train, test=str(test)))
    assert data.train.class_names == ("a", "b")
    assert data.train.labels.tolist() == [1, 0, 0, 1]
    # size (mean 2, deviation 1), size is missing, red, blue, no colour
    assert data.train.inputs.tolist() == [[-1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 0, 1]]
    assert data.test.inputs.tolist() == [[3, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 1, 0, 1, 0]]
    assert data.test.names.tolist() == ["b.csv:2", "b.csv:3", "b.csv:4"]


def test_parquet_holds_what_a_csv_holds(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [[1.5, "x", 0], [None, "y", 1], [2.5, None, 0], [4.0, "x", 1], [0.5, "y", 0], [1.0, "x", 1]]
    write_csv(tmp_path / "a.csv", ["n", "c", "label"], rows)
    columns = dict(zip(["n", "c", "label"], map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    one, two = (load_own(own(tmp_path / name)) for name in ("a.csv", "a.parquet"))
    assert torch.equal(one.train.inputs, two.train.inputs)
    assert torch.equal(one.test.inputs, two.test.inputs)
    assert torch.equal(one.train.labels, two.train.labels)


def test_large_tables_of_many_kinds(tmp_path):
    head, names = "name;word\n", "".join(f"n{place};{'ab'[place % 2]}\n" for place in range(40))
    (tmp_path / "a.csv").write_text(head + names, encoding="utf-8-sig")
    with (
        pytest.warns(UserWarning, match="column 'name' differs in most rows"),
        pytest.raises(Exception, match="no column"),
    ):
        load_own(own(tmp_path / "a.csv", label="word"))
    many = [[f"c{place % 120}" if place < 240 else "c0", place % 2] for place in range(600)]
    with pytest.warns(UserWarning, match="1 samples have no label and are left out, such as b.csv:602"):
        data = load_own(own(write_csv(tmp_path / "b.csv", ["kind", "label"], [*many, ["c0", ""]])))
    assert data.train.input_shape == (100,)  # the most frequent categories


def test_a_test_part_is_split_off_and_every_class_keeps_a_sample(tmp_path):
    rows = [[place, "often"] for place in range(40)] + [[50.5, "once"], [51.5, "twice"], [52.5, "twice"]]
    pool = load_pool(own(write_csv(tmp_path / "a.csv", ["n", "label"], rows)))
    assert pool.samples.class_names == ("often", "once", "twice")
    assert pool.samples.class_counts.tolist() == [32, 1, 2]
    assert pool.test.class_counts.tolist() == [8, 0, 0]
    assert not set(pool.samples.names) & set(pool.test.names)
    assert not set(pool.samples.source.tolist()) & set(pool.test.source.tolist())
    again = load_pool(own(tmp_path / "a.csv"))
    assert again.test.names.tolist() == pool.test.names.tolist()
    splits = pool.splits(own(tmp_path / "a.csv"), seed=3, final=True)
    assert splits.val is None
    assert len(splits.train) == 35


def test_trusted_samples_validate_and_nobody_trains_on_them(tmp_path):
    rows = [[place / 7, place % 2, "yes" if place in (3, 5) else ""] for place in range(40)]
    table = write_csv(tmp_path / "a.csv", ["n", "label", "checked"], rows)
    pool = load_pool(own(table, trusted="checked"))
    assert pool.trusted.names.tolist() == ["a.csv:5", "a.csv:7"]
    assert pool.samples.input_shape == (1,)  # the marks are no feature
    table = write_csv(tmp_path / "a.csv", ["n", "label"], [row[:2] for row in rows])
    checked = write_csv(tmp_path / "checked.csv", ["n", "label"], [[3 / 7, 0], [99, 1]])
    with pytest.warns(UserWarning, match="1 samples are trusted ones too, and are left out"):
        pool = load_pool(own(table, trusted=str(checked)))
    assert len(pool.samples) + len(pool.test) == 39
    assert pool.trusted.labels.tolist() == [0, 1]
    splits = pool.splits(own(table, trusted=str(checked)), seed=0)
    assert splits.val is pool.trusted


def test_numbers_can_be_predicted(tmp_path):
    rows = [[place + 0.5, 1000 + 3.5 * place] for place in range(40)]
    data = load_own(own(write_csv(tmp_path / "a.csv", ["n", "price"], rows), label="price"), "regression")
    assert data.train.labels.mean().abs() < 1e-6
    assert data.train.labels.std(unbiased=False) == pytest.approx(1)
    config = own_config(str(tmp_path / "a.csv"), "", "regression")
    assert (config.methods, config.training.task) == (("uniform",), "regression")


def test_arrays(tmp_path):
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 255, (30, 9, 8, 3)), np.array(["dog", "cat"] * 15)
    np.savez(tmp_path / "a.npz", x_train=images, y_train=labels, test_x=images[:4], test_y=labels[:4])
    data = load_own(own(tmp_path / "a.npz"))
    assert data.train.inputs.shape == (30, 3, 9, 8)
    assert data.train.inputs.mean((0, 2, 3)).abs().max() < 1e-5
    assert torch.equal(data.train.inputs[:4], data.test.inputs)
    assert data.test.labels.tolist() == [1, 0, 1, 0]
    rows = random.normal(size=(30, 4))
    rows[3, 1] = np.nan
    np.savez(tmp_path / "b.npz", X=rows, y=np.arange(30) % 3, trusted=np.arange(30) < 5)
    data = load_own(own(tmp_path / "b.npz"))
    assert data.train.input_shape[0] in (4, 5)  # a column for what is missing, where that is trained on
    assert len(data.trusted) == 5
    assert isinstance(make_network("by_shape", (3, 9, 8), 2)(torch.zeros(2, 3, 9, 8)), torch.Tensor)


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_text("spam\tBuy now!\nham\tsee you\n\nspam\tnow\nham\t\n")
    (tmp_path / "b.txt").write_text("__label__spam now buy\n__label__ham you\n")
    data = load_own(own(tmp_path / "a.txt", test=str(tmp_path / "b.txt")))
    assert data.train.class_names == ("ham", "spam")
    assert data.train.names.tolist() == ["a.txt:1", "a.txt:2", "a.txt:4", "a.txt:5"]
    buy, now, _ = (
        data.train.inputs[0].tolist()[:3] if data.train.input_shape[0] > 2 else (*data.train.inputs[0].tolist(), 0)
    )
    assert data.test.inputs[0].tolist()[:2] == [now, buy]  # the same words, the same numbers
    assert data.train.inputs[3].eq(0).all()
    for name in ("bag_of_words", "text_embedding"):
        network = NETWORKS[name](data.train.input_shape, 2)
        assert network(data.train.inputs).shape == (4, 2)
        shuffled = data.train.inputs.flip(1)
        torch.testing.assert_close(network(shuffled), network(data.train.inputs))


def test_images_in_parts_trusted_lists_and_bad_ones(tmp_path):
    whole = photos(tmp_path / "all", count=4)
    (tmp_path / "list.txt").write_text("ant/1.png\n./bee/2.png\n")
    data = load_own(own(whole, trusted=str(tmp_path / "list.txt"), image_size=16))
    assert data.trusted.names.tolist() == ["ant/1.png", "bee/2.png"]
    assert data.trusted.labels.tolist() == [0, 1]
    assert data.train.input_shape == (3, 16, 16)
    photos(tmp_path / "parts" / "train", count=3)
    photos(tmp_path / "parts" / "val", count=2)
    data = load_own(own(tmp_path / "parts"))
    assert (len(data.train), len(data.test)) == (9, 6)
    photos(tmp_path / "alone" / "train", count=5)
    data = load_own(own(tmp_path / "alone"))
    assert (len(data.train), len(data.test), data.train.num_classes) == (12, 3, 3)
    (whole / "bee" / "3.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match=r"1 images cannot be read and were skipped: .*bee/3.png"):
        data = load_own(own(whole, bad_samples="skip"))
    assert "bee/3.png" not in {*data.train.names, *data.test.names}


def test_streamed_images_train_to_the_same_network(tmp_path):
    photos(tmp_path / "photos", count=8)
    config = own_config(str(tmp_path / "photos"), "", "classification")
    config = replace(config, methods=("auto",), training=replace(config.training, epochs=2, num_stages=2, batch_size=6))
    outcomes = []
    for stream in (False, True):
        job = compare.prepare(replace(config, data=replace(config.data, stream=stream)))
        assert isinstance(job.pool.samples, Streamed) is stream
        folder = compare.RunFolder.open(tmp_path / f"run{stream}", job.config, resume=False)
        outcomes.append(job.run(folder, lambda *_: None)["methods"]["auto"]["test_accuracy"])
    assert outcomes[0] == outcomes[1]
