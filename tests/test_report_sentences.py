"""What the page says must be true of the run at hand: its captions, its verdict and its sums."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from html import unescape
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import autoweight as aw
from autoweight.audit.find import issues_of
from autoweight.cli.run import run
from autoweight.config import DataConfig
from autoweight.recipes import get_recipe
from autoweight.report.audits import _classes, audit_view
from autoweight.report.curves import training_curves
from autoweight.report.gains import Gain, gain_over, gap_is_unsure
from autoweight.report.page import _facts, _rows, _scores, write_report
from autoweight.report.searches import noise_sentence
from autoweight.report.tables import comparison_table
from autoweight.report.verdict import _sentence, on_test_labels, verdict
from autoweight.report.weights import method_figures, weight_figures
from autoweight.runs.audit import Audit
from autoweight.runs.reading import RunView, read_run
from autoweight.runs.result import recovered_fractions
from autoweight.runs.samples import samples_file, write_columns
from autoweight.runs.tested import samples_tested

from .pages import SHORT

pytestmark = pytest.mark.filterwarnings("ignore:nothing is split off")


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """Audits of own data without and with a part to test on."""
    folder = tmp_path_factory.mktemp("own runs")
    draw = np.random.default_rng(0)
    y = np.arange(80) % 2
    x = (draw.normal(size=(80, 3)) + 3 * y[:, None]).astype(np.float32)
    names = np.array(["the left side", "the right side"])[y]
    parts = {"plain": {}, "tested": {"test_x": x[:20], "test_y": names[:20]}}
    for name, more in parts.items():
        np.savez(folder / f"{name}.npz", x=x, y=names, **more)
        run(["audit", str(folder / f"{name}.npz"), *SHORT, "--out", str(folder / name)])
    return folder


def test_scores_on_training_samples_are_called_so(audits):
    view, text = read_run(audits / "plain"), (audits / "plain" / "report.html").read_text()
    assert samples_tested(view) == "training"
    assert "Last epoch on the training samples, since nothing was split off to test on, 1 seed" in text
    assert verdict(view).sentence.endswith("% of the given labels, wrong ones among them.")
    assert '<th scope="col" class="number">agreement with the given labels %</th>' in text
    assert verdict(view).notes[-1].startswith("Scores are on the training samples")
    assert "last-epoch training agreement with the given labels" in comparison_table(view).title
    view, text = read_run(audits / "tested"), (audits / "tested" / "report.html").read_text()
    assert samples_tested(view) == "test"
    assert "Last epoch on the test set" in text
    assert "training samples" not in " ".join([verdict(view).sentence, *verdict(view).notes])


def test_commands_quote_and_words_wrap(audits):
    text = (audits / "plain" / "report.html").read_text()
    assert '<a href="label_issues.csv">label_issues.csv</a> has all of them.' in text  # it lies beside the page
    elsewhere = write_report([audits / "plain"], audits / "elsewhere.html").read_text()
    assert f"<code>autoweight audit {shlex.quote(str(audits / 'plain'))}</code>" in unescape(elsewhere)
    assert '<th scope="col">given_label</th>' in text
    assert '<td class="words">the left side</td>' in text
    assert re.search(r'Scroll the table[^\n]*\n *<div class="wide"[^>]*aria-label="The worst labels"', text)
    assert '<th scope="col" class="number">label_score</th>' in text


def test_wrong_labels_of_a_test_part_that_was_split_off_are_spoken_of():
    view = compared(uniform=[0.7], auto=[0.8])
    view.config = replace(get_recipe("digits-noise"), data=DataConfig(dataset="own"))
    assert "If as many of the test labels are, scores stay below about 75 %" in on_test_labels(view, 0.25)
    assert on_test_labels(view, 0.01) == ""
    for more in ({"test": "checked.csv"}, {"noise": "uniform", "noise_rate": 0.4}):
        view.config = replace(view.config, data=DataConfig(dataset="own", **more))
        assert on_test_labels(view, 0.25) == ""


def test_luck_is_told_by_candidates_of_the_last_choice_that_weigh():
    def line(doing, total, returns):
        return {"event": "search", "doing": doing, "total": total, "returns": returns}

    former = [line("choosing", 8, [0.5, 0.0]), line("choosing", 8, [0.1, 0.0])]
    last = [line("choosing", 10, [0.02, 0.0]), line("choosing", 10, [0.04, 0.0])]
    tried = line("searching", 10, [0.1, 0.3])
    view = RunView(Path(), None, [*former, tried, *last], {}, True, None)
    assert "differs by 1.4 points" in noise_sentence(view)  # 0.02 / sqrt(2)
    view.lines.pop()
    assert "cannot be told: no record of a candidate that was trained twice" in noise_sentence(view)


def compared(**scores):
    """A finished comparison with these scores, and two seconds for every training."""
    methods = {name: {"test_accuracy": own, "train_seconds": [2.0] * len(own)} for name, own in scores.items()}
    seeds = list(range(len(scores["uniform"])))
    found = {"seeds": seeds, "methods": methods, "recovered": recovered_fractions(scores)}
    return RunView(Path(), None, [], found, True, None)


def test_a_gap_that_may_be_chance_is_not_said_to_be_closed():
    uniform, auto = [0.70, 0.71, 0.72], [0.74, 0.75, 0.765]
    sure = verdict(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.81, 0.825]))
    assert sure.notes[0] == "auto closes 41 % of the gap between no weighting and the oracle."
    luck = verdict(compared(uniform=uniform, auto=[0.70, 0.71, 0.78], oracle=[0.80, 0.81, 0.825]))
    assert "it could be chance" in luck.sentence
    assert not any("closes" in note for note in luck.notes)
    unsure = verdict(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.61, 0.78]))
    assert not any("closes" in note for note in unsure.notes)
    assert any("So few seeds" in note for note in unsure.notes)
    assert gap_is_unsure(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.61, 0.78]))
    assert _rows(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.61, 0.78]))[1].recovered is None


def test_seeds_that_all_differ_by_the_same_tell_no_interval():
    view = compared(uniform=[0.8, 0.7], auto=[0.798, 0.698])
    assert verdict(view).sentence == (
        "auto is 0.2 points behind training without weights, the same on each of 2 seeds; that tells no interval, nor "
        "whether it is chance."
    )
    assert not _rows(view)[1].over_uniform.has_interval


def test_answers_that_are_all_alike_are_no_gain(tmp_path):
    view = compared(uniform=[0.8], auto=[0.8])
    view.path = tmp_path
    for name in ("uniform", "auto"):
        right = {"test_right": np.array([True, False, True]), "test_count": np.array(3)}
        write_columns(samples_file(tmp_path, name, 0), right)
    assert verdict(view).sentence == (
        "auto and training without weights are right on the very same of 3 test samples, one seed: another seed may "
        "differ."
    )
    assert not _rows(view)[1].over_uniform.has_interval
    several = verdict(compared(uniform=[0.8, 0.7], auto=[0.8, 0.7]))
    assert several[0].startswith("auto is level with training without weights, the same on each of 2 seeds")


def test_nothing_has_no_sign():
    gain = Gain(-1e-12, -0.01, 0.01, "9 test samples, one seed")
    assert "(95 % interval +0.0 to +0.0, over 9" in _sentence("auto", "uniform", gain)


def test_methods_of_a_killed_run_keep_their_seeds(tmp_path):
    def ended(method, seed, score):
        return {"event": "trained", "method": method, "seed": seed, "test_accuracy": score, "train_seconds": 1.0}

    lines = [ended("uniform", seed, 0.7 + 0.01 * seed) for seed in range(3)]
    lines += [ended("auto", seed, 0.8) for seed in (1, 2)] + [ended("oracle", 2, 0.92), ended("focal", 5, 0.5)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = read_run(tmp_path)
    assert view.scores("uniform") == {0: 0.7, 1: 0.71, 2: 0.72}
    gain = gain_over(view, "auto", "uniform")
    assert (gain.mean, gain.over) == (pytest.approx(8.5), "2 seeds")  # 9 and 8, by seed
    assert gain_over(view, "focal", "uniform") is None
    assert view.result["recovered"]["auto"] == pytest.approx(0.4)  # on seed 2, which all three have
    text = write_report([tmp_path]).read_text()
    assert '<th scope="row">auto <small>2 seeds</small>' in text
    assert "4 seeds. Gains" in text


def test_the_page_of_an_audit_begins_with_what_was_found(audits):
    text = (audits / "tested" / "report.html").read_text()
    found = audit_view(read_run(audits / "tested"))
    assert found.sentence == f"{found.num_issues} of 80 labels look wrong; about {100 * found.noise_rate:.1f} % are."
    begin = text.index('class="verdict"')
    assert "The list misleads: each sample was seen 4.0 times" in text[begin : text.index("auto reaches")]  # SHORT
    assert text.index("Labels that look wrong</h2>") < text.index("Methods</h2>")
    assert "The search</h2>" not in text  # there is none, and an audit's page does not say so
    assert found.sentence in text[begin : text.index("auto reaches")]


def test_a_page_says_where_its_run_is_from_anywhere(audits, monkeypatch):
    monkeypatch.chdir(audits)
    text = unescape(write_report([Path("plain")], audits / "elsewhere.html").read_text())
    assert f"--config {shlex.quote(str(audits / 'plain' / 'config.yaml'))}</code>" in text
    assert f'<p class="path">{audits / "plain"}</p>' in text


def test_charts_of_one_line_say_whose_it_is(audits):
    text = (audits / "plain" / "report.html").read_text()
    figure = text[text.index("<h3>Training loss</h3>") :]
    assert "</svg>auto</button>" in figure[: figure.index("</figure>")]


def test_trainings_of_a_search_are_not_called_episodes():
    view = RunView(Path(), None, [], {"methods": {}, "search": {"episodes": 25}}, True, None)
    assert _facts(view) == [("search, trainings of weighted networks", "25")]
    view.result["search"] = {"validation_gain": 0.0123}
    assert _facts(view) == [("search, validation gain", "1.23 points")]


def test_what_is_mistaken_most_is_told_of_many_classes():
    classes, samples = 400, np.arange(400 * 30)
    given, predicted = samples // 30, samples % 30  # 12,000 pairs, each once
    columns = {"index": samples}
    found = issues_of(np.full(len(samples), -0.5), predicted, given, num_classes=classes)
    assert all(row["likely"] != "" for row in _classes(Audit("auto", 0, found, columns)))


EMPTY, ROTTEN = "metrics.jsonl is empty: there are no curves.", "Not one line of metrics.jsonl can be read"


@pytest.mark.parametrize(
    ("damage", "said", "unsaid"),
    [
        ({"metrics.jsonl": b""}, [EMPTY], ["nothing was trained", "no result.json"]),
        ({"metrics.jsonl": b"x\n" * 9}, [ROTTEN], ["is empty", "nothing was trained", "no result.json"]),
        ({"metrics.jsonl": None}, ["There is no metrics.jsonl: there are no curves."], ["nothing was trained"]),
        ({"result.json": b"{"}, ["result.json is damaged: remove it"], ["no result.json", "goes on"]),
        ({"result.json": b"{", "metrics.jsonl": b"x"}, [ROTTEN, "No record of a training that has ended"], ["tells"]),
        ({"samples/auto-0.npz": b"PK"}, ["samples/auto-0.npz is damaged", "No record of a training that rem"], []),
    ],
)
def test_a_page_of_damaged_files_does_not_contradict_itself(audits, tmp_path, damage, said, unsaid):
    folder = shutil.copytree(audits / "tested", tmp_path / "run")
    for name, content in damage.items():
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    text = unescape(write_report([folder]).read_text())
    assert all(sentence in text for sentence in said)
    assert not any(sentence in text for sentence in unsaid)


def test_early_stop_has_no_seconds_of_its_own():
    view = compared(uniform=[0.7, 0.7], early_stop=[0.8, 0.8], auto=[0.8, 0.8])
    assert _facts(view) == [("seconds of training", "8.0")]


def test_classes_are_called_by_their_names(audits):
    text = (audits / "plain" / "report.html").read_text()
    assert "Mean weight by class, auto" in text
    assert "</svg>the left side</button>" in text
    assert "class 0" not in text


def stage(method, number, wrong_loss, seed=0):
    """A stage's line, with the loss of wrong labels."""
    groups = {"right": {"loss": 1.0, "weight": 1.0}, "wrong": {"loss": wrong_loss, "weight": 1.0}}
    own = {"event": "stage", "method": method, "seed": seed, "stage": number}
    return own | {"val_score": 0.5, "train_loss": 1.0, "weights": {"groups": groups}}


def captions(view):
    """All that the curves say, in one."""
    figures = [*training_curves(view), *weight_figures(view), *chain(*method_figures(view).values())]
    return " ".join(figure.look_for for figure in figures)


def test_captions_speak_of_seeds_where_there_are_several():
    one, two = compared(uniform=[0.7], auto=[0.8]), compared(uniform=[0.7, 0.7], auto=[0.8, 0.9])
    assert "Whiskers" not in _scores(_rows(one), "test accuracy").look_for
    assert "over the seeds, of each method alone" in _scores(_rows(two), "test accuracy").look_for
    one.lines += [stage("auto", 0, 1.0)]
    two.lines += [stage("auto", 0, 1.0), stage("auto", 0, 1.0, seed=1)]
    assert "Shaded bands" not in captions(one)
    assert "Shaded bands" in captions(two)


def test_one_seed_has_the_error_of_its_test_samples(tmp_path):
    view = compared(uniform=[0.75], auto=[0.5])
    view.path = tmp_path
    for name, right in (("uniform", [True, True, True, False]), ("auto", [True, True, False, False])):
        write_columns(samples_file(tmp_path, name, 0), {"test_right": np.array(right), "test_count": np.array(4)})
    rows = _rows(view)
    assert [row.error for row in rows] == pytest.approx([100 * (0.75 * 0.25 / 4) ** 0.5, 25])
    figure = _scores(rows, "test accuracy")
    assert figure.svg.count('class="line"') == 2
    assert "over the samples of one seed" in figure.look_for


def test_a_method_is_drawn_alike_on_all_charts():
    view = compared(uniform=[0.7], focal=[0.7], auto=[0.8])
    view.lines += [stage("uniform", 0, 3.0), stage("auto", 0, 1.0)]
    row_styles = {row.name: row.style for row in _rows(view)}
    assert row_styles == {"uniform": 0, "focal": 1, "auto": 2}
    gap = next(one for one in weight_figures(view) if one.title.startswith("Loss gap"))
    (loss,) = [one for one in training_curves(view) if one.title == "Training loss"]
    assert {key.name: key.style for key in gap.legend} == {"auto": "s2 d2"}
    assert {key.name: key.style for key in loss.legend} == {"uniform": "s0 d0", "auto": "s2 d2"}


def rates(schedule, *values):
    """What the chart of these learning rates says."""
    config = get_recipe("digits-noise")
    config = replace(config, training=replace(config.training, schedule=schedule))
    lines = [stage("auto", k, 1.0) | {"learning_rate": value} for k, value in enumerate(values)]
    (figure,) = [
        one for one in training_curves(RunView(Path(), config, lines, {}, True, None)) if one.title == "Learning rate"
    ]
    return figure.look_for


def test_the_learning_rate_is_told_by_its_schedule():
    assert "Each drop" in rates("stages", 0.1, 0.01)
    assert "drop" not in rates("cosine", 0.1, 0.05, 0.0)
    assert "stays the same" in rates("constant", 0.1, 0.1)


def test_the_weights_of_every_method_can_be_looked_at():
    view = compared(uniform=[0.7], focal=[0.7], auto=[0.8])
    view.lines += [stage(name, 0, 1.0) for name in ("uniform", "focal", "auto")]
    found = method_figures(view)
    assert list(found) == ["auto", "focal"]
    assert all(figure.title.endswith(name) for name, figures in found.items() for figure in figures)


def test_of_many_classes_those_that_lie_apart_are_drawn():
    view = compared(uniform=[0.7], auto=[0.8])
    line = stage("auto", 0, 1.0)
    line["weights"]["by_class"] = [1.0, 1.005] * 20
    view.lines.append(line)
    figure = method_figures(view)["auto"][-1]
    assert [key.name for key in figure.legend] == ["median of 40 classes"]
    assert "none ends far from the others" in figure.look_for
    line["weights"]["by_class"][7] = 0.2
    assert [key.name for key in method_figures(view)["auto"][-1].legend] == ["median of 40 classes", "class 7"]


def test_captions_speak_of_what_was_seen():
    said = "the wrong labels' loss falls too, and that is memorising"
    view = compared(uniform=[0.7], auto=[0.8])
    view.lines += [stage("uniform", 0, 3.0), stage("uniform", 1, 4.0), stage("auto", 0, 1.0)]
    assert said not in captions(view)
    view.lines.append(stage("uniform", 2, 1.0))
    assert said in captions(view)
    numbers = RunView(Path(), None, [stage("auto", 0, 1.0)], {"score": "test_r2"}, True, None)
    assert "wrong labels" not in " ".join(figure.look_for for figure in training_curves(numbers))
    assert "memorise outliers" in captions(numbers)


@pytest.mark.parametrize(
    ("out", "page"),
    [("old", "old/report.html"), ("new/er", "new/er/report.html"), ("new/one.html", "new/one.html")],
)
def test_a_page_goes_to_a_folder_as_all_else_does_or_to_a_file(out, page, audits, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    run(["report", str(audits / "plain"), "--out", out])
    assert f"report: {page}" in capsys.readouterr().out
    assert "</h1>" in (tmp_path / page).read_text()


def test_a_page_that_has_no_place_is_one_sentence(audits, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(aw.UserError, match="cannot use the output folder"):
        run(["report", str(audits / "plain"), "--out", str(tmp_path / "file" / "x")])
