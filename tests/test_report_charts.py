"""Charts and pictures of the page, as text."""

import base64
import io
import json
import re
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from autoweight.audit.find import issues_of
from autoweight.recipes import get_recipe
from autoweight.report.audits import png
from autoweight.report.confusion import confusion_figure, short_names
from autoweight.report.lines import WARMUP, Series, line_chart, line_figure
from autoweight.report.maps import Dot, dot_chart, heat_map
from autoweight.report.searches import loss_gap_figure, search_figures
from autoweight.report.strategies import warmup_shade
from autoweight.report.svg import WIDTH, nice_ticks
from autoweight.runs.reading import RunView

WIDEST = 10  # of a letter, on a phone


def attributes(svg, of, name):
    """The numbers of one attribute of all elements of a class."""
    return [float(value) for value in re.findall(rf'class="{of}"[^>]* {name}="([0-9.]+)"', svg)]


def places(svg, anchor):
    """Where labels end and what they are, of those that are written so."""
    found = re.findall(rf'<text x="([0-9.]+)" y="[0-9.]+" text-anchor="{anchor}">([^<]*)</text>', svg)
    return [(float(x), text) for x, text in found]


def test_ticks_are_round_and_charts_take_anything():
    assert nice_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert nice_ticks(-3.2, 7.9) == [-5, 0, 5, 10]
    assert len(nice_ticks(5, 5)) > 1
    for values in ([], [None], [float("nan")], [float("inf"), 1.0], [3.0]):
        xs = [float(k) for k in range(len(values))]
        assert line_chart(xs, [Series("a'<b", values)], x_name="x", y_name="y").startswith("<svg")


def test_pictures_are_png():
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
    content = base64.b64decode(png(pixels).partition(",")[2])
    assert (np.asarray(image.open(io.BytesIO(content))) == pixels).all()


def test_labels_lie_neither_on_the_axis_name_nor_outside():
    small = line_chart([1.0, 2.0], [Series("a", [0.0, 0.0004])], x_name="x", y_name="y")
    cells = heat_map(["a"], ["hospital"], [[(0.0, "")]], x_name="x", y_name="y", alt="")
    for svg in (small, cells):
        assert all(x - WIDEST * len(text) >= 18 for x, text in places(svg, "end"))
    scores = dot_chart([Dot("uniform", 62.0, None), Dot("auto", 99.0, None)], x_name="accuracy, %")
    long = dot_chart([Dot("class_balanced", 62.0, None)], x_name="accuracy, %")
    assert all(x - WIDEST * len(text) >= 0 for x, text in places(long, "end"))
    (end,) = [x + WIDEST * len(text) / 2 for x, text in places(scores, "middle") if text == "100"]
    assert end <= WIDTH


def test_a_warm_up_of_one_stage_is_shaded():
    svg = line_chart([1.0, 2.0, 3.0], [Series("a", [0.0, 1.0, 2.0])], x_name="x", y_name="y", shade=warmup_shade(1))
    (width,) = attributes(svg, "shade", "width")
    assert width == pytest.approx((WIDTH - 56 - 22) / 4, abs=0.2)  # half a stage of two
    assert warmup_shade(0) is None


def test_a_warm_up_is_explained_below_the_chart_that_shades_it():
    shaded, plain = (
        line_figure("t", "Look.", [1.0, 2.0], [Series("a", [0.0, 1.0])], y_name="y", shade=shade)
        for shade in (warmup_shade(1), None)
    )
    assert shaded.look_for == f"Look. {WARMUP}"
    assert plain.look_for == "Look."


def test_the_last_stage_has_its_label():
    for count in (1, 2, 7, 20, 60, 101):
        svg = line_chart([k + 1.0 for k in range(count)], [Series("a", [0.0] * count)], x_name="x", y_name="y")
        labels = [(x, text) for x, text in places(svg, "middle") if text.isdigit()]
        assert labels[-1][1] == str(count)
        assert all(two - one > WIDEST * 3 for (one, _), (two, _) in pairwise(labels))


def test_steps_lie_on_a_logarithmic_axis_where_they_fall_far():
    def chart(values):
        return line_chart([1.0, 2.0, 3.0], [Series("a", values)], x_name="x", y_name="y", steps=True)

    far, near = chart([0.1, 0.1, 0.001]), chart([0.1, 0.1, 0.05])
    assert [text for _, text in places(far, "end")] == ["0.001", "0.01", "0.1"]
    assert "0.04" not in [text for _, text in places(far, "end")]
    assert "0.06" in [text for _, text in places(near, "end")]
    assert "V" in re.search('class="line" d="([^"]+)"', far)[1]
    assert next(text for _, text in places(chart([0.1, 0.001, 1e-9]), "end")) == "0.001"  # as cosine ends
    assert chart([0.1, 0.0, None]).startswith("<svg")  # nothing has a logarithm there


def test_maps_have_a_scale_and_counts_where_there_is_room():
    def svg(count):
        names, cells = [str(k) for k in range(count)], [[(0.5, "x")] * count] * count
        printed = [["12"] * count] * count
        scale = ("0 %", "9 %")
        return heat_map(names, names, cells, x_name="x", y_name="y", alt="", scale=scale, printed=printed)

    assert "9 %" in svg(3)
    assert svg(3).count('class="count"') == 9
    assert svg(3).count("<rect") == 9  # the scale is none of the cells
    assert 'class="count"' not in svg(30)


def test_dots_are_in_the_legend():
    (figure, _) = search_figures(RunView(Path(), None, [searching(0, 0.1), searching(1, 0.2)], {}, True, None))
    assert figure.legend[-1].name == "one training"
    assert figure.legend[-1].dots
    assert 'data-series="3"><path class="dots"' in figure.svg


def test_labels_of_a_map_do_not_lie_on_each_other():
    names = [f"class-{number:02}" for number in range(20)]
    svg = heat_map(names, names, [[(0.0, "x")] * 20] * 20, x_name="x", y_name="y", alt="")
    across = [x for x, text in places(svg, "middle") if text in names]
    assert len(across) > 2
    assert min(b - a for a, b in pairwise(across)) >= WIDEST * len(names[0])
    assert svg.count("<title>x</title>") == 400  # also where a cell is blank


def searching(episode, guess):
    return {"event": "search", "doing": "searching", "episode": episode, "stage": 0, "returns": [guess, 0.0]}


def test_the_best_of_a_long_search_is_not_lost_between_those_that_are_drawn():
    lines = [searching(number, 0.9 if number == 501 else 0.1) for number in range(1000)]
    (figure, _) = search_figures(RunView(Path(), None, lines, {}, True, None))
    chart = json.loads(unescape(re.search("data-chart='([^']+)'", figure.svg)[1]))
    best = chart["series"][1]
    assert best["name"] == "best guess so far"
    assert (best["y"][0], best["y"][-1]) == (10, 90)
    assert len(chart["x"]) <= 500
    assert chart["x"][-1] == 1000


def test_the_loss_gap_of_a_search_is_shaded_and_says_what_to_look_for():
    config = get_recipe("digits-noise")
    config = replace(config, search=replace(config.search, warmup_stages=1))
    lines = [searching(0, 0.1) | {"stage": stage, "loss_gap": 0.1} for stage in range(4)]
    figure = loss_gap_figure(RunView(Path(), config, lines, {}, True, None))
    assert attributes(figure.svg, "shade", "width")[0] > 10
    assert "look for lines above zero" in figure.look_for


def confused(names, pairs):
    """The matrix of an audit in which samples of some classes look like others."""
    count, columns = len(names), {"margin": [], "predicted": [], "given": []}
    for given in range(count):
        for margin, predicted in [(0.9, given)] * 3 + [(-0.9, pairs.get(given))] * (given in pairs):
            for column, value in zip(columns.values(), (margin, predicted, given), strict=True):
                column.append(value)
    own = [np.array(column) for column in columns.values()]
    return confusion_figure(issues_of(*own, num_classes=count, class_names=names))


def test_classes_are_told_apart_in_the_confusion_matrix():
    names = ["class_alpha_left", "class_alpha_right", "class_beta_left"]
    figure = confused(names, {0: 1})
    assert "given class_alpha_left, seems to be class_alpha_right: 1.0 samples, 25.0%" in figure.svg
    labels = [text for _, text in places(figure.svg, "end")]
    assert len(set(labels)) == 3
    assert max(map(len, labels)) <= 14
    assert labels != [name[:8] for name in names]
    assert "above" in figure.svg
    assert len(set(short_names([f"{'x' * 30}{number}{'y' * 30}" for number in range(20)]))) == 20


def test_of_many_classes_those_that_are_mistaken_most_are_shown():
    figure = confused([f"c{number}" for number in range(60)], {57: 3})
    assert figure.svg.count("<rect") == 20 * 20
    assert "given c57, seems to be c3: 1.0 samples" in figure.svg
    assert "numbers differ a little from the tables'" in figure.look_for  # which count what is below the threshold
    assert "Of 60 classes, these are the 20 that are mistaken most" in figure.look_for
