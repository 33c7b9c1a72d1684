"""Charts and pictures of the page, as text."""

import base64
import io
import re

import numpy as np
import pytest

from autoweight.report.audits import png
from autoweight.report.svg import WIDTH, Series, dot_chart, heat_map, line_chart, nice_ticks

WIDEST = 8.5  # of a letter, on a phone


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
        assert all(x - WIDEST * len(text) >= 16 for x, text in places(svg, "end"))  # the name's letters reach 12 to 16
    scores = dot_chart([("uniform", 62.0, None), ("auto", 99.0, None)], x_name="accuracy, %")
    (end,) = [x + WIDEST * len(text) / 2 for x, text in places(scores, "middle") if text == "100"]
    assert end <= WIDTH
