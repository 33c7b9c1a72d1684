"""Commands that look at what there is: a run's labels, a strategy's words."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autoweight.audit.table import LabelIssues
from autoweight.errors import UserError, require
from autoweight.report.page import write_report
from autoweight.report.words import describe, idea
from autoweight.runs.audit import audit_run, trainings_of, write_audit
from autoweight.runs.reading import is_run
from autoweight.runs.samples import read_columns, samples_file
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
) -> None:
    """List the labels of a run that look wrong, the worst first, and write them all down."""
    check_threshold(threshold)
    found = audit_run(run, method=method, seed=seed, threshold=threshold)
    if found is None:
        files = [samples_file(run, *training) for training in trainings_of(run)]
        damaged = [str(file) for file in files if read_columns(file) is None]
        require(not damaged, f"{''.join(damaged[:1])} is damaged: train again.")
        known = ", ".join(f"{name} with seed {own_seed}" for name, own_seed in trainings_of(run))
        raise UserError(
            f"{run} has no such training that remembered its samples (there are: {known or 'none'}): train with "
            "--method auto, or name a recipe, autoweight audit RECIPE."
        )
    issues = found.issues
    print(
        f"By {found.method}, seed {found.seed}: {issues.num_issues:,} of {len(issues):,} labels look wrong; "
        f"about {issues.noise_rate:.1%} are."
    )
    Console().print(_table(issues))
    for mistake in issues.mistakes(3):
        print(f"{mistake.count} times {mistake.given_label} is given where it seems to be {mistake.predicted_label}.")
    for path in write_audit(found, out or run):
        print(f"all labels: {path}")
    if page:
        print(f"report: {write_report([run])}")


def report(runs: list[Path], out: Path | None) -> None:
    """Make the page of runs, and say where it is."""
    print(f"report: {write_report(runs, out)}")


def _table(issues: LabelIssues) -> Table:
    table = Table(title=f"the {min(_SHOWN, len(issues))} worst")
    for name in issues.columns:
        table.add_column(name, justify="right" if name != "name" else "left")
    for row in issues.head(_SHOWN):
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
    episodes = f" in {info['episodes']} episodes" if "episodes" in info else ""
    return [*describe(weigher), f"Found by {info.get('agent', 'a search')}{where}{episodes}."]
