import io
import re
from pathlib import Path

import pytest
import torch
from rich.console import Console

import autoweight as aw
from autoweight import Rule
from autoweight.report import progress
from autoweight.report.strategies import strategy_figures
from autoweight.report.tables import comparison_table, standard_error
from autoweight.report.words import describe, idea
from autoweight.runs.reading import RunView
from autoweight.runs.result import recovered_fractions


def shown(renderable):
    console = Console(width=100, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


RESULT = {
    "recipe": "digits-noise",
    "seeds": [0, 1],
    "methods": {
        "uniform": {"test_accuracy": [0.70, 0.74], "train_seconds": [1.0, 2.0]},
        "law": {"test_accuracy": [0.92, 0.94], "train_seconds": [1.0, 1.0]},
        "oracle": {"test_accuracy": [0.96, 0.98], "train_seconds": [1.0, 1.0]},
    },
}

SCORES = {name: values["test_accuracy"] for name, values in RESULT["methods"].items()}


def table_of(result):
    return comparison_table(RunView(Path(), None, [], result, True, None))


def test_recovered_fractions_by_hand():
    assert recovered_fractions(SCORES) == pytest.approx({"uniform": 0.0, "law": 0.84, "oracle": 1.0})
    assert recovered_fractions({"uniform": SCORES["uniform"]}) == {}
    assert recovered_fractions(dict.fromkeys(("uniform", "oracle"), SCORES["law"])) == {}
    assert recovered_fractions(SCORES | {"oracle": [0.1, 0.1]}) == {}  # there is no gap to close


def test_table_has_means_standard_errors_and_gaps():
    text = shown(table_of({**RESULT, "recovered": recovered_fractions(SCORES)}))
    (law,) = [line for line in text.splitlines() if "law" in line]
    assert all(part in law for part in ("93.00", "1.00", "0.84"))
    assert standard_error([0.70, 0.74]) == pytest.approx(0.02)


def test_what_is_closed_of_a_gap_that_may_be_chance_is_a_dash():
    methods = {name: dict(values) for name, values in RESULT["methods"].items()}
    methods["oracle"]["test_accuracy"] = [0.69, 0.76]
    scores = {name: values["test_accuracy"] for name, values in methods.items()}
    assert recovered_fractions(scores)["law"] > 10
    text = shown(table_of({**RESULT, "methods": methods, "recovered": recovered_fractions(scores)}))
    (law,) = [line for line in text.splitlines() if "law" in line]
    assert " - " in law
    assert "The oracle's lead over no weighting could be chance" in " ".join(text.split())


def test_table_of_one_seed_without_an_oracle():
    methods = {"focal": {"test_accuracy": [0.5], "train_seconds": [1.0]}}
    text = shown(table_of({"recipe": "x", "seeds": [0], "methods": methods, "recovered": {}}))
    assert "50.00" in text
    assert "recovered" not in text


def test_words_say_who_counts_less_and_from_when():
    table = torch.tensor([[0.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [-2.0, 1.0, 0.0], [-2.0, 0.0, -1.0]])
    sentences = describe(aw.Strategy(table, warmup_stages=1))
    assert sentences[0] == "Until 25 % of the training, all samples count the same."
    assert "samples whose loss is above average count less (weight 1.96 below, 1.00 at, 0.04 above" in sentences[1]
    assert "samples that the network is unsure of count more" in sentences[2]
    assert len(sentences) == 4
    assert describe(aw.Strategy(table, warmup_stages=4))[0].startswith("All samples count the same")
    nothing = torch.tensor([[0.0, 0.0, -4.0]])
    assert describe(aw.Strategy(nothing, Rule(normalised=True)))[0].startswith("All samples count the same")
    assert "hardly any sample counts" in describe(aw.Strategy(nothing))[0]
    table[3] = torch.tensor([-1.0, -1.0, -4.0])
    assert "At 75 %: hardly any sample counts" in describe(aw.Strategy(table))[2]
    assert "hardly any" not in describe(aw.Strategy(table, Rule(normalised=True)))[2]


def test_words_know_which_label_feature_it_is():
    for kind, who in (("log_frequency", "samples of frequent classes"), ("raw", "samples of the last classes")):
        assert who in describe(aw.Strategy(torch.tensor([[1.0, 0.0]]), Rule(("label",), label_feature=kind)))[0]


def test_words_on_a_rival_are_those_of_its_card():
    assert describe(aw.Focal()) == ["Easy samples count less."]
    assert describe(aw.ClassBalanced([3, 4])) == ["Samples of rare classes count more."]

    class Mine(aw.Uniform):
        """Weighs as it likes."""

    assert describe(Mine())  # of a module whose docstring is no card


def test_words_on_a_memory():
    rule = Rule(("margin", "history"))
    (sentence,) = describe(aw.Strategy(torch.tensor([[2.0, -1.0, 0.0, 0.5]]), rule))
    assert (
        "samples whose label the network has come to believe in count more (weight 0.24 at a margin of -0.5" in sentence
    )
    assert "samples whose loss has long been above average count less" in sentence


def test_words_look_at_features_on_their_own_scales():
    (belief,) = describe(aw.Strategy(torch.tensor([[0.1, 0.0, 0.0]]), Rule(("belief",))))
    assert "(weight 0.54 at log-odds of -5, 1.00 at 0, 1.46 at 5)" in belief  # 1 + tanh(0.5) = 1.46
    for scale, whose in {"class": "its class's", "set": "the whole set's"}.items():
        (history,) = describe(aw.Strategy(torch.tensor([[-1.0, 0.0, 0.0]]), Rule(("history",), history_scale=scale)))
        assert f"0.24 above {whose} average)" in history
    batch = Rule(("margin", "history"), margin_scale="batch", history_scale="batch")
    said = describe(aw.Strategy(torch.tensor([[1.0, 1.0, 0.0, 0.0]]), batch))[0]
    assert "at a margin" not in said  # normalised over the batch, one deviation is one deviation
    assert said.count("above average)") == 2


def test_captions_name_the_scales_of_features():
    table = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.1, -1.0, 0.0, 0.0]])
    figures = strategy_figures(aw.Strategy(table, Rule(("belief", "history")), warmup_stages=1))
    said = " ".join(figure.look_for for figure in figures)
    assert "samples above average" not in said
    assert "The other features are held: history at its class's average." in said
    assert "The other features are held: belief at log-odds of 0." in said
    assert "deviations from its class&#x27;s mean" in figures[3].svg
    (_, alone, _) = strategy_figures(aw.Strategy(table[:, :2], Rule(("loss",))))
    assert "other features" not in alone.look_for + alone.svg


def test_the_rate_of_a_memory_is_not_told_to_be_a_feature():
    remembering = aw.Strategy(torch.tensor([[0.1, 0.0, 0.5]]), Rule(("margin",)))
    assert "Memory is no feature" in strategy_figures(remembering)[0].look_for
    plain = aw.Strategy(torch.tensor([[0.1, 0.0]]), Rule(("loss",)))
    assert "Memory" not in strategy_figures(plain)[0].look_for


def test_the_idea_of_auto_in_short_is_plain():
    (whole,), (short,) = idea(aw.load("auto")), idea(aw.load("auto"), short=True)
    assert len(short) < len(whole) / 3
    assert not {"`", ".py"} & set(re.findall(r"`|\.py", short))
    assert short.endswith(".")
    assert idea(aw.Focal())


def test_words_do_not_repeat_what_stays_the_same():
    table = torch.tensor([[0.0, 0.0, 0.0], *[[-2.0, 0.0, 0.0]] * 3])
    after, since = describe(aw.Strategy(table, warmup_stages=1))
    assert after.startswith("Until 25 %")
    assert since.startswith("From then on: samples whose loss is above average count less")
    assert [sentence[:10] for sentence in describe(aw.Strategy(table[1:]))] == ["All along:"]


def test_without_a_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    with progress.ProgressBar() as bar:
        bar.update(1, 4, "training")
        bar.update(2, 4, "training")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "1/4 training"
    assert second.startswith("2/4 training, about ")
