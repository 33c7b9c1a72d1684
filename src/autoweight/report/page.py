"""One self-contained page from what runs wrote: no network, no scripts from elsewhere."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from autoweight.config.files import dump_config
from autoweight.errors import UserError
from autoweight.report.audits import ROOM, AuditView, audit_view
from autoweight.report.curves import training_curves
from autoweight.report.gains import UNSURE_GAP, Gain, answers_of, gain_over, gap_is_unsure, recovered
from autoweight.report.maps import Dot, dot_chart
from autoweight.report.searches import loss_gap_figure, noise_sentence, search_figures
from autoweight.report.strategies import auto_figure, strategy_figures
from autoweight.report.svg import Figure
from autoweight.report.tables import standard_error
from autoweight.report.verdict import Verdict, on_test_labels, verdict
from autoweight.report.weights import method_figures, weight_figures
from autoweight.report.words import describe, idea
from autoweight.runs.audit import CSV, Audit, damaged_samples
from autoweight.runs.reading import RunView, read_run, told
from autoweight.runs.tested import Tested, name_of_score, samples_tested
from autoweight.storage.atomic import write_bytes
from autoweight.strategy.shipped import load

PAGE = "report.html"
_COLUMNS = ("over_uniform", "recovered", "over_early_stop", "error")  # of methods, where there is something to tell
_HERE = Path(__file__).parent
_OVER_SEEDS, _OVER_SAMPLES = "the seeds", "the samples of one seed"  # what standard errors are over


@dataclass(frozen=True)
class MethodRow:
    """One method in the table."""

    name: str
    score: float
    error: float | None
    error_over: str
    """What the error is over, in words."""
    style: int
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
    columns: list[str]
    """Columns of the table of methods in which something stands."""
    unsure_gap: str
    score_name: str
    tested: Tested
    scores: Figure | None
    curves: list[Figure]
    strategy: list[str]
    strategy_figures: list[Figure]
    weights: list[Figure]
    by_method: dict[str, list[Figure]]
    search: list[Figure]
    noise: str
    audit: AuditView | None
    facts: list[tuple[str, str]]
    command: str
    to_go_on: bool
    """Whether the command goes on with the run."""
    yaml: str
    list_beside: str
    """The file beside the page that has all labels that look wrong; empty where there is none."""

    @property
    def sections(self) -> list[str]:
        """The page's sections in order. An audit's page begins with the labels, and leaves out what is empty."""
        if not self.run.is_audit:
            return ["verdict", "methods", "curves", "strategy", "weights", "search", "audit", "how"]
        there = {
            "methods": self.methods,
            "curves": self.curves,
            "strategy": self.strategy or self.strategy_figures,
            "weights": self.weights or self.by_method,
            "search": self.search,
        }
        return ["verdict", "audit", *(name for name, content in there.items() if content), "how"]


def write_report(runs: Sequence[Path], out: Path | None = None, audit: Audit | None = None) -> Path:
    """Write the page of one or several runs and return its path: by default in the run's folder, or here for several.

    The page says what a run lacks that still goes on or was killed. It shows `audit`, or else the run's default one.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise UserError("the page is made with jinja2: pip install 'autoweight[report]'.") from error
    path = out or (runs[0] / PAGE if len(runs) == 1 else Path(PAGE))
    views = [read_run(run) for run in runs]
    for view in views:  # a method is drawn alike in all
        view.styles = views[0].styles
    parts = [_part(view, audit, number, len(runs), path) for number, view in enumerate(views, 1)]
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
    write_bytes(path, page.encode())
    return path


def _part(run: RunView, audit: Audit | None, number: int, of: int, page: Path) -> RunPart:
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
    said, unsure = verdict(run), gap_is_unsure(run)
    if labels is not None and run.is_audit:
        notes = [labels.caution, said.sentence, *said.notes]
        said = Verdict(labels.sentence, said.comparisons, [note for note in notes if note])
    elif labels is not None and rows and not labels.caution and (note := on_test_labels(run, labels.noise_rate)):
        said = said._replace(notes=[*said.notes, note])
    return RunPart(
        number=number,
        run=run,
        verdict=said,
        methods=rows,
        columns=_columns(rows, unsure),
        unsure_gap=UNSURE_GAP if unsure else "",
        score_name=name_of_score(run),
        tested=tested,
        scores=_scores(rows, f"{tested} {name_of_score(run)}"),
        curves=training_curves(run),
        strategy=sentences,
        strategy_figures=pictures,
        weights=([gap] if gap is not None else []) + weight_figures(run),
        by_method=method_figures(run),
        search=search_figures(run) if searched else [],
        noise=noise_sentence(run) if searched else "",
        audit=labels,
        facts=_facts(run),
        command=_command(run),
        to_go_on=_goes_on(run),
        list_beside=CSV if of == 1 and (page.parent / CSV).exists() else "",
        yaml="" if run.config is None else dump_config(run.config),
    )


def _columns(rows: list[MethodRow], unsure: bool) -> list[str]:
    """The optional columns to show: those with an entry, and what is recovered, also where that cannot be told."""
    told = [name for name in _COLUMNS if any(getattr(row, name) is not None for row in rows)]
    return [*told, "recovered"] if unsure else told


def _rows(run: RunView) -> list[MethodRow]:
    rows, closed = [], recovered(run)
    for name, values in run.result.get("methods", {}).items():
        scores = [100 * score for score in values[run.score]]
        rows.append(
            MethodRow(
                name=name,
                score=fmean(scores),
                error=standard_error(scores) if len(scores) > 1 else _samples_error(run, name),
                error_over=_OVER_SEEDS if len(scores) > 1 else _OVER_SAMPLES,
                style=run.style(name),
                recovered=closed.get(name),
                over_uniform=gain_over(run, name, "uniform"),
                over_early_stop=gain_over(run, name, "early_stop"),
                seconds=fmean(values["train_seconds"]),
                told=told(name),
                seeds=len(scores),
            )
        )
    return rows


def _samples_error(run: RunView, method: str) -> float | None:
    """The standard error of one seed's share of right answers, in points; None where there is no record of them."""
    answers = [answers_of(run, method, seed) for seed in run.scores(method)]
    right = answers[0] if answers else None
    return None if right is None or not len(right) else 100 * float(right.std()) / sqrt(len(right))


def _scores(rows: list[MethodRow], name: str) -> Figure | None:
    sound = [row for row in rows if isfinite(row.score)]
    if len(sound) < 2:
        return None
    known = {row.error_over for row in sound if row.error is not None}
    look_for = "No seed left a record of its answers: nothing tells how much of the order is luck."
    if known:
        over = " or ".join(what for what in (_OVER_SEEDS, _OVER_SAMPLES) if what in known)
        look_for = (
            f"Whiskers are one standard error over {over}, of each method alone. All methods met the same data, so "
            "whether a lead is luck is told by the table's gains, not by whether whiskers overlap."
        )
    dots = [Dot(row.name, row.score, row.error, row.style) for row in sound]
    return Figure(f"{name.capitalize()} by method", look_for, dot_chart(dots, x_name=f"{name}, %"))


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
        facts += [(f"search, {names[key]}", _of_search(run, key, value)) for key, value in search.items()]
    return facts


def _of_search(run: RunView, key: str, value: Any) -> str:
    """A fact of a search, gains in points as everywhere on the page."""
    if key not in ("validation_gain", "validation_gain_error") or not isinstance(value, int | float):
        return _short(value)
    points = run.config is None or not (run.config.tasks or run.config.search.reward == "plain")
    return f"{100 * value:.2f} {'points' if points else '%'}"


def _command(run: RunView) -> str:
    if run.config is None:
        return ""
    if _goes_on(run):
        return f"autoweight {run.config.command} --out {shlex.quote(str(run.path))} --resume"
    return f"autoweight {run.config.command} --config {shlex.quote(str(run.path / 'config.yaml'))}"


def _goes_on(run: RunView) -> bool:
    """Whether a command goes on with the run: it has not ended."""
    return run.config is not None and not (run.path / "result.json").exists()


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
