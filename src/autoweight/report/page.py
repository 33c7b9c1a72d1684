"""One self-contained page from what runs wrote: no network, no scripts from elsewhere."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from autoweight.config.files import dump_config
from autoweight.errors import UserError
from autoweight.report.audits import ROOM, AuditView, audit_view
from autoweight.report.curves import training_curves, weight_figures
from autoweight.report.searches import loss_gap_figure, noise_sentence, search_figures
from autoweight.report.strategies import auto_figure, strategy_figures
from autoweight.report.svg import Figure, dot_chart
from autoweight.report.tables import standard_error
from autoweight.report.verdict import UNSURE_GAP, Gain, Verdict, gain_over, gap_is_unsure, recovered, verdict
from autoweight.report.words import describe, idea
from autoweight.runs.audit import Audit, damaged_samples
from autoweight.runs.reading import RunView, read_run, told
from autoweight.runs.tested import Tested, samples_tested
from autoweight.storage.atomic import write_bytes
from autoweight.strategy.shipped import load

PAGE = "report.html"
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class MethodRow:
    """One method in the table."""

    name: str
    score: float
    error: float | None
    recovered: float | None
    over_uniform: Gain | None
    over_early_stop: Gain | None
    seconds: float
    told: str
    seeds: int


@dataclass(frozen=True)
class RunPart:
    """All that the page says of one run."""

    number: int
    run: RunView
    verdict: Verdict
    methods: list[MethodRow]
    unsure_gap: str
    tested: Tested
    scores: Figure | None
    curves: list[Figure]
    strategy: list[str]
    strategy_figures: list[Figure]
    weights: list[Figure]
    search: list[Figure]
    noise: str
    audit: AuditView | None
    facts: list[tuple[str, str]]
    command: str
    yaml: str


def write_report(runs: Sequence[Path], out: Path | None = None, audit: Audit | None = None) -> Path:
    """Write the page of one or several runs and return its path: by default in the run's folder, or here for several.

    The page says what a run lacks that still goes on or was killed. It shows `audit`, or else the run's default one.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise UserError("the page is made with jinja2: pip install 'autoweight[report]'.") from error
    parts = [_part(read_run(path), audit, number, len(runs)) for number, path in enumerate(runs, 1)]
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["short"] = _short
    environment.filters["quoted"] = lambda path: shlex.quote(str(path))
    page = environment.get_template("page.html").render(
        parts=parts,
        title=", ".join(part.run.path.resolve().name for part in parts),
        style=(_HERE / "page.css").read_text(),
        script=(_HERE / "page.js").read_text(),
        made=time.strftime("%Y-%m-%d %H:%M"),
    )
    path = out or (runs[0] / PAGE if len(runs) == 1 else Path(PAGE))
    write_bytes(path, page.encode())
    return path


def _part(run: RunView, audit: Audit | None, number: int, of: int) -> RunPart:
    run.missing += [f"samples/{file.name} is damaged: what it held is left out." for file in damaged_samples(run.path)]
    rows = _rows(run)
    tested = samples_tested(run)
    sentences = [] if run.strategy is None else describe(run.strategy)
    pictures = [] if run.strategy is None else strategy_figures(run.strategy)
    if any(method == "auto" for method, _ in run.stages):
        sentences += [f"auto: {sentence}" for sentence in idea(load("auto"), short=True)]
        pictures.append(auto_figure())
    gap = loss_gap_figure(run)
    searched = bool(run.of("search"))
    labels = audit_view(run, audit, ROOM // of)
    said = verdict(run)
    if labels is not None and run.config is not None and run.config.command == "audit":
        said = Verdict(labels.sentence, said.comparisons, [said.sentence, *said.notes])
    return RunPart(
        number=number,
        run=run,
        verdict=said,
        methods=rows,
        unsure_gap=UNSURE_GAP if gap_is_unsure(run) else "",
        tested=tested,
        scores=_scores(rows, f"{tested} {run.score_name}"),
        curves=training_curves(run),
        strategy=sentences,
        strategy_figures=pictures,
        weights=([gap] if gap is not None else []) + weight_figures(run),
        search=search_figures(run) if searched else [],
        noise=noise_sentence(run) if searched else "",
        audit=labels,
        facts=_facts(run),
        command=_command(run),
        yaml="" if run.config is None else dump_config(run.config),
    )


def _rows(run: RunView) -> list[MethodRow]:
    rows, closed = [], recovered(run)
    for name, values in run.result.get("methods", {}).items():
        scores = [100 * score for score in values[run.score]]
        rows.append(
            MethodRow(
                name=name,
                score=fmean(scores),
                error=standard_error(scores) if len(scores) > 1 else None,
                recovered=closed.get(name),
                over_uniform=gain_over(run, name, "uniform"),
                over_early_stop=gain_over(run, name, "early_stop"),
                seconds=fmean(values["train_seconds"]),
                told=told(name),
                seeds=len(scores),
            )
        )
    return rows


def _scores(rows: list[MethodRow], name: str) -> Figure | None:
    sound = [(row.name, row.score, row.error) for row in rows if isfinite(row.score)]
    if len(sound) < 2:
        return None
    look_for = "One seed tells no standard error: the order may be luck."
    if any(error is not None for _, _, error in sound):
        look_for = "Whiskers are one standard error over the seeds. Where they overlap, the order may be luck."
    return Figure(f"{name.capitalize()} by method", look_for, dot_chart(sound, x_name=f"{name}, %"))


def _facts(run: RunView) -> list[tuple[str, str]]:
    environment = run.result.get("environment")
    facts = [(key, str(value)) for key, value in environment.items()] if isinstance(environment, dict) else []
    methods = run.result.get("methods", {})
    seconds = sum(sum(values["train_seconds"]) for name, values in methods.items() if name != "early_stop")  # uniform's
    if seconds:
        facts.append(("seconds of training", f"{seconds:,.1f}"))
    search: Any = run.result.get("search")
    if isinstance(search, dict):
        names = {key: key.replace("_", " ") for key in search} | {"episodes": "trainings of weighted networks"}
        facts += [(f"search, {names[key]}", _short(value)) for key, value in search.items()]
    return facts


def _command(run: RunView) -> str:
    if run.config is None:
        return ""
    return f"autoweight {run.config.command} --config {shlex.quote(str(run.path / 'config.yaml'))}"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
