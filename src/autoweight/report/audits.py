"""The audit on the page: the worst samples, class by class, and which class seems to be mistaken for which."""

import base64
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoweight.report.svg import Figure, heat_map
from autoweight.runs.audit import Audit, audit_run
from autoweight.runs.reading import RunView

_WORST, _CLASSES, _MISTAKES = 20, 50, 12
_MOST_CELLS = 40  # classes a side


@dataclass(frozen=True)
class AuditView:
    """What the page shows of an audit."""

    method: str
    seed: int
    num_issues: int
    num_seen: int
    noise_rate: float
    true_rate: float | None
    """Where wrong labels were put in on purpose, how many there are."""
    found: tuple[float, float] | None
    """Precision and recall, where that is known."""
    threshold: float
    columns: tuple[str, ...]
    worst: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    more_classes: int
    galleries: list[tuple[str, list[dict[str, Any]]]]
    mistakes: list[Any]
    figures: list[Figure] = field(default_factory=list)


def audit_view(run: RunView, audit: Audit | None = None) -> AuditView | None:
    """An audit of a run, by default that by the first of its trainings that remembered samples."""
    audit = audit or audit_run(run.path)
    if audit is None or not audit.issues.num_seen:
        return None
    issues, wrong = audit.issues, audit.columns.get("wrong")
    if wrong is not None:
        wrong = wrong & np.isfinite(audit.columns["margin"])  # of the others nothing is said
    known = None if wrong is None else _known(audit, wrong)
    classes = _classes(audit)
    pictures = _pictures(audit)
    worst = [
        {name: getattr(row, name) for name in issues.columns} | {"picture": pictures.get(row.index)}
        for row in issues.head(min(_WORST, issues.num_seen))
    ]
    return AuditView(
        audit.method,
        audit.seed,
        issues.num_issues,
        issues.num_seen,
        issues.noise_rate,
        None if known is None or wrong is None else float(wrong.sum() / issues.num_seen),
        known,
        issues.threshold,
        issues.columns,
        worst,
        classes[:_CLASSES],
        max(len(classes) - _CLASSES, 0),
        _galleries(audit, pictures),
        issues.mistakes(_MISTAKES),
        _confusion(audit),
    )


def _known(audit: Audit, wrong: NDArray[Any]) -> tuple[float, float] | None:
    by_index = dict(zip(audit.columns["index"].tolist(), wrong.tolist(), strict=True))
    flagged = audit.issues["index"][audit.issues["is_label_issue"]].tolist()
    hits = sum(by_index[index] for index in flagged)
    return (hits / len(flagged), hits / int(wrong.sum())) if flagged and wrong.any() else None


def _classes(audit: Audit) -> list[dict[str, Any]]:
    """Of every class with suspects: how many were seen, how many are suspects, and of what; the worst first."""
    issues = audit.issues
    given, bad = (issues[name][: issues.num_seen] for name in ("given_label", "is_label_issue"))
    names, counts = np.unique(given, return_counts=True)
    suspects = dict(zip(*(part.tolist() for part in np.unique(given[bad], return_counts=True)), strict=True))
    likely: dict[Any, Any] = {}
    for mistake in issues.mistakes(count=len(names) ** 2 if len(names) < 300 else 10_000):
        likely.setdefault(mistake.given_label, mistake.predicted_label)
    rows = [
        {"name": name, "count": count, "suspects": suspects[name], "likely": likely.get(name, "")}
        for name, count in zip(names.tolist(), counts.tolist(), strict=True)
        if name in suspects
    ]
    return sorted(rows, key=lambda row: -row["suspects"] / row["count"])


def _pictures(audit: Audit) -> dict[int, str]:
    """PNG pictures by the sample's index, as addresses that need no file."""
    columns = audit.columns
    if "pictures" not in columns or "pictured" not in columns:
        return {}
    index = columns["index"][columns["pictured"]].tolist()
    return {place: png(picture) for place, picture in zip(index, columns["pictures"], strict=False)}


def _galleries(audit: Audit, pictures: dict[int, str]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The pictures that there are, by given class, the worst first."""
    found: dict[str, list[dict[str, Any]]] = {}
    wanted = np.isin(audit.issues["index"], list(pictures)) & audit.issues["is_label_issue"]
    columns = [
        audit.issues[name][wanted].tolist() for name in ("index", "label_score", "given_label", "predicted_label")
    ]
    for index, score, given, predicted in zip(*columns, strict=True):
        one = {"index": index, "score": score, "predicted": predicted, "picture": pictures[index]}
        found.setdefault(str(given), []).append(one)
    return sorted(found.items())


def _confusion(audit: Audit) -> list[Figure]:
    issues = audit.issues
    if issues.num_classes > _MOST_CELLS or not issues.num_issues:
        return []
    matrix = issues.confusion
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-9)
    names = [str(name)[:8] for name in (issues.class_names or range(issues.num_classes))]
    off = shares - np.diag(np.diag(shares))
    most = max(float(off.max()), 1e-9)
    cells = [
        [
            (
                0.0 if row == column else float(off[row, column]) / most,
                f"given {names[row]}, seems to be {names[column]}: {matrix[row, column]:.1f} samples, "
                f"{shares[row, column]:.1%}",
            )
            for column in range(len(names))
        ]
        for row in range(len(names))
    ]
    svg = heat_map(
        names,
        names,
        cells,
        x_name="what it seems to be",
        y_name="given label",
        alt="Suspected confusion between classes; the table of mistakes below has the largest.",
    )
    look_for = (
        "Rows are given labels, columns what they seem to be; the diagonal is left blank. A strong cell is one class "
        "mistaken for another; an even tint is noise without a pattern."
    )
    return [Figure("Suspected confusion matrix", look_for, svg)]


def png(picture: NDArray[np.uint8]) -> str:
    """A picture `[height, width, 1 or 3]` as a data address."""
    height, width, channels = picture.shape
    rows = b"".join(b"\0" + picture[row].tobytes() for row in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
