"""The matrix on the page: which class seems to be mistaken for which."""

import numpy as np
from numpy.typing import NDArray

from autoweight.audit.table import LabelIssues
from autoweight.errors import UserError
from autoweight.report.maps import heat_map
from autoweight.report.svg import Figure

_MOST_CLASSES, _CHOSEN = 40, 20  # on a side of the matrix: of more than 40, the 20 that are mistaken most
_PRINTED = 12  # classes on a side of the matrix whose counts are printed


def confusion_figure(issues: LabelIssues) -> Figure | None:
    """The matrix of all classes, or of those that are mistaken most; None without suspects, or of too many classes."""
    try:
        whole = issues.confusion
    except UserError:
        return None
    if not issues.num_issues:
        return None
    chosen = _most_mistaken(whole)
    matrix = whole[np.ix_(chosen, chosen)]
    shares = matrix / np.maximum(whole[chosen].sum(axis=1, keepdims=True), 1e-9)  # of the given class
    tints, counts = shares.copy(), np.rint(matrix).astype(int)
    np.fill_diagonal(tints, 0)
    np.fill_diagonal(counts, 0)
    most = max(float(tints.max()), 1e-9)
    names = [str((issues.class_names or range(len(whole)))[number]) for number in chosen]
    cells = [
        [
            (
                float(tints[row, column]) / most,
                f"given {given}, seems to be {seeming}: {matrix[row, column]:.1f} samples, {shares[row, column]:.1%}",
            )
            for column, seeming in enumerate(names)
        ]
        for row, given in enumerate(names)
    ]
    svg = heat_map(
        short_names(names),
        short_names(names),
        cells,
        x_name="what it seems to be",
        y_name="given label",
        alt="Suspected confusion between classes; the table of mistakes above has the largest.",
        scale=("0 %", f"{100 * most:.2g} %"),
        scale_name="of the given class",
        printed=[[str(count or "") for count in line] for line in counts.tolist()] if len(chosen) <= _PRINTED else (),
    )
    look_for = (
        "Rows are given labels, columns what they seem to be; the diagonal is left blank. A strong cell is one class "
        "mistaken for another; an even tint is noise without a pattern. Samples count by how probably their label is "
        "wrong, so numbers differ a little from the tables'."
    )
    if len(chosen) < len(whole):
        look_for += f" Of {len(whole):,} classes, these are the {_CHOSEN} that are mistaken most, either way."
    return Figure("Suspected confusion matrix", look_for, svg)


def _most_mistaken(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """The classes to show, by their numbers: all, or of many those that are mistaken most, in either direction."""
    if len(matrix) <= _MOST_CLASSES:
        return np.arange(len(matrix))
    mistaken = matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * matrix.diagonal()
    return np.sort(np.argsort(-mistaken, kind="stable")[:_CHOSEN])


def short_names(names: list[str]) -> list[str]:
    """Names that fit beside a matrix: cut in the middle, and still distinct."""
    for most in (8, 11, 14):
        head, tail = most // 2, most - most // 2 - 1
        cut = [name if len(name) <= most else f"{name[:head]}…{name[-tail:]}" for name in names]
        if len(set(cut)) == len(names):
            return cut
    return [f"{name[:4]}…{number}" for number, name in enumerate(names)]
