"""What the page says must be true of the run at hand: its captions, its verdict and its sums."""

import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from autoweight.cli.run import run
from autoweight.report.page import _facts
from autoweight.report.searches import noise_sentence
from autoweight.report.tables import comparison_table
from autoweight.report.tested import samples_tested
from autoweight.report.verdict import verdict
from autoweight.runs.reading import RunView, read_run
from autoweight.runs.result import recovered_fractions

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
    assert verdict(view)[-1].startswith("Scores are on the training samples")
    assert "last-epoch training accuracy" in comparison_table(view.result, samples_tested(view)).title
    view, text = read_run(audits / "tested"), (audits / "tested" / "report.html").read_text()
    assert samples_tested(view) == "test"
    assert "Last epoch on the test set" in text
    assert "training samples" not in " ".join(verdict(view))


def test_commands_quote_and_words_wrap(audits):
    text = (audits / "plain" / "report.html").read_text()
    assert f"<code>autoweight audit {shlex.quote(str(audits / 'plain'))}</code>" in unescape(text)
    assert '<th scope="col">given_label</th>' in text
    assert '<td class="words">the left side</td>' in text
    assert '<th scope="col" class="number">label_score</th>' in text


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
    uniform, auto = [0.70, 0.71, 0.72], [0.74, 0.75, 0.76]
    sure = verdict(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.81, 0.825]))
    assert sure[-1] == "auto closes 39 % of the gap between no weighting and the oracle."
    unsure = verdict(compared(uniform=uniform, auto=auto, oracle=[0.80, 0.61, 0.78]))
    assert unsure[-1] == "The oracle's lead over no weighting could be chance: what auto closes of it cannot be told."


def test_early_stop_has_no_seconds_of_its_own():
    view = compared(uniform=[0.7, 0.7], early_stop=[0.8, 0.8], auto=[0.8, 0.8])
    assert _facts(view) == [("seconds of training", "8.0")]
