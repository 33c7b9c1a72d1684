"""The audit of a run: which of its training labels look wrong, by one of its trainings that remembered samples."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from autoweight.audit.find import issues_of
from autoweight.audit.table import ENOUGH, LabelIssues
from autoweight.config import TaskName
from autoweight.errors import UserError, require
from autoweight.methods.method import Method
from autoweight.runs.samples import Columns, read_columns, samples_file
from autoweight.storage.atomic import make_folder, write_bytes
from autoweight.strategy.auto import Auto
from autoweight.strategy.remembering import Remembering
from autoweight.training.split import weigher_of

CSV, PARQUET = "label_issues.csv", "label_issues.parquet"
ASKED = "audit.json"
"""What a run's list of labels was asked for with, so that its page shows the same."""


class Audit(NamedTuple):
    """The audit of a run."""

    method: str
    seed: int
    issues: LabelIssues
    columns: Columns
    """What the training left of its samples."""
    threshold: float | None = None
    """Where one was asked for."""


def trainings_of(folder: Path) -> list[tuple[str, int]]:
    """Method and seed of the trainings whose samples a run holds, in order of seeds, `auto` first."""
    found = []
    for path in (folder / "samples").glob("*.npz"):
        match = re.fullmatch(r"(.+)-(\d+)", path.stem)
        if match:
            found.append((match[1], int(match[2])))
    return sorted(found, key=lambda job: (job[1], job[0] != "auto", job[0]))


def damaged_samples(folder: Path) -> list[Path]:
    """The files of samples that cannot be read."""
    files = [samples_file(folder, *training) for training in trainings_of(folder)]
    return [file for file in files if read_columns(file) is None]


def audit_run(
    folder: Path, *, method: str | None = None, seed: int | None = None, threshold: float | None = None
) -> Audit | None:
    """The audit by the first training that remembered samples, `auto` before others; None where there is none."""
    for name, own_seed in trainings_of(folder):
        if method not in (None, name) or seed not in (None, own_seed):
            continue
        columns = read_columns(samples_file(folder, name, own_seed))
        if columns is not None and bool(columns.get("remembered", False)):
            return Audit(name, own_seed, _issues(columns, threshold), columns, threshold)
    return None


def last_audit(folder: Path) -> Audit | None:
    """The audit of a run that was asked for last, or else the one that would be by default."""
    try:
        asked = json.loads((folder / ASKED).read_text())
        found = audit_run(folder, **{name: asked[name] for name in ("method", "seed", "threshold")})
    except (OSError, ValueError, KeyError, TypeError, UserError):
        found = None
    return found or audit_run(folder)


def check_audit(name: str, method: Method, task: TaskName) -> None:
    """Raise `UserError` where a training by this method would leave nothing to audit."""
    require(task in Auto.tasks, f"an audit looks at classes, so it is for {' and '.join(Auto.tasks)}, not for {task}.")
    weigher = weigher_of(method)
    require(
        isinstance(weigher, Remembering) and weigher.keeps_margins,
        f"an audit reads what the network made of each sample, which {name} does not remember: use --method auto.",
    )


def write_audit(audit: Audit, folder: Path) -> list[Path]:
    """Write the table as CSV, and as Parquet where pyarrow is there, and what was asked for; returns the tables."""
    make_folder(folder)
    asked = {"method": audit.method, "seed": audit.seed, "threshold": audit.threshold}
    write_bytes(folder / ASKED, json.dumps(asked).encode())
    audit.issues.to_csv(folder / CSV)
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return [folder / CSV]
    audit.issues.to_parquet(folder / PARQUET)
    return [folder / CSV, folder / PARQUET]


def _issues(columns: Columns, threshold: float | None) -> LabelIssues:
    return issues_of(
        columns["margin"],
        columns["predicted"],
        columns["label"],
        num_classes=int(columns["num_classes"]),
        threshold=threshold,
        index=columns["index"].astype(np.int64),
        names=columns.get("names"),
        tokens=columns.get("token"),
        class_names=tuple(columns["class_names"].tolist()) if "class_names" in columns else (),
        visits=float(columns.get("visits", ENOUGH)),  # which older runs did not keep
    )
