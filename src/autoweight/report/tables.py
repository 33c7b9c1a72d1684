"""Results as tables for the terminal."""

from statistics import fmean, stdev

from rich.table import Table

from autoweight.report.gains import UNSURE_GAP, gap_is_unsure, recovered
from autoweight.runs.reading import RunView
from autoweight.runs.tested import name_of_score, samples_tested


def comparison_table(run: RunView) -> Table:
    """Mean accuracy, its standard error over several seeds, share of the oracle gap closed, and time, by method."""
    result, closed = run.result, recovered(run)
    seeds = result["seeds"]
    score = result.get("score", "test_accuracy")
    name = name_of_score(run)
    title = f"{result['recipe']}: last-epoch {samples_tested(run)} {name}, {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    unsure = bool(result["recovered"]) and gap_is_unsure(run)
    table = Table(title=title, caption=UNSURE_GAP if unsure else None)
    table.add_column("method")
    table.add_column(f"{name} %", justify="right")
    if len(seeds) > 1:
        table.add_column("std. error", justify="right")
    if result["recovered"]:
        table.add_column("recovered", justify="right")
    beside = sorted({key for values in result["methods"].values() for key in values if key.startswith(f"{score}_")})
    for key in beside:
        table.add_column(key.removeprefix(f"{score}_").replace("_", " "), justify="right")
    table.add_column("seconds", justify="right")
    for method, values in result["methods"].items():
        accuracies = values[score]
        row = [method, f"{100 * fmean(accuracies):.2f}"]
        if len(seeds) > 1:
            row.append(f"{100 * standard_error(accuracies):.2f}" if len(accuracies) > 1 else "-")
        if result["recovered"]:
            row.append(f"{closed[method]:z.2f}" if method in closed else "-")
        row += [f"{100 * fmean(values[key]):.2f}" if key in values else "" for key in beside]
        table.add_row(*row, f"{fmean(values['train_seconds']):.2f}")
    return table


def standard_error(values: list[float]) -> float:
    """Standard error of the mean; needs two values."""
    return float(stdev(values) / len(values) ** 0.5)
