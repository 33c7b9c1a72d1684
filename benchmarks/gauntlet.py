"""What `auto` does to many small trainings, wrong labels, rare classes or nothing wrong: the tables of docs/auto.md.

    python benchmarks/gauntlet.py                 all tasks, all methods; results/gauntlet.json and the table
    python benchmarks/gauntlet.py --quick         one seed, every other task: a first, noisy look
    python benchmarks/gauntlet.py --part judge --methods auto,gated     only these; other figures stay as they are
    python benchmarks/gauntlet.py --part large --methods uniform,auto,oracle     large, hard ones, beside all others
    python benchmarks/gauntlet.py --part cifar --cifar DIR --methods uniform,auto,oracle    of CIFAR-10, in this folder
    python benchmarks/gauntlet.py --table         print the table of what was measured: docs/auto-tasks.md

Figures are last-epoch test accuracies in percent, the mean over seeds. "recovered" is the share of the gap between
uniform and oracle, over tasks whose gap is at least 3 points.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from gauntlet_data import FAMILIES, cifar10
from gauntlet_methods import METHODS, TRUE_LABELS
from gauntlet_tasks import CIFAR, FIND, JUDGE, LARGE
from gauntlet_train import Run, Task

RESULTS = Path(__file__).parents[1] / "results" / "gauntlet.json"
PARTS = {"find": FIND, "judge": JUDGE, "all": FIND + JUDGE, "large": LARGE, "cifar": CIFAR}
SHOWN = ("uniform", "early_stop", "gated", "auto", "noise", "rare", "class_balanced", TRUE_LABELS)
SUMMED = ("early_stop", "gated", "gce", "elr", "cleanlab", "auto", "noise", "rare", "class_balanced")
GAP = 0.03  # below this there is nothing to recover
QUICK_COST = 150_000  # samples times epochs, above which --quick leaves a task out; it takes every other one


def measure(task: Task, methods: list[str], make: dict[str, Callable] | None = None) -> dict:
    """Accuracies of a task's methods, and the share of labels that are wrong."""
    start = time.perf_counter()
    if task.imbalance == "none":  # what is for rare classes has nothing to do
        methods = [method for method in methods if method != "class_balanced"]
    run = Run(task, methods, make)
    found = {method: [round(value, 4) for value in values] for method, values in run.accuracies().items()}
    seconds = round(time.perf_counter() - start, 1)
    return {"family": task.family, "kind": task.kind, "wrong": round(run.wrong, 3), "accuracy": found, "s": seconds}


def group(kind: str) -> str:
    """Kinds of bias that are judged together."""
    names = ("longtail", "step", "rules", "asymmetric", "uniform 0.8", "uniform", "sample")
    found = next((name for name in names if name in kind), "clean")
    joint = {"longtail": "rare", "step": "rare", "uniform": "up to 0.6", "sample": "up to 0.6"}
    return joint.get(found, found) + (" and wrong" if "+" in kind else "")


def mean(line: dict, method: str) -> float:
    """A method's mean accuracy."""
    return statistics.fmean(line["accuracy"][method])


def recovered(line: dict, method: str) -> float | None:
    """The share of the gap that a method closes, where there is one."""
    gap = mean(line, TRUE_LABELS) - mean(line, "uniform")
    return (mean(line, method) - mean(line, "uniform")) / gap if gap >= GAP else None


def summary(lines: dict[str, dict], methods: list[str]) -> None:
    """For each group of biases: what methods win over uniform, and what they recover, in the mean and the worst."""
    print(f"\n{'':18}{'':16}{'over uniform':>18}{'recovered':>18}\n{'bias':18}{'method':16}", end="")
    print(f"{'mean':>9}{'worst':>9}{'mean':>9}{'worst':>9}  tasks  worst task")
    for name in sorted({group(line["kind"]) for line in lines.values()}):
        own = {key: line for key, line in lines.items() if group(line["kind"]) == name}
        for method in methods:
            known = {key: line for key, line in own.items() if method in line["accuracy"]}
            if not known:
                continue
            gains = {key: 100 * (mean(line, method) - mean(line, "uniform")) for key, line in known.items()}
            shares = {key: share for key, line in known.items() if (share := recovered(line, method)) is not None}
            worst = min(shares, key=shares.__getitem__) if shares else min(gains, key=gains.__getitem__)
            share = f"{statistics.fmean(shares.values()):9.2f}{min(shares.values()):9.2f}" if shares else " " * 18
            print(
                f"{name:18}{method:16}{statistics.fmean(gains.values()):9.2f}{min(gains.values()):9.2f}{share}"
                f"{len(known):7}  {worst}"
            )


def table(lines: dict[str, dict]) -> None:
    """Every task in a row of Markdown."""
    print(f"\n| task | wrong | {' | '.join(SHOWN)} | recovered |\n|---|---|{'---|' * (len(SHOWN) + 1)}")
    for name, line in lines.items():
        cells = [f"{100 * mean(line, method):.1f}" if method in line["accuracy"] else "" for method in SHOWN]
        share = recovered(line, "auto") if "auto" in line["accuracy"] else None
        cells += ["" if share is None else f"{share:.2f}"]
        print(f"| {name} | {line['wrong']:.2f} | {' | '.join(cells)} |")


def known() -> dict[str, dict]:
    """What was measured so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def store(name: str, line: dict) -> None:
    """Merge a task's figures into the results."""
    lines = known()
    former = lines.get(name, line)
    lines[name] = line | {"accuracy": former["accuracy"] | line["accuracy"]}
    RESULTS.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in lines.items()) + "\n}\n")


def main() -> None:
    """Run what was asked for; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--cifar", type=Path, metavar="DIR", help="the folder of CIFAR-10")
    arguments = parser.parse_args()
    if unknown := set(arguments.methods.split(",")) - set(METHODS):
        parser.error(f"no method is called {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    if arguments.part == "cifar" and not (arguments.cifar or arguments.table):
        parser.error("name the folder of CIFAR-10: --cifar DIR")
    torch.set_num_threads(1)  # small operations on several threads wait for each other
    tasks, lines, start = PARTS[arguments.part], {}, time.perf_counter()
    if arguments.cifar:
        FAMILIES["cifar10"] = cifar10(arguments.cifar)
    if arguments.quick:
        tasks = [task._replace(seeds=1) for task in tasks[::2] if task.size * task.epochs <= QUICK_COST]
    for task in [] if arguments.table else tasks:
        lines[task.name] = measure(task, arguments.methods.split(","))
        shown = {method: f"{100 * mean(lines[task.name], method):.1f}" for method in lines[task.name]["accuracy"]}
        print(f"{lines[task.name]['s']:6.1f} s  {task.name}  {shown}", flush=True)
        if not arguments.quick:
            store(task.name, lines[task.name])
    if not arguments.quick:
        lines = {task.name: line for task in tasks if (line := known().get(task.name))}
    table(lines)
    summary(lines, list(SUMMED))
    print(f"\n{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
