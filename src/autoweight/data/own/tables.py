"""Tables: CSV by Python's own reader, Parquet by pyarrow; every column as it is written."""

import csv
import math
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.config import DataConfig
from autoweight.data.own.rows import MISSING, Content, Parts, Rows
from autoweight.data.own.targets import SEPARATOR
from autoweight.errors import UserError, require, unknown

LABEL_NAMES = ("label", "target", "class")
_TRUE = {"1", "1.0", "true", "yes", "y", "x", "t"}
_LARGEST_FIELD = 2**24


class Table(NamedTuple):
    """Columns by name, and what each row is called."""

    columns: dict[str, NDArray[Any]]
    names: NDArray[np.str_]


def read_table(path: Path, config: DataConfig) -> Parts:
    """The rows of a table: all columns but the label's and the trusted marks'."""
    table = load_table(path)
    label = label_column(table, path, config)
    marks = trusted_column(table, label, config)
    columns = {name: column for name, column in table.columns.items() if name not in (label, marks)}
    return rows_of(table, columns, label, marks)


def rows_of(table: Table, content: Content, label: str, marks: str | None) -> Parts:
    """The rows of a table with this content, labelled by a column and, where there is one, marked by another."""
    marked = None if marks is None else marks_of(table.columns[marks])
    return Parts(Rows.of(content, label_words(table.columns[label]), table.names, marked))


def load_table(path: Path) -> Table:
    """A table from a file."""
    table = TABLES[path.suffix.lower()](path)
    require(len(table.names) > 0, f"{path} holds no rows under its header.")
    return table


def label_column(table: Table, path: Path, config: DataConfig) -> str:
    """The column with the labels: the one that was named, or the one that is called so."""
    if config.label:
        if config.label not in table.columns:
            raise unknown("column", config.label, table.columns)
        return config.label
    found = [name for name in table.columns if name.lower() in LABEL_NAMES]
    named = ", ".join(filter(None, table.columns))
    require(len(found) == 1, f"say which column of {path.name} holds the labels, --label COLUMN: it has {named}.")
    return found[0]


def trusted_column(table: Table, label: str, config: DataConfig) -> str | None:
    """The column that marks trusted rows, if what was named is no file."""
    require(config.trusted != label, f"--trusted names the column of the labels, '{label}': name one that marks rows.")
    return config.trusted if config.trusted and config.trusted in table.columns else None


def marks_of(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows a column marks."""
    return np.array([word.lower() in _TRUE for word in words(column)], dtype=bool)


def words(column: NDArray[Any]) -> NDArray[np.str_]:
    """A column as text, stripped; empty where a value is missing."""
    return np.array(["" if word.lower() in MISSING else word for word in map(_word, column.tolist())], dtype=str)


def label_words(column: NDArray[Any]) -> NDArray[np.str_]:
    """Labels as text, stripped; empty where there is none, while words such as none or NA are labels."""
    return np.array([_word(value) for value in column.tolist()], dtype=str)


def _word(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _csv(path: Path) -> Table:
    csv.field_size_limit(_LARGEST_FIELD)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = _delimiter(next((line for line in file if line.strip()), ""))
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter)
            rows = list(_records(reader))
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from error
    except csv.Error as error:
        raise UserError(f"{path} cannot be read as a table: {error}.") from error
    require(len(rows) > 0, f"{path} is empty: a header and rows are expected.")
    header, rows = [name.strip() for name in rows[0][1]], rows[1:]
    _check_names(path, header)
    for line, row in rows:
        if len(row) != len(header):
            raise UserError(f"line {line} of {path} has {len(row)} fields, but the header has {len(header)}.")
    cells = zip(*(row for _, row in rows), strict=True)
    columns = {name: np.array(column, dtype=object) for name, column in zip(header, cells, strict=False)}
    return Table(columns, np.array([f"{path.name}:{line}" for line, _ in rows], dtype=str))


def _records(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV that hold something, each with the line that it begins on."""
    line = 1
    for row in reader:
        if len(row) > 1 or "".join(row).strip():
            yield line, row
        line = reader.line_num + 1


def _check_names(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"{path} has two columns called '{''.join(twice[:1])}': rename one.")


def _delimiter(header: str) -> str:
    return max(",;\t|", key=re.sub(r'"[^"]*("|$)', "", header).count)  # names in quotes may hold any of them


def _parquet(path: Path) -> Table:
    try:
        parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    except ImportError as error:
        raise UserError("Parquet files are read by pyarrow, which is missing: pip install pyarrow.") from error
    try:
        _check_names(path, parquet.read_schema(path).names)
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as a Parquet file: save it anew.") from error
    columns = {name: _arrow_column(table.column(name), arrow) for name in table.column_names}
    return Table(columns, np.array([f"{path.name}:{row + 1}" for row in range(table.num_rows)], dtype=str))


def _arrow_column(column: Any, arrow: Any) -> NDArray[Any]:
    """Numbers as they are, NaN where one is missing; lists as a cell of several names; all else as text."""
    kind = column.type
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        return np.array([SEPARATOR.join(map(str, value or [])) for value in column.to_pylist()], dtype=object)
    if arrow.types.is_integer(kind) and column.null_count == 0:
        return column.to_numpy()
    if arrow.types.is_floating(kind) or arrow.types.is_decimal(kind):
        return column.cast(arrow.float64(), safe=False).to_numpy()
    # Whole numbers some of which are missing are text, too: as floats the large ones, such as ids, would run together.
    return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=object)


TABLES: dict[str, Callable[[Path], Table]] = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".pq": _parquet}
