"""Tasks besides classification on data of one's own, by commands as a user types them."""

import csv
import json
import os
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autoweight.cli.own import NO_SPLIT, own_config
from autoweight.config import TaskConfig
from autoweight.config.files import load_config
from autoweight.data.own import load_own
from autoweight.data.own.rows import Rows
from autoweight.data.own.targets import learn_targets
from autoweight.errors import UserError
from autoweight.models import make_network
from autoweight.runs import find as finding

from .own_files import arrays, bytes_file, folder, rows
from .test_bad_input import read, said
from .test_own_data import autoweight, write_csv

SHORT = ["--training.epochs", "12", "--training.num-stages", "4", "--training.learning-rate", "0.01", "--no-report"]
SEARCH = ["--search.num-episodes", 1, "--search.num-workers", 5, "--search.choice-rounds", 1]
COUNT = 160


def signs() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(COUNT, 4))


def several_arrays(path: Path) -> list[str]:
    """Three labels a sample, which follow from the signs of three inputs."""
    np.savez(path / "a.npz", x=signs(), y=(signs()[:, :3] > 0).astype(int), trusted=np.arange(COUNT) % 4 == 0)
    return ["a.npz", "--training.task", "multilabel"]


def several_cells(path: Path) -> list[str]:
    """The same in a table, by names; a cell may be empty."""
    rows = []
    for place, values in enumerate(signs()):
        names = [name for name, value in zip(("red", "round", "big"), values, strict=False) if value > 0]
        rows.append([*(f"{value:.4f}" for value in values), "; ".join(names), place % 4 == 0])
    write_csv(path / "a.csv", ["a", "b", "c", "d", "tags", "checked"], rows)
    return ["a.csv", "--label", "tags", "--trusted", "checked", "--training.task", "multilabel"]


def several_targets(path: Path) -> list[str]:
    y = 50 + 9 * signs()[:, :2]
    np.savez(path / "a.npz", x=signs(), y=y, trusted=np.arange(COUNT) % 4 == 0)
    return ["a.npz", "--training.task", "regression"]


def tokens(path: Path) -> list[str]:
    """The class of a token is whether the one before it is odd; the first, which has none, does not count."""
    ids = np.random.default_rng(0).integers(100, 110, (COUNT, 6))
    y = np.where(np.roll(ids, 1, axis=1) % 2 == 1, 7, 3)
    y[:, 0] = -100
    np.savez(path / "a.npz", x=ids, y=y, trusted=np.arange(COUNT) % 4 == 0)
    return ["a.npz", "--training.task", "tokens"]


TASKS = {
    "several labels, arrays": (several_arrays, "test_macro_f1", "uniform"),
    "several labels, cells": (several_cells, "test_macro_f1", "uniform"),
    "several targets": (several_targets, "test_r2", "uniform"),
    "tokens": (tokens, "test_accuracy", "auto"),
}


def scores(folder: Path) -> dict[str, float]:
    result = json.loads((folder / "result.json").read_text())
    return {name: values[result["score"]][0] for name, values in result["methods"].items()}


@pytest.mark.parametrize("name", TASKS)
def test_compare_search_and_train_take_every_task(tmp_path, name):
    make, score, first = TASKS[name]
    data = make(tmp_path)
    autoweight("compare", *data, *SHORT, "--out", "compared", cwd=tmp_path)
    compared = scores(tmp_path / "compared")
    assert next(iter(compared)) == first
    assert min(compared.values()) > 0.75
    assert json.loads((tmp_path / "compared" / "result.json").read_text())["score"] == score
    done = autoweight("search", *data, *SHORT, *SEARCH, "--search.warmup-stages", 1, "--out", "found", cwd=tmp_path)
    use_it = done.stdout.split("use it: autoweight ")[1].split("\n")[0].split()
    assert use_it[use_it.index("--training.task") + 1] == data[-1]
    autoweight(*use_it, "--no-report", "--out", "used", cwd=tmp_path)
    assert scores(tmp_path / "used")["law"] > -1
    assert (
        load_config(tmp_path / "used" / "config.yaml").training == load_config(tmp_path / "found/config.yaml").training
    )


def test_an_audit_of_tokens_names_the_token(tmp_path):
    data = tokens(tmp_path)
    arrays = dict(np.load(tmp_path / "a.npz"))
    wrong = {(place, 2 + place % 3) for place in range(1, 60, 6)}
    for place, token in wrong:
        arrays["y"][place, token] = 10 - arrays["y"][place, token]  # 3 and 7 swapped
    np.savez(tmp_path / "a.npz", **arrays)
    done = autoweight("audit", *data, *SHORT, "--out", "run", cwd=tmp_path)
    with (tmp_path / "run" / "label_issues.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * COUNT * 3 // 4  # what is not trusted, without the first tokens
    worst = [(int(row["index"]), int(row["token"])) for row in rows[: len(wrong)]]
    assert set(worst[:5]) <= wrong
    assert len(wrong.intersection(worst)) >= 7
    assert {row["given_label"] for row in rows} == {"3", "7"}
    assert "of 600 labels look wrong" in done.stdout


def test_labels_become_ones_by_their_names(tmp_path):
    cells = [["a; b"], ["b"], [""], ["c;a"]] * 5
    path = write_csv(tmp_path / "a.csv", ["n", "label"], [[place * 0.7, *cell] for place, cell in enumerate(cells)])
    rows = Rows.of({}, [cell[0] for cell in cells[:4]], list("wxyz"))
    assert learn_targets(rows, "multilabel").encode(rows).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
    config = replace(NO_SPLIT, path=str(path))
    with pytest.warns(UserWarning, match="5 samples have no label, so that none is true of them, such as a.csv:4"):
        data = load_own(config, "multilabel")
    assert data.train.class_names == ("a", "b", "c")
    assert (len(data.train), len(data.test)) == (16, 4)


def test_a_rare_label_is_never_tested_alone(tmp_path):
    """Whichever sample has the label, a part is split off that leaves it to the training."""
    for place in range(10):
        labels = np.zeros((10, 2), int)
        labels[:, 0], labels[place, 1] = np.arange(10) % 2, 1
        np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(10, 3)), y=labels)
        config = replace(NO_SPLIT, path=str(tmp_path / "a.npz"))
        assert load_own(config, "multilabel").train.labels[:, 1].sum() == 1


def test_the_network_of_tokens_sees_two_neighbours_on_either_side():
    torch.manual_seed(0)
    network = make_network("token_window", (9,), 4)
    ids = torch.randint(0, 50_000, (2, 9))
    other = ids.clone()
    other[:, 4] += 1
    changed = (network(ids) != network(other)).any(dim=-1)
    assert network(ids).shape == (2, 9, 4)
    assert changed.tolist() == [[2 <= place <= 6 for place in range(9)]] * 2


def test_a_search_over_two_files_reads_both(tmp_path):
    """Tasks that differ in their files alone are not taken for one."""
    for name, sign in (("a.csv", 1), ("b.csv", -1)):
        write_csv(tmp_path / name, ["n", "label"], [[sign * (place + 0.5), place % 2] for place in range(60)])
    own = [replace(NO_SPLIT, path=str(tmp_path / name), val_size=12) for name in ("a.csv", "b.csv")]
    config = own_config(str(tmp_path / "a.csv"), "", "classification")
    config = replace(config, data=own[0], tasks=(TaskConfig(own[1]),))
    with pytest.warns(UserWarning, match="12 validation samples tell little"):
        first, second = finding.prepare(config).problems
    assert {name.partition(":")[0] for name in first.train.names.tolist()} == {"a.csv"}
    assert {name.partition(":")[0] for name in second.train.names.tolist()} == {"b.csv"}


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "several targets, one of them the same": (
        lambda: read(arrays(x=np.random.rand(9, 2), y=np.eye(9)[:, :2] * [1, 0]), "regression"),
        "all targets of a column are the same number",
    ),
    "several labels without a task": (
        lambda: read(arrays(x=np.ones((9, 2)), y=np.ones((9, 3)))),
        r"labels of shape \(9, 3\) are several a sample: add --training.task multilabel",
    ),
    "several labels of words": (
        lambda: read(arrays(x=np.ones((2, 2)), y=np.array([["a", "b"]] * 2)), "multilabel"),
        "y of a.npz has several labels a sample, which need to be numbers, not <U1",
    ),
    "labels of three dimensions": (
        lambda: read(arrays(x=np.ones((2, 2)), y=np.ones((2, 2, 2))), "multilabel"),
        r"a.npz has 2 inputs, but labels of shape \(2, 2, 2\)",
    ),
    "a label of two": (
        lambda: read(arrays(x=np.random.rand(9, 2), y=np.eye(9)[:, :3] * 2), "multilabel"),
        "several labels a sample are zeros and ones, but one is 2.0",
    ),
    "a number for several labels": (
        lambda: read(rows("a,label\n" + "".join(f"{place},{place / 9}\n" for place in range(99))), "multilabel"),
        "99 different labels in 99 samples, too many for classes: name another --label, whose cells name labels",
    ),
    "a new label in the test": (
        lambda: read(rows("a,label\n" + "1,x;y\n2,x\n" * 9), "multilabel", test=rows("a,label\n1,x;z\n", "t.csv")),
        "t.csv:2 has the label 'z', which the training data do not have: they have x, y",
    ),
    "tokens of a table": (lambda: read(rows(), "tokens"), "tokens are read from an .npz: x holds their ids and y"),
    "tokens of other lengths": (
        lambda: read(arrays(x=np.ones((9, 3), int), y=np.ones((9, 4), int)), "tokens"),
        r"both whole numbers \[samples, tokens\], with -100 in y",
    ),
    "tokens that are no ids": (
        lambda: read(arrays(x=np.ones((9, 4)), y=np.ones((9, 4), int)), "tokens"),
        "tokens are read from an .npz",
    ),
    "an id below 0": (
        lambda: read(arrays(x=-np.ones((9, 4), int), y=np.ones((9, 4), int)), "tokens"),
        "ids of tokens count from 0, but one is -1",
    ),
    "no token that counts": (
        lambda: read(arrays(x=np.ones((9, 4), int), y=np.full((9, 4), -100)), "tokens"),
        "tokens have 0 classes: there is nothing to tell apart",
    ),
    "a label of its own for each": (
        lambda: read(rows(), label="size"),
        "there are 30 different labels in 30 samples, too many for classes",
    ),
    "the label as trusted": (
        lambda: read(rows(), trusted="label"),
        "--trusted names the column of the labels, 'label': name one that marks rows",
    ),
    "a label of arrays": (
        lambda: read(arrays(x=np.ones((3, 2)), y=np.ones(3)), label="y"),
        "--label names a column of a table, but a.npz is none",
    ),
    "a link to nowhere": (
        lambda: (folder(), os.symlink("loop.png", "photos/ant/loop.png"), read("photos")),
        "loop.png cannot be read",
    ),
    "complex x": (
        lambda: read(arrays(x=np.ones((3, 2), complex), y=np.ones(3))),
        "x of a.npz holds complex128, not real numbers",
    ),
    "more columns in the test": (
        lambda: read(arrays(x=np.eye(9), y=np.arange(9) % 2, test_x=np.ones((3, 10)), test_y=np.ones(3))),
        r"samples of x have the shape \(9,\) in training, but \(10,\) in another part: make it one",
    ),
    "larger images in the test": (
        lambda: read(arrays(x=np.ones((9, 8, 8)), y=np.arange(9) % 2, test_x=np.ones((3, 9, 9)), test_y=np.ones(3))),
        r"samples of x have the shape \(1, 8, 8\) in training, but \(1, 9, 9\) in another part",
    ),
    "a list of trusted images that is not UTF-8": (
        lambda: read(folder(), trusted=bytes_file("list.txt", b"ant/\xff.png\n")),
        "list.txt is not UTF-8 text: save it as UTF-8",
    ),
    "parts in capital letters": (
        lambda: (folder("photos/Train"), folder("photos/Test"), read("photos")),
        "photos holds Test/ with folders in it, which looks like a part and no class: leave only train/, test/",
    ),
    "parts beside another folder": (
        lambda: (folder("photos/train"), folder("photos/val"), folder("photos/extra"), read("photos")),
        "photos holds train/ with folders in it, which looks like a part and no class",
    ),
    "another data set than one's own": (
        lambda: said("train", rows(), "--data.dataset", "digits"),
        "--data.path is for data of your own",
    ),
    "an audit of several labels": (
        lambda: said("audit", arrays(x=np.eye(9), y=np.eye(9, dtype=int)), "--training.task", "multilabel"),
        "an audit looks at classes, so it is for classification and tokens, not for multilabel",
    ),
    "an audit by what forgets": (
        lambda: said("audit", "digits-noise", "--method", "uniform"),
        "an audit reads what the network made of each sample, which uniform does not remember: use --method auto",
    ),
    "a method of another task": (
        lambda: said("train", rows(), "--label", "size", "--training.task", "regression", "--method", "focal"),
        "Focal is for classification, not for regression: use another method, or none",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore:.*")
def test_a_mistake_gets_one_sentence(name, tmp_path):
    call, message = MISTAKES[name]
    with chdir(tmp_path), pytest.raises(UserError, match=message) as error:
        call()
    assert "\n" not in str(error.value).strip()
