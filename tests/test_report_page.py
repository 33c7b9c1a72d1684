"""The page that a run ends with: its verdict against hand-computed values, its parts, and runs that lack things."""

import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from math import nan, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import autoweight as aw
from autoweight.cli.run import run
from autoweight.recipes import get_recipe
from autoweight.report.audits import audit_view
from autoweight.report.gains import gain_over, mcnemar, over_samples, over_seeds
from autoweight.report.intervals import combined_half_width, half_width
from autoweight.report.page import write_report
from autoweight.report.verdict import verdict
from autoweight.runs.log import LOGS, numbers
from autoweight.runs.reading import RunView, read_run, told
from autoweight.runs.samples import samples_file, write_columns

from .pages import SHORT, make_compare, make_killed, make_search

SECTIONS = ("verdict", "methods", "curves", "strategy", "weights", "search", "audit", "how")
VOID = {"meta", "link", "img", "br", "path", "rect", "circle", "input"}


class Page(HTMLParser):
    """Checks that tags close in order, and keeps what they hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.open, self.seen, self.addresses = text, [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.seen.append((tag, values))
        self.addresses += [values[key] for key in ("src", "href") if key in values]
        if tag not in VOID or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def all(self, tag):
        return [values for name, values in self.seen if name == tag]


def page_of(folder: Path) -> Page:
    page = Page((folder / "report.html").read_text())
    assert all(f'id="run1-{name}"' in page.text for name in SECTIONS)
    assert all(one.startswith(("#", "data:", "label_")) for one in page.addresses)  # nothing from elsewhere
    assert len(page.text) < 2_000_000
    for svg in [svg for svg in page.all("svg") if "aria-hidden" not in svg]:
        assert svg["role"] == "img"
        assert len(svg["aria-label"]) > 10
    assert all("alt" in image for image in page.all("img"))
    assert len(page.all("figure")) == page.text.count("<figcaption>")  # a sentence on every figure
    levels = [int(tag[1]) for tag, _ in page.seen if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(2) == 8
    assert all(after <= before + 1 for before, after in pairwise(levels))  # none is skipped
    return page


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_compare(tmp_path_factory.mktemp("runs") / "compare")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    return make_search(tmp_path_factory.mktemp("runs") / "search")


def test_a_comparison_ends_with_its_page(whole, capsys):
    page = page_of(whole)
    view = read_run(whole)
    assert verdict(view)[0] in page.text.replace("&#39;", "'")
    for name in ("uniform", "early_stop", "auto", "oracle"):
        assert f'<th scope="row">{name}<' in page.text
    assert "Which labels are wrong." in page.text  # what the oracle was told
    titles = page.text
    for title in ("Validation accuracy", "Training loss", "Learning rate", "Loss gap to training without weights"):
        assert title in titles
    for title in ("Mean weight of right and wrong labels, auto", "Effective sample size", "Suspected confusion matrix"):
        assert title in titles
    pictures = re.findall(r"url\((data:image/png;base64,[^)]+)\)", page.text)
    assert len(pictures) == len(set(pictures)) > 30  # each once
    shown = re.findall(r'class="picture (run1-p\d+)"', page.text)
    assert len(shown) > len(pictures)
    assert all(f".{name}{{background-image" in page.text for name in shown)
    assert ("Recovered is how much of the gap" in page.text) != ("what others close of it cannot be told" in page.text)
    assert "To repeat it: <code>autoweight compare --config" in page.text
    run(["report", str(whole)])
    assert capsys.readouterr().out == f"report: {whole / 'report.html'}\n"
    run(["compare", "--out", str(whole), "--resume"])
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {whole / 'report.html'}"


def test_charts_carry_the_values_that_were_measured(whole):
    page = page_of(whole)
    charts = [json.loads(svg["data-chart"]) for svg in page.all("svg") if "data-chart" in svg]
    lines = [line for line in read_run(whole).of("stage") if line["method"] == "auto"]
    expected = [100 * np.mean([line["val_score"] for line in lines if line["stage"] == k]) for k in range(4)]
    assert charts[0]["x"] == [1, 2, 3, 4]
    assert {one["name"]: one["y"] for one in charts[0]["series"]}["auto"] == pytest.approx(expected, rel=1e-3)


def test_a_search_alone(searched):
    page = page_of(searched)
    assert "Returns of the search" in page.text
    assert "The same candidate, trained again from another start" in page.text
    assert "Loss gap along episodes of the search" in page.text
    assert "Theta by stage" in page.text
    assert "No record of a method's training that has ended" in page.text
    assert "no candidate was better than no weighting" in page.text or "In the search&#39;s proxies" in page.text
    returns = [line["returns"] for line in read_run(searched).of("search") if "returns" in line]
    assert [len(one) for one in returns] == [5] * 4  # two episodes, two rounds of choosing


def test_a_killed_search_shows_what_it_has_come_to(searched, tmp_path):
    killed = tmp_path / "killed search"
    shutil.copytree(searched, killed)
    for name in ("result.json", "strategy.safetensors", "report.html"):
        (killed / name).unlink()
    lines = (killed / "metrics.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["episode"] == 0]
    (killed / "metrics.jsonl").write_text("".join(kept))
    write_report([killed])
    text = unescape(page_of(killed).text)
    assert "The search has ended 1 of 2 episodes; the best return of a guess so far is" in text
    assert "nothing to judge" not in text
    assert "the strategy shown is its best guess so far" in text
    assert "Theta by stage" in text
    assert "Returns of the search" in text
    assert f"To go on with it: <code>autoweight search --out '{killed}' --resume</code>" in text
    for file in (killed / "checkpoint").iterdir():
        file.write_bytes(b"damaged")
    write_report([killed])
    assert "Theta by stage" not in page_of(killed).text
    assert (killed / "checkpoint" / "search").read_bytes() == b"damaged"  # who looks changes nothing


def test_a_killed_run_says_what_is_missing(whole, tmp_path):
    killed = make_killed(whole, tmp_path / "killed")
    write_report([killed])
    page = page_of(killed)
    assert "There is no result.json" in page.text
    assert "1 line of metrics.jsonl cannot be read" in page.text
    assert "cannot be audited" in page.text
    assert "Nothing was weighed that could be judged: uniform" in page.text
    assert '<th scope="row">early_stop<' in page.text


def test_runs_that_lack_nearly_everything(whole, tmp_path):
    for name, content, sentence in [
        ("empty", "", "metrics.jsonl is empty: nothing was trained yet"),
        ("half", '{"event": "sta', "Not one line of metrics.jsonl can be read"),
        ("odd", '7\n{"event": "stage", "stage": "x"}\n', "Not one line of metrics.jsonl can be read"),
    ]:
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(whole / "config.yaml", folder)
        (folder / "metrics.jsonl").write_text(content)
        write_report([folder])
        assert sentence in page_of(folder).text
    (tmp_path / "odd" / "config.yaml").write_text("recipe: [")
    (tmp_path / "odd" / "result.json").write_text('{"methods": {"law": 5}, "seeds": "x"}')
    write_report([tmp_path / "odd"])
    page = page_of(tmp_path / "odd")
    assert "The configuration could not be read" in page.text
    assert "The configuration cannot be read: " in page.text
    assert "The configuration is missing" not in page.text
    (tmp_path / "odd" / "result.json").write_text("{")
    write_report([tmp_path / "odd"])
    assert "result.json is damaged" in page_of(tmp_path / "odd").text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "is no folder"),
        (["bare"], "holds no run"),
        ([], "name a run's folder first"),
        (["bare", "--nix"], "--nix"),
    ],
)
def test_no_run_is_one_sentence(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare").mkdir()
    with pytest.raises(aw.UserError, match=sentence):
        run(["report", *words])


def test_several_runs_make_one_page(whole, searched, tmp_path):
    path = write_report([whole, searched], tmp_path / "both.html")
    page = Page(path.read_text())
    assert 'id="run2-search"' in page.text
    assert f'<a href="#run1">{whole.name}</a><a href="#run2">{searched.name}</a></nav>' in page.text
    assert 'aria-label="Runs"' not in page_of(whole).text
    assert len(page.all("h1")) == 2


def test_ten_thousand_classes_and_a_million_samples(whole, tmp_path):
    folder = tmp_path / "large"
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "samples")
    count, classes = 1_000_000, 10_000
    label = (np.arange(count) % classes).astype(np.uint16)
    margin = np.where(np.arange(count) % 7 == 0, -0.8, 0.8).astype(np.float32)
    columns = {
        "index": np.arange(count, dtype=np.uint32),
        "label": label,
        "predicted": np.where(margin < 0, (label + 1) % classes, label).astype(np.uint16),
        "margin": margin,
        "weight": np.ones(count, np.float16),
        "remembered": np.array(True),
        "num_classes": np.array(classes),
    }
    path = samples_file(folder, "auto", 0)
    write_columns(path, columns)
    assert path.stat().st_size < 6 * count
    write_report([folder])
    page = page_of(folder)
    assert "142,858 of 1,000,000" in page.text
    assert "9,950 more have some" in page.text
    assert "too many classes for a confusion matrix" in page.text


def test_intervals_against_hand_computed_values():
    gain = over_seeds([1.0, 2.0, 3.0])
    half = 4.303 * 1 / sqrt(3)
    assert (gain.mean, gain.low, gain.high) == pytest.approx((2, 2 - half, 2 + half))
    assert gain.may_be_chance
    assert not over_seeds([19.0, 20.0, 21.0]).may_be_chance
    assert over_seeds([100 * (0.9 - 0.8), 100 * (0.8 - 0.7)]).may_be_chance  # equal, so they tell no deviation
    assert 2.1098 < over_seeds([1.0, -1.0] * 9).high * sqrt(17) < 2.12  # the quantile for 17 degrees of freedom
    own, other = np.array([True] * 8 + [False] * 2), np.array([False] * 6 + [True] * 2 + [False, True])
    gain = over_samples(own, other)
    assert gain.mean == pytest.approx(50)
    assert gain.chance == pytest.approx(2 * (1 + 7) / 2**7)  # six won, one lost
    assert mcnemar(0, 0) == 1
    assert mcnemar(600, 500) == pytest.approx(0.0028, abs=3e-4)  # by the normal distribution
    assert mcnemar(600, 600) == 1
    assert mcnemar(500, 450) == pytest.approx(0.112, abs=5e-3)  # counted


def test_two_seeds_are_judged_over_their_test_samples_too(tmp_path):
    draw = np.random.default_rng(0)
    other = draw.random((2, 500)) < 0.7
    own = other | (draw.random((2, 500)) < [[0.3], [0.34]])  # nine and ten points ahead, or so
    differences = [100 * float(a.mean() - b.mean()) for a, b in zip(own, other, strict=True)]
    pairs = list(zip(own, other, strict=True))
    alone, both = over_seeds(differences), over_seeds(differences, pairs)
    assert both.mean == alone.mean == pytest.approx(np.mean(differences))
    assert alone.may_be_chance
    assert not both.may_be_chance
    assert both.over == "2 seeds and 500 test samples"
    of_samples = 100 * (own.astype(float) - other).mean(axis=0).std() / sqrt(500)
    assert (both.high - both.low) / 2 > 1.96 * of_samples
    same = [pairs[0], pairs[0]]  # seeds that are one tell nothing new: the test samples remain
    alike = over_seeds([differences[0]] * 2, same)
    assert (alike.high - alike.low) / 2 == pytest.approx(196 * (own[0].astype(float) - other[0]).std() / sqrt(500))
    wide = combined_half_width(100.0, 1.0, 2)  # where seeds differ by much, they alone count
    assert wide == pytest.approx(half_width(100.0, 2), rel=1e-3)


def test_one_seed_is_judged_over_the_test_samples(whole, tmp_path):
    folder = tmp_path / "one"
    shutil.copytree(whole, folder)
    result = json.loads((folder / "result.json").read_text())
    for values in result["methods"].values():
        values.update({key: column[:1] for key, column in values.items()})
    (folder / "result.json").write_text(json.dumps({**result, "seeds": result["seeds"][:1]}))
    view = read_run(folder)
    gain = gain_over(view, "oracle", "early_stop")
    assert gain.over == "547 test samples, one seed"
    write_report([folder])
    assert "std. error" in page_of(folder).text
    scores = [100 * view.result["methods"][name]["test_accuracy"][0] for name in ("oracle", "early_stop")]
    assert gain.mean == pytest.approx(scores[0] - scores[1])
    shutil.rmtree(folder / "samples")
    assert "cannot tell whether that is chance" in verdict(read_run(folder))[0]


def test_a_search_is_judged_in_the_unit_of_its_gain():
    result = {"methods": {}, "search": {"validation_gain": 0.62, "validation_gain_error": 0.02}}
    view = RunView(Path(), get_recipe("digits-many"), [], result, True, None)
    assert "tasks it closed of the gap between no weighting and an oracle 62.0 % (stand" in verdict(view)[0]
    view.config = get_recipe("digits-noise")
    assert "it was 62.0 (standard error 2.0) points ahead of no weighting" in verdict(view)[0]
    result["search"] |= {"validation_repeats": 3, "candidates": 30}
    said = " ".join(verdict(view).notes)
    assert "By 3 repeats, its 95 % interval is 53.4 to 70.6. It is the best of 30 candidates in the very" in said
    assert "chance" not in said
    result["search"] |= {"validation_gain": 0.05}
    assert "its 95 % interval is -3.6 to 13.6. That could be chance: do not trust the strategy yet." in " ".join(
        verdict(view).notes
    )
    result["search"] |= {"validation_gain": 0.03, "validation_repeats": 1}  # 0.02 is then its worst case
    assert verdict(view).notes[0] == "That could be chance: do not trust the strategy yet."
    result["search"] |= {"validation_gain": 0.0, "validation_gain_error": 0.0}
    assert verdict(view).sentence == "On the validation set, no candidate was better than no weighting."


def test_every_method_says_what_it_is_told():
    assert told("oracle") == "Which labels are wrong."
    assert told("uniform") == "Nothing."
    assert told("somebody's own") == ""


def test_logs_besides_the_file(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setitem(LOGS, "mine", lambda folder: lambda line: heard.append(numbers(line)))
    run(["train", "digits-noise", *SHORT, "--log", "mine", "--no-report", "--out", str(tmp_path / "run")])
    assert not (tmp_path / "run" / "report.html").exists()
    assert len(heard) == 5  # four stages and the end
    assert {"uniform-0/val_score", "uniform-0/weights/groups/wrong/loss"} <= heard[0].keys()
    with pytest.raises(aw.UserError, match="mean 'tensorboard'"):
        run(["train", "digits-noise", "--log", "tensorbord", "--out", str(tmp_path / "other")])
    assert not (tmp_path / "other").exists()


def test_tensorboard_reads_what_was_logged(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    LOGS["tensorboard"](tmp_path)({"event": "stage", "method": "auto", "seed": 1, "stage": 3, "val_score": 0.5})
    found = events.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    (scalar,) = found.Scalars("auto-1/val_score")
    assert (scalar.step, scalar.value) == (3, 0.5)


def test_a_page_leaves_out_what_never_came_up(tmp_path):
    columns = {
        "index": np.arange(5, dtype=np.uint32),
        "label": np.array([0, 1, 0, 1, 1], dtype=np.uint8),
        "predicted": np.array([0, 0, 0, 1, 1], dtype=np.uint8),
        "margin": np.array([0.9, -0.8, 0.9, 0.9, nan], dtype=np.float32),
        "wrong": np.array([False, True, False, False, True]),
        "remembered": np.array(True),
        "num_classes": np.array(2),
    }
    write_columns(samples_file(tmp_path, "auto", 0), columns)
    view = audit_view(SimpleNamespace(path=tmp_path))
    assert (view.num_issues, view.num_seen, view.true_rate, view.found) == (1, 4, 0.25, (1, 1))
    assert [row["index"] for row in view.worst] == [1]  # the others do not look wrong
    assert view.classes == [{"name": 1, "count": 2, "suspects": 1, "likely": 0}]
