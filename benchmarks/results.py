"""Keep runs as results, and build the tables of results/README.md and the summary in docs/results.md from them.

    python benchmarks/results.py add RUN_FOLDER NAME [STRATEGY]    copy a finished run into results/
    python benchmarks/results.py                                   build both pages and the figures, as `make results`

A kept run is one JSON, results/runs/NAME.json: the run's result.json with the configuration that it ran under, less the
paths of the machine. A search also leaves its strategy as results/strategies/NAME.safetensors; STRATEGY is the name of
the kept one that law was trained with. NAME-late is the strategy NAME, retimed: docs/lab-notes.md.
"""

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import yaml
from paper_figures import CLEAN, PAPER, PEOPLE
from results_figures import draw

from autoweight.config import RunConfig
from autoweight.methods.early_stop import EARLY_STOP
from autoweight.recipes import get_recipe

ROOT = Path(__file__).parents[1]
RUNS, STRATEGIES = ROOT / "results" / "runs", ROOT / "results" / "strategies"
BEGIN, END = "<!-- made by `make results` -->", "<!-- end of what `make results` made -->"

RETIMED = "-late"
TODAY = 100  # epochs of a training that the paper does not have
GROUPS = ("right", "wrong", "rare", "other")  # of samples, whose mean weights are kept


class Task(NamedTuple):
    """What networks were trained on and how; runs of one task share a table."""

    dataset: str
    bias: str
    network: str
    epochs: int
    weight_decay: float


class Row(NamedTuple):
    """A method of a table; a strategy or a knob of its own makes another row."""

    method: str
    detail: str


Rows = dict[Row, dict[int, tuple[float, float]]]
"""Accuracy and GPU seconds by row and seed."""
Runs = dict[str, dict[str, Any]]


def add(run: Path, name: str, strategy: str = "") -> None:
    """Copy a finished run's result and configuration, and the strategy that it found."""
    config = yaml.safe_load((run / "config.yaml").read_text())
    del config["data"]["folder"]
    if config["strategy"]:
        config["strategy"] = strategy or sys.exit("name the kept strategy that law was trained with")
    result = json.loads((run / "result.json").read_text()) | {"config": config}
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    if "search" in result:
        # how far the agent's guess was ahead of the reference at the end of every episode, choices at the end included
        gains = {line["episode"]: line["greedy_gain"] for line in metrics if line["event"] == "search"}
        result["search"]["guesses"] = [round(gain, 4) for gain in gains.values()]
    for method, values in result["methods"].items():
        if method != EARLY_STOP:  # whose curve is uniform's
            for figure in ("val_score", "train_loss", "mean_weights"):
                values[figure] = [curve(metrics, method, seed, figure) for seed in result["seeds"]]
    collect(kept_runs() | {name: result})
    RUNS.mkdir(parents=True, exist_ok=True)
    (RUNS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    if "search" in result:
        STRATEGIES.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run / result["search"]["strategy"], STRATEGIES / f"{name}.safetensors")


def curve(metrics: list[dict[str, Any]], method: str, seed: int, figure: str) -> list[Any]:
    """A figure of every stage; a training on all images has seen the validation images too."""
    own = [line for line in metrics if line["event"] == "stage" and (line["method"], line["seed"]) == (method, seed)]
    if figure != "mean_weights":
        return [round(line[figure], 4) for line in own]
    groups = [line.get("weights", {}).get("groups", {}) for line in own]
    return [{name: round(one["weight"], 3) for name, one in of.items() if name in GROUPS} for of in groups]


def kept_runs() -> Runs:
    """All kept runs by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RUNS.glob("*.json"))}


def task_of(config: dict[str, Any]) -> Task:
    """The task that a run's networks were trained on."""
    data, training = config["data"], config["training"]
    biases = []
    if data["noise"] == "uniform":
        biases.append(f"{100 * data['noise_rate']:.0f} % of labels redrawn")
    elif data["noise"] != "none":
        biases.append(f"{data['noise']} noise, rate {data['noise_rate']}")
    if data["imbalance"] == "longtail":
        biases.append(f"long tail, factor {data['imbalance_factor']:g}")
    elif data["imbalance"] == "step":
        rare = data["rare_classes"]
        biases.append(f"classes {min(rare)} to {max(rare)} cut by {data['imbalance_factor']:g}")
    bias = ", ".join(biases) or (PEOPLE if data["dataset"] == "cifar10n" else CLEAN)
    return Task(data["dataset"], bias, config["network"], training["epochs"], training["weight_decay"])


def row_of(run: dict[str, Any], method: str, found: set[str]) -> Row:
    """The row of a method; law's strategies were `found` by a kept search, or retimed; `details` names old versions."""
    config = run["config"]
    if method in run.get("details", {}):
        return Row(method, run["details"][method])
    if method == "law":
        strategy = config["strategy"]
        return Row("law" if strategy.removesuffix(RETIMED) in found else "set by hand", f"strategy {strategy}")
    return Row(method, ", ".join(f"{name} {value}" for name, value in config["knobs"].get(method, {}).items()))


def details_of(config: dict[str, Any]) -> dict[str, Any]:
    """All that shapes a final training, whether a table's title says it or not."""
    beside = {"compile"}
    if config["data"]["train_on_all"]:
        beside |= {"train_size", "val_size"}
    if config["data"]["imbalance"] != "step":
        beside |= {"rare_classes"}
    return {key: value for key, value in (config["data"] | config["training"]).items() if key not in beside}


def first_difference(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """The first key that both have, with another value."""
    return next((key for key in one if key in other and one[key] != other[key]), None)


def collect(runs: Runs) -> dict[Task, Rows]:
    """Accuracy and GPU seconds of every task, row and seed; runs that would make a wrong table end the program."""
    tasks: dict[Task, Rows] = defaultdict(lambda: defaultdict(dict))
    details: dict[Task, dict[str, Any]] = {}
    found = {name for name, run in runs.items() if "search" in run}
    for name, run in runs.items():
        for method, values in run["methods"].items():
            task, own = task_of(run["config"]), details_of(run["config"])
            if key := first_difference(details.setdefault(task, own), own):
                sys.exit(f"{name} differs from other runs of its task in {key}, which no title shows")
            row = tasks[task][row_of(run, method, found)]
            if row.keys() & set(run["seeds"]):
                sys.exit(f"{name} has {method} with a seed that another run has")
            row |= dict(
                zip(run["seeds"], zip(values["test_accuracy"], values["train_seconds"], strict=True), strict=True)
            )
    return tasks


def recovered(rows: Rows, row: Row) -> float | None:
    """The share of the gap from uniform to oracle that a row closes, over the seeds that all three ran."""
    uniform, oracle = rows.get(Row("uniform", "")), rows.get(Row("oracle", ""))
    seeds = rows[row].keys() & (uniform or {}).keys() & (oracle or {}).keys()
    if not seeds or uniform is None or oracle is None:
        return None
    low, high = (fmean(part[seed][0] for seed in seeds) for part in (uniform, oracle))
    return (fmean(rows[row][seed][0] for seed in seeds) - low) / (high - low) if high > low else None


def task_table(task: Task, rows: Rows) -> Iterator[str]:
    """The table of one task, from the worst row to the best."""
    paper = {} if task.epochs == TODAY else PAPER.get(task[:3], {})
    yield f"**{task.dataset}, {task.bias}, {task.network}, {task.epochs} epochs, decay {task.weight_decay:g}**\n"
    yield "| method | paper % | ours % | seeds | recovered | GPU minutes each |\n|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: fmean(accuracy for accuracy, _ in rows[row].values())):
        accuracies = [100 * accuracy for accuracy, _ in rows[row].values()]
        error = f" ± {stdev(accuracies) / len(accuracies) ** 0.5:.2f}" if len(accuracies) > 1 else ""
        name = f"{row.method} ({row.detail})" if row.detail else row.method
        cells = (
            name,
            cell(paper.get(row.method)),
            f"{fmean(accuracies):.2f}{error}",
            str(len(accuracies)),
            cell(recovered(rows, row)),
            f"{minutes(rows[row]):.1f}",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def is_present(run: dict[str, Any]) -> bool:
    """Whether it is a search as its recipe would make it today; settings that came later had their defaults then."""
    if "search" not in run or run["config"] is None:
        return False
    config = run["config"]
    today, defaults = (json.loads(json.dumps(asdict(x))) for x in (get_recipe(config["recipe"]), RunConfig(recipe="")))
    config = config | {"search": nested(config["search"], defaults["search"])}
    parts = ("data", "training", "search")
    return not any(first_difference(today[part], defaults[part] | config[part]) for part in parts)


def nested(search: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """A search's settings where they stand today.

    Runs kept earlier had those of CMA-ES beside the others, or the place to begin among its own.
    """
    if "start" in search:
        return search
    if "cmaes" in search:
        cmaes = dict(search["cmaes"])
        return search | {"start": cmaes.pop("start", {}), "cmaes": cmaes}
    own = {name: search[name] for name in ("knots", "sigma", "coarse_share") if name in search}
    start = {name: search[f"start_{name}"] for name in ("loss", "bias") if search.get(f"start_{name}")}
    return search | {"start": start, "cmaes": defaults["cmaes"] | own}


def summary(tasks: dict[Task, Rows], runs: Runs) -> Iterator[str]:
    """What the strategies of the present recipes are worth: a line for each of them and each task."""
    present = {name for name, run in runs.items() if is_present(run)}
    versions = {Row(*one) for run in runs.values() for one in run.get("details", {}).items()}  # old, or not shipped
    yield "| | strategy | minutes | uniform | best other | **law** | oracle | recovered | paper: uniform, law |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for task, rows in sorted(tasks.items()):
        mean = {row: fmean(100 * accuracy for accuracy, _ in seeds.values()) for row, seeds in rows.items()}
        others = [row for row in rows if row.method not in ("uniform", "law", "oracle") and row not in versions]
        paper = {} if task.epochs == TODAY else PAPER.get(task[:3], {})
        best = max(others, key=mean.__getitem__, default=None)
        for row in rows:
            strategy = row.detail.removeprefix("strategy ")
            if row.method == "law" and strategy in present:
                cells = (
                    f"{task.dataset}, {task.bias}, {task.network}",
                    strategy,
                    f"{runs[strategy]['search']['seconds'] / 60:.1f} + {minutes(rows[row]):.1f}",
                    cell(mean.get(Row("uniform", ""))),
                    f"{cell(mean[best])} ({best.method})" if best else "",
                    f"**{cell(mean[row])}**{f' ({len(rows[row])} seeds)' if len(rows[row]) > 1 else ''}",
                    cell(mean.get(Row("oracle", ""))),
                    cell(recovered(rows, row)),
                    ", ".join(cell(paper.get(method)) or "-" for method in ("uniform", "law")),
                )
                yield f"| {' | '.join(cells)} |"
    yield ""


def minutes(seeds: dict[int, tuple[float, float]]) -> float:
    """What a training of a row took, by the clock."""
    return fmean(seconds for _, seconds in seeds.values()) / 60


def cell(value: float | None) -> str:
    """A number in a table, where there is one."""
    return "" if value is None else f"{value:.2f}"


def search_table(runs: Runs) -> Iterator[str]:
    """What the searches cost."""
    yield "**Searches**\n"
    yield "| strategy | seed | proxy | trainings | GPU minutes |\n|---|---|---|---|---|"
    for name, run in runs.items():
        if "search" in run:
            search, seeds = run["search"], ", ".join(map(str, run["seeds"]))
            cost = f"{search['episodes']} | {search['seconds'] / 60:.1f}"
            yield f"| {name} | {seeds} | {proxy_of(run['config'])} | {cost} |"
    yield ""


def proxy_of(config: dict[str, Any] | None) -> str:
    """What a search trained."""
    if config is None:
        return "configuration not kept"
    search, data = config["search"], config["data"]
    head = f", head start of {search['head_start']} stages" if search.get("head_start") else ""
    plain = "" if search.get("augment_stages", True) else ", no augmentation after it"
    epochs = f"{search['episode_share']:.0%} of {search['proxy_epochs']} epochs"
    return f"{search['proxy_network']}, {data['train_size']:,} images, {epochs}{head}{plain}"


def build() -> None:
    """Put the tables into both pages: docs/results.md shows the present recipes, the other page everything."""
    runs = kept_runs()
    tasks = collect(runs)
    devices = ", ".join(sorted({run["environment"]["device"] for run in runs.values()}))
    title = f"Last-epoch test accuracy in percent; {devices}."
    tables = [line for task, rows in sorted(tasks.items()) for line in task_table(task, rows)]
    _fill(ROOT / "docs" / "results.md", [f"{title}\n", *summary(tasks, runs)])
    shared = "Trainings side by side share their minutes."
    _fill(ROOT / "results" / "README.md", [f"{title} {shared}\n", *tables, *search_table(runs)])
    draw(runs, ROOT / "docs" / "figures")


def _fill(page: Path, lines: list[str]) -> None:
    before, rest = page.read_text().split(BEGIN)
    page.write_text("\n".join([before + BEGIN, "", *lines, END]) + rest.split(END)[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["add"]:
        add(Path(sys.argv[2]), *sys.argv[3:])
    build()
