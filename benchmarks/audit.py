"""The audit against cleanlab with five-fold cross-validated predictions of the same network: docs/audit.md's table.

    python benchmarks/audit.py                                           the rows that need a CPU alone
    python benchmarks/audit.py cifar10-today-0.4 --data-dir DIR --device cuda --seeds 1     a row of CIFAR
    python benchmarks/audit.py ... --epochs 20                           trainings as long as that, in rows of their own
    python benchmarks/audit.py ... --ways autoweight cleanlab            only these ways of four
    python benchmarks/audit.py --table                                   only print what is there

Ours is one training with `auto` on all samples. cleanlab's `find_label_issues` gets the predictions of five trainings
without weights, side by side, each on four fifths of the samples. Both are tried with trainings a third as long, too.
Nothing is compiled, which would take longer than it saves, nor averaged.
Every row goes to results/audit.json, which keeps the seeds apart; what is there already is not run again.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import roc_auc_score

import autoweight as aw
from autoweight.config import DataConfig, RunConfig, TrainingConfig
from autoweight.data import Samples, load_pool
from autoweight.data.corruptions import uniform_noise
from autoweight.data.inputs import rows
from autoweight.data.splits import stratified_split
from autoweight.methods.method import Weighted
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.training.loop import Training, train
from autoweight.training.precision import autocast
from autoweight.training.task import forward

RESULTS = Path(__file__).parents[1] / "results" / "audit.json"
SEEDS, FOLDS = 3, 5


def digits(noise_rate: float) -> RunConfig:
    """Digits with labels redrawn, all but the test part."""
    config = get_recipe("digits-noise")
    return replace(config, data=replace(config.data, noise_rate=noise_rate, train_on_all=True))


def table(load: Callable[..., Any], noise_rate: float, seed: int) -> Samples:
    """A set of scikit-learn's, standardised, with labels moved to another class."""
    values, labels = load(return_X_y=True)
    inputs = torch.tensor((values - values.mean(axis=0)) / values.std(axis=0)).float()
    return uniform_noise(Samples.of(inputs, torch.tensor(labels)), noise_rate, seed, redraw_true=False)


def of_pool(config: RunConfig, seed: int) -> Samples:
    """A recipe's training set."""
    return load_pool(config.data).splits(config.data, seed, final=True).train


SMALL = RunConfig("table", data=DataConfig(), training=TrainingConfig(batch_size=32))
TABLES = {
    "breast_cancer 0.2": (SMALL, partial(table, load_breast_cancer, 0.2)),
    "breast_cancer 0.4": (SMALL, partial(table, load_breast_cancer, 0.4)),
    "wine 0.2": (SMALL, partial(table, load_wine, 0.2)),
    "wine 0.4": (SMALL, partial(table, load_wine, 0.4)),
}
ON_CPU = {f"digits {rate}": digits(rate) for rate in (0.2, 0.4)}
ON_GPU = ("cifar10-today-0.4", "cifar10-today-asymmetric-0.4", "cifar10n-today-worst", "cifar10n-today-aggregate")


def problem(name: str, folder: str) -> tuple[RunConfig, Callable[[int], Samples]]:
    """The configuration of a row, and its samples by seed."""
    if name in TABLES:
        return TABLES[name]
    config = ON_CPU.get(name) or get_recipe(name)
    data = replace(config.data, folder=folder, train_on_all=True)
    config = replace(config, data=data, training=replace(config.training, compile=False, average=0.0))
    return config, partial(of_pool, config)


def trained(config: RunConfig, sets: list[Samples], weigher: aw.Weigher | None, seed: int) -> list[torch.nn.Module]:
    """Networks at the end of their trainings, one on each set."""
    make = partial(make_network, config.network, sets[0].input_shape, sets[0].num_classes)
    trainings = [Training(make, own, None, Weighted(weigher), seed, config.data.augmentation) for own in sets]
    return [one.slot.method.networks[0].eval() for one in train(trainings, config.training).trained]


@torch.no_grad()
def probabilities(config: RunConfig, model: torch.nn.Module, samples: Samples) -> np.ndarray:
    """What a network says of samples it was not trained on."""
    found = []
    for start in range(0, len(samples), 1000):
        with autocast(config.training.precision, samples.device):
            outputs = forward(model, rows(samples.inputs, slice(start, start + 1000)))
        found.append(outputs.float().softmax(dim=1).cpu())
    return torch.cat(found).numpy()


def ours(config: RunConfig, samples: Samples, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores, flags and the estimated noise rate, from one training with auto."""
    weigher = aw.load("auto")
    trained(config, [samples], weigher, seed)
    issues = aw.find_label_issues(weigher, samples.labels)
    order = np.argsort(issues["index"])
    return issues["label_score"][order], issues["is_label_issue"][order], issues.noise_rate


def cleanlab(config: RunConfig, samples: Samples, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The same from five trainings without weights, each judging a fifth that it did not see."""
    places = replace(samples, source=torch.arange(len(samples))).to("cpu")
    size = len(samples) // FOLDS
    parts = [part.source for part in stratified_split(places, (size,) * (FOLDS - 1), seed)]
    rest = [torch.cat([part for part in parts if part is not held_out]) for held_out in parts]
    models = trained(config, [samples.take(part.to(samples.device)) for part in rest], None, seed)
    predicted = np.zeros((len(samples), samples.num_classes))
    for held_out, model in zip(parts, models, strict=True):
        predicted[held_out] = probabilities(config, model, samples.take(held_out.to(samples.device)))
    labels = samples.labels.cpu().numpy()
    wrong = find_label_issues(labels, predicted)
    return get_label_quality_scores(labels, predicted), wrong, float(wrong.mean())


Found = tuple[np.ndarray, np.ndarray, float]
"""Scores, flags and the estimated noise rate."""


def lasting(config: RunConfig, epochs: int) -> RunConfig:
    """The same with trainings of another length."""
    return replace(config, training=replace(config.training, epochs=epochs))


def a_third(find: Callable[..., Found], config: RunConfig, samples: Samples, seed: int) -> Found:
    """The same from trainings a third as long."""
    return find(lasting(config, config.training.epochs // 3), samples, seed)


WAYS: dict[str, Callable[..., Found]] = {
    "autoweight": ours,
    "autoweight, a third as long": partial(a_third, ours),
    "cleanlab": cleanlab,
    "cleanlab, a third as long": partial(a_third, cleanlab),
}


def measured(find: Callable[..., Any], config: RunConfig, samples: Samples, seed: int) -> dict[str, float]:
    """How well a way to find wrong labels does on samples whose truth is known."""
    clock = time.process_time if samples.device.type == "cpu" else time.perf_counter  # others may use the cores too
    began = clock()
    scores, flagged, rate = find(config, samples, seed)
    seconds = clock() - began
    wrong = (~samples.clean).cpu().numpy()
    hits = float((flagged & wrong).sum())
    return {
        "auroc": float(roc_auc_score(~wrong, scores)),
        "precision": hits / max(float(flagged.sum()), 1.0),
        "recall": hits / float(wrong.sum()),
        "rate": rate,
        "rate_error": abs(rate - float(wrong.mean())),
        "seconds": seconds,
    }


def show(results: dict[str, Any]) -> None:
    """The table of docs/audit.md."""
    keys = ("auroc", "precision", "recall", "rate_error", "seconds")
    print("| data, share redrawn | wrong | by | AUROC | precision | recall | noise rate off by | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in results.items():
        for who, seeds in row["by"].items():
            if not seeds:  # it was stopped
                continue
            means = [fmean(one[key] for one in seeds) for key in keys]
            shown = [f"{value:.3f}" for value in means[:4]] + [f"{means[4]:.1f}"]
            print(f"| {name} | {fmean(row['wrong']):.3f} | {who} | {' | '.join(shown)} |")


def main() -> None:
    """Run rows that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=[*ON_CPU, *TABLES], help=f"also: {', '.join(ON_GPU)}")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS])
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [] if chosen.table else chosen.rows:
        config, load = problem(name, chosen.data_dir)
        if chosen.epochs:
            config, name = lasting(config, chosen.epochs), f"{name}, {chosen.epochs} epochs"
        row: dict[str, Any] = results.setdefault(name, {"wrong": [], "by": {}, "device": chosen.device})
        for seed in range(chosen.seeds):
            missing = [way for way in chosen.ways if len(row["by"].setdefault(way, [])) <= seed]
            samples = load(seed).to(chosen.device) if missing else None
            if samples is not None and len(row["wrong"]) <= seed:
                row["wrong"].append(float((~samples.clean).float().mean()))
            for way in missing:
                row["by"][way].append(measured(WAYS[way], config, samples, seed))
                print(name, seed, way, row["by"][way][-1], flush=True)
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


if __name__ == "__main__":
    main()
