"""Commands that look at what there is: a run's labels, a strategy's words."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autoweight.audit.table import LabelIssues
from autoweight.errors import UserError, require
from autoweight.report.page import PAGE, write_report
from autoweight.report.words import describe, idea
from autoweight.runs.audit import Audit, audit_run, damaged_samples, trainings_of, write_audit
from autoweight.runs.reading import is_run, read_run
from autoweight.storage.atomic import make_folder
from autoweight.strategy import Strategy, Weigher
from autoweight.strategy.files import RUN_FILE
from autoweight.strategy.shipped import load

_SHOWN = 10


def holds_runs(path: Path) -> bool:
    """Whether runs lie in this folder."""
    return path.is_dir() and any(is_run(own) for own in path.iterdir())


def check_threshold(threshold: float | None) -> None:
    """Raise `UserError` unless it can be one."""
    require(threshold is None or 0 <= threshold <= 1, f"--threshold goes from 0 to 1, but is {threshold}.")


def audit(
    run: Path,
    threshold: float | None,
    page: bool,
    *,
    method: str | None = None,
    seed: int | None = None,
    out: Path | None = None,
) -> Callable[[], None]:
    """Write down which labels of a run look wrong; returns a function that prints the worst.

    Everything is written before anything is printed: a reader that stops early, such as head, ends the command.
    """
    check_threshold(threshold)
    found = audit_run(run, method=method, seed=seed, threshold=threshold)
    if found is None:
        damaged = damaged_samples(run)
        require(not damaged, f"{''.join(map(str, damaged[:1]))} is damaged: train again.")
        _check_ended(run, method or "auto")
        raise UserError(_no_such_training(run))
    places = [f"all labels: {path}" for path in write_audit(found, out or run)]
    if page:
        places.append(f"report: {write_report([run], None if out is None else out / PAGE, found)}")
    return lambda: _show(found, places)


def _no_such_training(run: Path) -> str:
    """What to do where a run has no training as was asked for: take one that it has, or train."""
    other = audit_run(run)
    if other is not None:
        instead = f"--method {other.method} --seed {other.seed}"
        return f"{run} has no such training that remembered its samples: take the one that did, {instead}."
    known = ", ".join(f"{name} with seed {seed}" for name, seed in trainings_of(run))
    return (
        f"{run} has no such training that remembered its samples (there are: {known or 'none'}): train with "
        "--method auto, or name a recipe, autoweight audit RECIPE."
    )


def _check_ended(run: Path, method: str) -> None:
    """Raise `UserError` where a run was stopped before the training that would have remembered its samples."""
    config = read_run(run).config
    if config is not None and method in config.methods and not (run / "result.json").exists():
        again = f"autoweight {config.command} --out {quote(str(run))} --resume"
        raise UserError(f"{run} has not ended: go on with it first, {again}.")


def _show(found: Audit, places: list[str]) -> None:
    """How many labels look wrong, the worst, what is mistaken for what, and where all is written."""
    issues = found.issues
    unseen = len(issues) - issues.num_seen
    print(
        f"By {found.method}, seed {found.seed}: {issues.num_issues:,} of {issues.num_seen:,} labels look wrong; "
        f"about {issues.noise_rate:.1%} are." + (f" {unseen:,} never came up." if unseen else "")
    )
    if issues.caution:
        print(issues.caution)
    Console().print(_table(issues))
    for mistake in issues.mistakes(3):
        print(f"{mistake.count} times {mistake.given_label} is given where it seems to be {mistake.predicted_label}.")
    print("\n".join(places))


def report(runs: list[Path], out: Path | None) -> None:
    """Make the page of runs, and say where it is; `out` is a folder, as with every command, or a file of HTML."""
    if out is not None:
        out = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
        make_folder(out.parent)
    print(f"report: {write_report(runs, out)}")


def _table(issues: LabelIssues) -> Table:
    """The worst labels, in short columns."""
    rows = issues.head(min(_SHOWN, issues.num_seen))
    table = Table(title=f"the {len(rows)} worst")
    for name in issues.columns:  # folded where they are long: a name that is cut names nothing
        heading = name.removeprefix("is_label_").removeprefix("label_").removesuffix("_label")
        table.add_column(heading, justify="right" if name != "name" else "left", overflow="fold")
    for row in rows:
        values = (getattr(row, name) for name in issues.columns)
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else escape(str(value)) for value in values))
    return table


def description(name: str) -> list[str]:
    """What a strategy does, in words; a run's folder stands for the strategy that it found."""
    path = Path(name)
    if path.is_dir():
        require((path / RUN_FILE).exists(), f"{path} holds no strategy: name a folder that a search wrote, or a file.")
        return _told(load(path / RUN_FILE))
    return _told(load(name))


def _told(weigher: Weigher) -> list[str]:
    """What it does, and how it was found, or what its card says of its idea."""
    if not isinstance(weigher, Strategy):
        return [*describe(weigher), *idea(weigher)]
    info = weigher.info
    if "validation_gain" not in info:
        return describe(weigher)
    where = f" for {info['recipe']}" if "recipe" in info else ""
    trainings = f" in {info['episodes']} trainings" if "episodes" in info else ""  # one a worker in every episode
    return [*describe(weigher), f"Found by {info.get('agent', 'a search')}{where}{trainings}."]
