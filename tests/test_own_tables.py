"""Tables as people write them: blank lines, an index, numbers that are none, labels that look like something else."""

import re
from contextlib import nullcontext

import numpy as np
import pytest

from autoweight.data.own import load_own
from autoweight.errors import UserError

from .test_own_data import write_csv
from .test_own_parts import own


@pytest.mark.parametrize(
    "text",
    [
        "\n  \na,label\n1,x\n2,y\n",
        "a,label\n1,x\n\n2,y\n   \n",
        '"a, in euros, net";label\n1;x\n2;y\n',
    ],
    ids=["blank lines first", "blank lines last", "separators in quotes"],
)
def test_what_a_csv_may_look_like(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    data = load_own(own(tmp_path / "a.csv", test=str(tmp_path / "a.csv")))
    assert data.train.inputs.tolist() == [[-1], [1]]
    assert data.train.names.tolist()[0] == f"a.csv:{text[: text.index('1')].count(chr(10)) + 1}"


def test_an_index_without_a_name_is_neither_a_mark_nor_an_input(tmp_path):
    rows = [[place * 7 % 30, place / 3, place % 2] for place in range(30)]
    path = write_csv(tmp_path / "a.csv", ["", "n", "label"], rows)
    with pytest.warns(UserWarning, match="column '' is an index without a name, so it is left out"):
        data = load_own(own(path))
    assert data.trusted is None
    assert data.train.input_shape == (1,)
    data = load_own(own(write_csv(path, ["", "n", "label"], [[row[0] % 3, *row[1:]] for row in rows])))
    assert data.trusted is None
    assert data.train.input_shape == (2,)  # what does not differ in all rows is no index


ODD_NUMBERS = {
    "a word": (lambda place: "unknown" if place == 5 else place / 3, "not in 1 rows, such as 'unknown' (a.csv:7): th"),
    "thousands": (lambda place: f"{place * 999:,}", "numbers written otherwise, such as '1,998' (a.csv:4)"),
    "percent": (lambda place: f"{place / 3:.1f} %", "numbers written otherwise, such as '0.0 %' (a.csv:2)"),
    "decimal commas": (lambda place: f"{place // 2},5", "numbers written otherwise, such as '0,5' (a.csv:2)"),
}


@pytest.mark.parametrize("name", ODD_NUMBERS)
@pytest.mark.filterwarnings("ignore:.*differs in most rows")
def test_numbers_that_are_not_read_are_named(tmp_path, name):
    cell, message = ODD_NUMBERS[name]
    rows = [[cell(place), place**2 % 7, place % 2] for place in range(40)]
    with pytest.warns(UserWarning, match=r"column 'n' " + ".*" + re.escape(message)):
        data = load_own(own(write_csv(tmp_path / "a.csv", ["n", "m", "label"], rows), test=str(tmp_path / "a.csv")))
    assert name != "a word" or data.train.inputs[5].tolist()[:2] == data.test.inputs[5].tolist()[:2] == [0, 1]


def test_a_word_among_the_numbers_of_another_part_is_named(tmp_path):
    train, test = ([[place / 3, place % 2] for place in range(30)] for _ in range(2))
    test[3][0] = "unknown"
    paths = [write_csv(tmp_path / f"{name}.csv", ["n", "label"], rows) for name, rows in (("a", train), ("b", test))]
    with pytest.warns(UserWarning, match="column 'n' holds numbers, but not in 1 rows, such as 'unknown': there it"):
        assert load_own(own(paths[0], test=str(paths[1]))).test.inputs[3] == 0


def test_a_record_of_several_lines_is_called_by_its_first(tmp_path):
    (tmp_path / "a.csv").write_text('n,text,label\n1,"one\n\ntwo",x\n\n2,"three\nfour",y\n')
    data = load_own(own(tmp_path / "a.csv", test=str(tmp_path / "a.csv")))
    assert data.train.names.tolist() == ["a.csv:2", "a.csv:6"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e307, 1e-310])
def test_numbers_near_the_ends_of_what_there_is_are_standardised(tmp_path, unit):
    of_one, other = ([[place**2 % 7 * size, place % 2] for place in range(30)] for size in (1, unit))
    test = write_csv(tmp_path / "b.csv", ["n", "label"], [[1e300, 0], [-1, 1]])
    plain = load_own(own(write_csv(tmp_path / "a.csv", ["n", "label"], of_one), test=str(test)))
    data = load_own(own(write_csv(tmp_path / "a.csv", ["n", "label"], other), test=str(test)))
    np.testing.assert_allclose(data.train.inputs, plain.train.inputs, rtol=1e-5)
    assert data.test.inputs.isfinite().all()


def test_two_columns_of_a_name_are_refused_in_parquet_too(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array([1.0, 2.0]), arrow.array([1.0, 2.0]), arrow.array(["x", "y"])]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["a", "a", "label"]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet has two columns called 'a': rename one"):
        load_own(own(tmp_path / "a.parquet"))


@pytest.mark.parametrize("missing", [False, True])
def test_large_whole_numbers_of_parquet_stay_apart(tmp_path, missing):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = [2**60 + place % 2 for place in range(20)] + [None] * missing
    columns = {"id": [2**61 + place * 7919 % 23 * 2**50 + 1 for place in range(len(labels))], "label": labels}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="1 samples have no label") if missing else nullcontext():
        data = load_own(own(tmp_path / "a.parquet"))
    assert data.train.class_names == (str(2**60), str(2**60 + 1))
    assert data.train.class_counts.tolist() == [8, 8]


def test_classes_may_be_called_as_what_is_missing(tmp_path):
    names = ["none", "NA", "-", "?", "null"]
    rows = [[place / 3, names[place % 5]] for place in range(50)]
    with pytest.warns(UserWarning, match="'-' is taken for a class: if it means that a label is missing, empty"):
        data = load_own(own(write_csv(tmp_path / "a.csv", ["n", "label"], rows)))
    assert set(data.train.class_names) == set(names)
    np.savez(tmp_path / "a.npz", x=np.arange(40.0).reshape(20, 2), y=np.array(names[:2] * 10))
    with pytest.warns(UserWarning, match="'NA' is taken for a class"):
        assert load_own(own(tmp_path / "a.npz")).train.class_names == ("NA", "none")
    numbers = [[place / 3, place * 0.7] for place in range(20)] + [[1, "NA"]]
    with pytest.warns(UserWarning, match="1 samples have no label"):  # a number cannot be called so
        load_own(own(write_csv(tmp_path / "b.csv", ["n", "label"], numbers)), "regression")


def test_labels_that_are_equal_as_numbers_are_one_class(tmp_path):
    rows = [[place / 3, ("0", "1", "1.0")[place % 3]] for place in range(30)]
    path = write_csv(tmp_path / "a.csv", ["n", "label"], rows)
    test = write_csv(tmp_path / "b.csv", ["n", "label"], [[3, "0.0"], [4, "1.00"]])
    data = load_own(own(path, test=str(test)))
    assert data.train.class_names == ("0", "1")
    assert data.train.class_counts.tolist() == [10, 20]
    assert data.test.labels.tolist() == [0, 1]
    rows = [[place / 3, ("01", "1", "1_0", "x")[place % 4]] for place in range(30)]
    data = load_own(own(write_csv(path, ["n", "label"], rows)))
    assert data.train.class_names == ("01", "1", "1_0", "x")  # not all are numbers
