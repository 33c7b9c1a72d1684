"""Commands on data of one's own, as a user types them, and what their files become."""

import csv
import json
import warnings
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from PIL import Image

from autoweight.cli.own import own_config
from autoweight.cli.run import run
from autoweight.cli.typed import base_config
from autoweight.config import ActorCriticConfig, RunConfig
from autoweight.config.commented import commented
from autoweight.config.files import load_config
from autoweight.errors import UserError

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
    autoweight("train", "photos", "--out", "run", "--training.epochs", 8, cwd=tmp_path)
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
    assert "early_stop" not in done.stderr  # nobody has asked for it
    done = autoweight(
        *words, "--methods", "uniform,early_stop,oracle", "--no-report", "--training.num-stages", 1, cwd=tmp_path
    )
    assert "early_stop stops where trusted samples say, and there are none" in done.stderr
    assert "oracle must know which labels are wrong, and of yours nobody does" in done.stderr
    assert "oracle" not in done.stdout


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
    begun = own_config(str(tmp_path / "rows.csv"), "", "classification", label="pays", trusted="checked")
    data = replace(begun.data, label="pays", trusted="checked")
    search = replace(begun.search, actor_critic=ActorCriticConfig())  # of an agent that is not used
    assert config == replace(begun, data=data, search=search, command="any")
    autoweight("compare", "--config", "autoweight.yaml", *SHORT, "--methods", "uniform", "--out", "run", cwd=tmp_path)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert list(result["methods"]) == ["uniform", "early_stop"]
    assert "is there already" in autoweight("init", cwd=tmp_path, status=2).stderr
    assert "--config 'a blank.yaml'\n" in autoweight("init", "--out", "a blank.yaml", cwd=tmp_path).stdout
    assert yaml.safe_load((tmp_path / "a blank.yaml").read_text())["data"]["path"] == "rows.csv"


COUNTED = {
    "texts of many lines": (["t", "label"], [["word\n" * 40, "ab"[place % 2]] for place in range(20)], ["--text", "t"]),
    "few labels": (["n", "y"], [[place / 3, "ab"[place % 2] if place < 20 else ""] for place in range(500)], []),
    "much that is trusted": (["n", "y", "c"], [[place / 3, "ab"[place % 2], place > 19] for place in range(500)], []),
}


@pytest.mark.parametrize("name", COUNTED)
def test_batches_suit_the_samples_that_are_trained_on(tmp_path, name):
    header, rows, words = COUNTED[name]
    path = str(write_csv(tmp_path / "a.csv", header, rows))
    words = [*words, *["--label", "y"] * ("y" in header), *["--data.trusted=c"] * ("c" in header)]
    assert base_config("train", [path, *words])[0].training.batch_size == 16 // 5  # a fifth is split off
    assert base_config("audit", [path, *words])[0].training.batch_size == 20 // 5
    assert base_config("train", [path, *words, "--data.test-share", "0.5"])[0].training.batch_size == 2


def test_the_help_of_init_is_of_init(capsys):
    with pytest.raises(SystemExit):
        run(["init", "--help"])
    told = capsys.readouterr().out
    assert "File to write; by default autoweight.yaml" in told
    assert not any(flag in told for flag in ("--resume", "--log", "--report", "--config"))


def test_every_key_of_a_commented_file_says_what_it_is():
    lines = commented(RunConfig(recipe="x")).splitlines()
    keys = [place for place, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")]
    assert len(keys) > 60
    assert all(lines[place - 1].strip().startswith("#") for place in keys)
