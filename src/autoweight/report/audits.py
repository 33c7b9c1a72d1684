"""The audit on the page: the worst samples, class by class, and which class seems to be mistaken for which."""

import base64
import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoweight.report.confusion import confusion_figure
from autoweight.report.svg import Figure
from autoweight.runs.audit import Audit, last_audit
from autoweight.runs.reading import RunView

_WORST, _CLASSES, _MISTAKES = 20, 50, 12  # rows of the tables, at most
ROOM = 1_200_000  # characters that a page's pictures may take


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
    pictures: dict[int, str]
    """Addresses of the pictures that rows and galleries show, by the sample's index."""
    figures: list[Figure]
    caution: str
    """Why the list may mislead; empty where nothing speaks for that."""

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        found = f"{self.num_issues:,} of {self.num_seen:,} labels look wrong"
        return f"{found}; about {100 * self.noise_rate:.1f} % are."


def audit_view(run: RunView, audit: Audit | None = None, room: int = ROOM) -> AuditView | None:
    """An audit of a run, by default the one that was asked for last.

    Its pictures take no more than `room` characters.
    """
    audit = audit or last_audit(run.path)
    if audit is None or not audit.issues.num_seen:
        return None
    issues, classes = audit.issues, _classes(audit)
    confusion = confusion_figure(issues)
    true_rate, found = _truth(audit) or (None, None)
    pictures = _pictures(audit, room)
    worst = [
        {name: getattr(row, name) for name in issues.columns}
        for row in issues.head(min(_WORST, issues.num_issues or issues.num_seen))
    ]
    galleries = _galleries(audit, pictures)
    shown = {row["index"] for row in worst}
    for _, rows in galleries:
        shown |= {row["index"] for row in rows}
    return AuditView(
        method=audit.method,
        seed=audit.seed,
        num_issues=issues.num_issues,
        num_seen=issues.num_seen,
        noise_rate=issues.noise_rate,
        true_rate=true_rate,
        found=found,
        threshold=issues.threshold,
        columns=issues.columns,
        worst=worst,
        classes=classes[:_CLASSES],
        more_classes=max(len(classes) - _CLASSES, 0),
        galleries=galleries,
        mistakes=issues.mistakes(_MISTAKES),
        pictures={index: picture for index, picture in pictures.items() if index in shown},
        figures=[] if confusion is None else [confusion],
        caution=issues.caution,
    )


def _truth(audit: Audit) -> tuple[float, tuple[float, float]] | None:
    """The true share of wrong labels, and precision and recall of the audit; None where it is not known, or none is."""
    if "wrong" not in audit.columns:
        return None
    wrong = audit.columns["wrong"] & np.isfinite(audit.columns["margin"])  # of the others nothing is said
    places = [name for name in ("index", "token") if name in audit.columns]
    flagged = audit.issues["is_label_issue"]
    if not flagged.any() or not wrong.any():
        return None
    are_wrong = set(zip(*(audit.columns[name][wrong].tolist() for name in places), strict=True))
    named = zip(*(audit.issues[name][flagged].tolist() for name in places), strict=True)
    hits = sum(place in are_wrong for place in named)
    return float(wrong.sum() / audit.issues.num_seen), (hits / int(flagged.sum()), hits / int(wrong.sum()))


def _classes(audit: Audit) -> list[dict[str, Any]]:
    """Each class with suspects: samples seen, suspects, and what those most often seem to be; the worst class first."""
    issues = audit.issues
    given, bad = (issues[name][: issues.num_seen] for name in ("given_label", "is_label_issue"))
    names, counts = np.unique(given, return_counts=True)
    suspects = Counter(given[bad].tolist())
    likely: dict[Any, Any] = {}
    for mistake in issues.mistakes(count=issues.num_issues):
        likely.setdefault(mistake.given_label, mistake.predicted_label)
    rows = [
        {"name": name, "count": count, "suspects": suspects[name], "likely": likely.get(name, "")}
        for name, count in zip(names.tolist(), counts.tolist(), strict=True)
        if name in suspects
    ]
    return sorted(rows, key=lambda row: -row["suspects"] / row["count"])


def _pictures(audit: Audit, room: int) -> dict[int, str]:
    """PNG pictures as data addresses, by the sample's index: the worst of every class first, until the room is full."""
    columns = audit.columns
    if "pictures" not in columns or "pictured" not in columns:
        return {}
    found: dict[int, str] = {}
    of_class: Counter[int] = Counter()
    places = []
    for number, sample in enumerate(columns["pictured"].tolist()):
        label = int(columns["label"][sample])
        places.append((of_class[label], number, int(columns["index"][sample])))
        of_class[label] += 1
    for _, number, index in sorted(places):
        found[index] = png(columns["pictures"][number])
        room -= len(found[index])
        if room < 0:
            del found[index]
            break
    return found


def _galleries(audit: Audit, pictures: dict[int, str]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The pictures that there are, by given class, the worst first."""
    found: dict[str, list[dict[str, Any]]] = {}
    wanted = np.isin(audit.issues["index"], list(pictures)) & audit.issues["is_label_issue"]
    columns = [audit.issues[name][wanted].tolist() for name in ("index", "given_label", "predicted_label")]
    for index, given, predicted in zip(*columns, strict=True):
        found.setdefault(str(given), []).append({"index": index, "predicted": predicted})
    return sorted(found.items())


def png(picture: NDArray[np.uint8]) -> str:
    """A picture `[height, width, 1 or 3]` as a data address."""
    height, width, channels = picture.shape
    rows = b"".join(b"\0" + picture[row].tobytes() for row in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
