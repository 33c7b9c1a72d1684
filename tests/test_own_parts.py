"""What becomes of own data: parts, trusted samples, columns, arrays, texts and images."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autoweight.cli.own import NO_SPLIT, is_path, own_config
from autoweight.config import DataConfig
from autoweight.data import load_pool
from autoweight.data.own import load_own
from autoweight.data.streamed import Streamed
from autoweight.errors import UserError
from autoweight.models import NETWORKS, make_network
from autoweight.runs import compare
from autoweight.runs.reading import read_run
from autoweight.runs.result import make_result

from .conftest import open_folder
from .test_own_data import photos, write_csv


def own(path: Path, **settings: object) -> DataConfig:
    return replace(NO_SPLIT, path=str(path), **settings)


def test_a_path_is_no_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits-noise").mkdir()
    (tmp_path / "photos").mkdir()
    assert all(map(is_path, ("./digits-noise", "photos", "a.csv")))
    assert not any(map(is_path, ("digits-noise", "digits-nose", "--out=runs/one", "")))


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
    lists = {"n": [row * 0.7 for row in range(12)], "tags": [["a", "b"], ["b"], None] * 4}
    parquet.write_table(arrow.table(lists), tmp_path / "b.parquet")
    with pytest.warns(UserWarning, match="4 samples have no label, so that none is true of them"):
        several = load_own(own(tmp_path / "b.parquet", label="tags"), "multilabel")
    assert several.train.class_names == ("a", "b")
    assert {tuple(row) for row in several.train.labels.tolist()} == {(1, 1), (0, 1), (0, 0)}


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
    with pytest.warns(UserWarning, match=r"1 samples are trusted ones too \(1 with another label there, which"):
        pool = load_pool(own(table, trusted=str(checked)))
    assert len(pool.samples) + len(pool.test) == 39
    assert pool.trusted.labels.tolist() == [0, 1]
    splits = pool.splits(own(table, trusted=str(checked)), seed=0)
    assert splits.val is pool.trusted


def test_rows_that_equal_trusted_ones_by_chance_stay(tmp_path):
    rows = [["mf"[place % 2], 1 + place % 3, place % 2, int(place < 30)] for place in range(120)]
    marked = load_own(own(write_csv(tmp_path / "a.csv", ["sex", "deck", "label", "checked"], rows), trusted="checked"))
    assert [len(marked.train), len(marked.test), len(marked.trusted)] == [72, 18, 30]
    table = write_csv(tmp_path / "b.csv", ["sex", "deck", "label"], [row[:3] for row in rows])
    more = [["m", 1, 1], ["m", 1, 1], ["f", 9, 0]]  # twice another label, and one that the table does not have
    checked = write_csv(tmp_path / "checked.csv", ["sex", "deck", "label"], [row[:3] for row in rows[:30]] + more)
    with pytest.warns(UserWarning, match=r"^32 samples are trusted ones too \(2 with another label there, which is"):
        data = load_own(own(table, trusted=str(checked)))
    assert len(data.train) + len(data.test) == 120 - 32


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
    (tmp_path / "c.txt").write_text("__label__spam __label__ad now buy\n__label__ham you\n__label__ad now\n" * 4)
    several = load_own(own(tmp_path / "c.txt"), "multilabel")
    assert several.train.class_names == ("ad", "ham", "spam")
    assert {tuple(row) for row in several.train.labels.tolist()} == {(1, 0, 1), (0, 1, 0), (1, 0, 0)}
    for name in ("bag_of_words", "text_embedding"):
        network = NETWORKS[name](data.train.input_shape, 2)
        assert network(data.train.inputs).shape == (4, 2)
        shuffled = data.train.inputs.flip(1)
        torch.testing.assert_close(network(shuffled), network(data.train.inputs))


def test_images_in_parts_trusted_lists_and_bad_ones(tmp_path):
    whole = photos(tmp_path / "all", count=4)
    (tmp_path / "list.txt").write_text("ant/1.png\n./bee/2.png\n", encoding="utf-8-sig")
    data = load_own(own(whole, trusted=str(tmp_path / "list.txt"), image_size=16))
    assert data.trusted.names.tolist() == ["ant/1.png", "bee/2.png"]
    assert data.trusted.labels.tolist() == [0, 1]
    assert data.train.input_shape == (3, 16, 16)
    photos(tmp_path / "parts" / "train", count=3)
    photos(tmp_path / "parts" / "val", count=2)
    (tmp_path / "parts" / "__MACOSX" / "train").mkdir(parents=True)
    (tmp_path / "parts" / ".cache").mkdir()
    data = load_own(own(tmp_path / "parts"))
    assert (len(data.train), len(data.test)) == (9, 6)
    photos(tmp_path / "alone" / "train", count=5)
    data = load_own(own(tmp_path / "alone"))
    assert (len(data.train), len(data.test), data.train.num_classes) == (12, 3, 3)
    (whole / "bee" / "3.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match=r"1 images cannot be read and were skipped: .*bee/3.png"):
        data = load_own(own(whole, bad_samples="skip"))
    assert "bee/3.png" not in {*data.train.names, *data.test.names}
    assert sum(data.skipped.values()) == 1


def test_streams_know_positions_in_the_data_set_too(tmp_path):
    photos(tmp_path / "photos", count=8)
    memory, stream = (load_own(own(tmp_path / "photos", image_size=9, stream=streamed)) for streamed in (False, True))
    for one, two in ((memory.train, stream.train), (memory.test, stream.test)):
        assert two.source.tolist() == one.source.tolist() != list(range(len(one)))
        assert torch.equal(two.in_memory().inputs, one.inputs)
    (tmp_path / "photos" / stream.train.names[5]).write_bytes(b"no image")
    remedy = (
        r"replace or remove it, or skip bad samples \(--data\.bad-samples skip, in Python bad_samples=\"skip\"\)\.$"
    )
    for streamed in (stream.train.in_memory, lambda: load_own(own(tmp_path / "photos"))):
        with pytest.raises(UserError, match=rf"{stream.train.names[5]} cannot be read as an image: {remedy}"):
            streamed()


@pytest.mark.parametrize("share", [0.2, 0.0])
@pytest.mark.filterwarnings("ignore:nothing is split off")
def test_images_of_every_part_that_cannot_be_read_are_said_once(tmp_path, share):
    photos(tmp_path / "photos", count=8)
    config = own_config(str(tmp_path / "photos"), "", "classification")
    data = replace(config.data, stream=True, bad_samples="skip", test_share=share)
    config = replace(config, training=replace(config.training, epochs=2, num_stages=2, batch_size=6), data=data)
    job = compare.prepare(config)
    (tmp_path / "photos" / job.pool.test.names[1]).write_bytes(b"no image")
    part = " of the test part" if share else ""
    with pytest.warns(UserWarning, match="skipped") as caught:
        result = job.run(open_folder(tmp_path / "run", job.config), lambda *_: None)
    skipped = {"test" if share else "training": 1}
    assert result["skipped"] == skipped
    (tmp_path / "run" / "result.json").write_text(json.dumps(make_result(config, **result)))
    (lacking,) = read_run(tmp_path / "run").missing
    assert lacking == f"1 samples of the {next(iter(skipped))} part could not be read and were skipped."
    (said,) = [str(one.message) for one in caught if "skipped" in str(one.message)]
    assert said.startswith(f"1 samples{part} cannot be read and were skipped: sample {int(job.pool.test.source[1])}, ")


def test_streamed_images_train_to_the_same_network(tmp_path):
    photos(tmp_path / "photos", count=8)
    config = own_config(str(tmp_path / "photos"), "", "classification")
    config = replace(config, methods=("auto",), training=replace(config.training, epochs=2, num_stages=2, batch_size=6))
    outcomes = []
    for stream in (False, True):
        job = compare.prepare(replace(config, data=replace(config.data, stream=stream)))
        assert isinstance(job.pool.samples, Streamed) is stream
        folder = open_folder(tmp_path / f"run{stream}", job.config)
        outcomes.append(job.run(folder, lambda *_: None)["methods"]["auto"]["test_accuracy"])
    assert outcomes[0] == outcomes[1]
