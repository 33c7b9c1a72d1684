"""Files that are valid and still wrong, pages that grow large, listeners that fail: none ends in a traceback."""

import json
import shutil
import warnings
from html import unescape

import numpy as np
import pytest

import autoweight as aw
from autoweight.cli.run import run
from autoweight.recipes import get_recipe
from autoweight.report.page import write_report
from autoweight.runs.reading import read_run
from autoweight.runs.samples import read_columns, samples_file, write_columns

from .conftest import open_folder
from .pages import make_compare


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_compare(tmp_path_factory.mktemp("runs") / "compare", "uniform,auto", seeds=2)


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def page_with(folder, **odd):
    """The page's text after parts of result.json were replaced, or, if None, taken out."""
    result = json.loads((folder / "result.json").read_text()) | odd
    kept = {name: value for name, value in result.items() if value is not None}
    (folder / "result.json").write_text(json.dumps(kept))
    return unescape(write_report([folder]).read_text())


@pytest.mark.parametrize(
    "odd", [{"seeds": None}, {"seeds": "x"}, {"seeds": ["0"]}, {"seeds": 3}, {"seeds": []}, {"seeds": [1, 1]}]
)
def test_seeds_that_cannot_be_read(folder, odd):
    text = page_with(folder, **odd)
    assert "its seeds cannot be read" in text
    assert "over 2 seeds" in text


@pytest.mark.parametrize(
    "odd", [{"failed": 3}, {"failed": {}}, {"search": 3.5}, {"recovered": [1]}, {"recovered": {"auto": float("nan")}}]
)
def test_other_parts_of_a_result_that_are_odd(folder, odd):
    text = page_with(folder, **odd)
    assert "over 2 seeds" in text
    assert "nan" not in text[text.index("<h1") : text.index("Curves</h2>")]


@pytest.mark.parametrize("score", ["NaN", "Infinity", "1e999", '"x"'])
def test_a_score_that_is_no_number(folder, score):
    result = json.loads((folder / "result.json").read_text())
    result["methods"]["auto"]["test_accuracy"][1] = "ODD"
    (folder / "result.json").write_text(json.dumps(result).replace('"ODD"', score))
    text = write_report([folder]).read_text()
    assert "result.json: what auto reached cannot be read." in text
    assert '<th scope="row">uniform<' in text


def test_a_search_alone_whose_part_is_a_number(folder):
    assert "nothing to judge" in page_with(folder, methods={}, search=7)
    assert "nothing to judge" in page_with(folder, methods={}, seeds="x")


@pytest.mark.parametrize(
    "weights", [5, {"groups": 7}, {"by_class": ["x", 1]}, {"by_class": 3}, {"quantiles": [1, 2, "x", 4, 5]}]
)
def test_weights_that_are_odd(folder, weights):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    next(line for line in lines if line["event"] == "stage" and line["method"] == "auto")["weights"] = weights
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "1 line of metrics.jsonl cannot be read." in write_report([folder]).read_text()


def test_a_class_without_a_mean_weight(folder):
    text = (folder / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["event"] == "stage":
            line["weights"]["by_class"][2] = None  # as of a class that never came up
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "Mean weight by class, auto" in write_report([folder]).read_text()


def test_seconds_that_a_killed_run_did_not_tell(folder):
    text = (folder / "metrics.jsonl").read_text().replace('"train_seconds": ', '"train_seconds": null, "was": ')
    (folder / "metrics.jsonl").write_text(text)
    (folder / "result.json").unlink()
    assert "over 2 seeds" in write_report([folder]).read_text()


@pytest.mark.parametrize("name", ["margin", "predicted", "index"])
def test_samples_that_lack_what_an_audit_reads(folder, name):
    for seed in (0, 1):
        path = samples_file(folder, "auto", seed)
        columns = read_columns(path)
        lacking = {own: column for own, column in columns.items() if own != name}
        write_columns(path, lacking if seed else columns | {name: columns[name][:-1]})
        assert read_columns(path) is None
    text = write_report([folder]).read_text()
    assert "samples/auto-0.npz is damaged" in text
    assert "cannot be audited" in text
    with pytest.raises(aw.UserError, match=r"auto-0\.npz is damaged: train again"):
        run(["audit", str(folder)])


def test_an_audit_is_not_said_to_be_of_nothing_trained(folder):
    (folder / "metrics.jsonl").write_text("")
    (folder / "result.json").unlink()
    text = write_report([folder]).read_text()
    assert "labels look wrong" in text
    assert "nothing was trained" not in text
    assert "metrics.jsonl is empty: there are no curves" in text


def test_pages_of_many_pictures_stay_small(folder):
    draw, classes = np.random.default_rng(0), 12
    count = 20 * classes
    columns = {
        "index": np.arange(count, dtype=np.uint32),
        "label": (np.arange(count) % classes).astype(np.uint8),
        "predicted": ((np.arange(count) + 1) % classes).astype(np.uint8),
        "margin": np.linspace(-0.9, -0.1, count, dtype=np.float32),
        "remembered": np.array(True),
        "num_classes": np.array(classes),
        "pictured": np.arange(5 * classes, dtype=np.uint32),
        "pictures": draw.integers(256, size=(5 * classes, 64, 64, 3), dtype=np.uint8),  # as large as they come
    }
    write_columns(samples_file(folder, "auto", 0), columns)
    text = write_report([folder, folder], folder / "both.html").read_text()
    assert len(text) < 2_000_000
    assert text.count("url(data:image/png") >= 6 * classes
    assert all(f"<h4>given {number}</h4>" in text for number in range(classes))  # every class has one


def test_a_listener_that_fails_does_not_end_a_training(tmp_path):
    folder, heard = open_folder(tmp_path / "run", get_recipe("digits-noise")), []

    def fail(line):
        heard.append(line)
        raise ConnectionError("no route to host\nand more")

    folder.listeners += [fail, heard.append]
    with pytest.warns(UserWarning, match=r"^the log is left out from here on, since it failed \(no route to host\); "):
        folder.log({"event": "stage", "stage": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder.log({"event": "stage", "stage": 1})
    assert len(heard) == 3  # both heard the first line, and one the second
    assert len(read_run(tmp_path / "run").lines) == 2
