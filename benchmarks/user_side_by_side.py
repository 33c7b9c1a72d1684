"""What a new user sees: a plain loop with AdamW on data with wrong labels, and what each way to weigh makes of it.

    python benchmarks/user_side_by_side.py              all tasks, three seeds, about ten minutes on two cores
    python benchmarks/user_side_by_side.py --tasks text --seeds 1

Every method has the same network, batches and epochs, and trains on the same samples; accuracy is the last epoch's on
clean test samples. `early_stop` and `law` also look at trusted samples, on which nobody trains; `auto` and cleanlab's
filter do not. Seconds are all that a method takes: cleanlab's five trainings for out-of-fold probabilities, and law's
search, on at most 2,000 samples, included. The oracle leaves out what is wrong. Needs scikit-learn, and cleanlab where
it is to be compared with.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.data import Samples, as_samples
from autoweight.data.corruptions import uniform_noise
from autoweight.data.splits import stratified_split

RESULTS = Path(__file__).parents[1] / "results" / "user_side_by_side.json"
SEARCH = aw.presets.noise(aw.SearchConfig(num_workers=11, num_episodes=4, choice_rounds=2))
MOST_SEARCHED = 2_000


class Task(NamedTuple):
    """A data set, how wrong its labels are, and how it is trained."""

    load: Callable[[int], Samples]
    noise_rate: float
    test_share: float
    trusted_share: float
    make_model: Callable[[], nn.Module]
    epochs: int
    batch_size: int


class Data(NamedTuple):
    """The parts of a task; only the training part has wrong labels."""

    train: Samples
    trusted: Samples
    test: Samples


def mlp(inputs: int, classes: int) -> nn.Module:
    """Two hidden layers of 128."""
    return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, classes))


class Words(nn.Module):
    """The mean of word embeddings, and a hidden layer."""

    def __init__(self, words: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of texts, `[texts, words]`."""
        return self.head(self.embed(ids).mean(dim=1))


def breast_cancer(seed: int) -> Samples:
    """569 tumours, two classes."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    return as_samples(((inputs - inputs.mean(axis=0)) / inputs.std(axis=0), labels))


def generated_rows(seed: int) -> Samples:
    """20,000 rows of 30 numbers to train on, and 5,000 more, seven classes."""
    inputs, labels = make_classification(
        25_000, 30, n_informative=15, n_redundant=5, n_classes=7, class_sep=1.5, flip_y=0.0, random_state=seed
    )
    return as_samples(((inputs - inputs.mean(axis=0)) / inputs.std(axis=0), labels))


def generated_texts(seed: int) -> Samples:
    """5,000 texts of 30 words, five topics: a sixth of the words tell the topic, the others are of all topics."""
    random = np.random.default_rng(seed)
    labels = np.arange(5_000) % 5
    common = random.zipf(1.3, (5_000, 30)) % 2_000
    own = 2_000 + labels[:, None] * 100 + random.integers(100, size=(5_000, 30))
    return as_samples((np.where(random.random((5_000, 30)) < 1 / 6, own, common), labels))


TASKS = {
    "breast_cancer": Task(breast_cancer, 0.3, 0.3, 0.1, lambda: mlp(30, 2), 100, 32),
    "rows": Task(generated_rows, 0.4, 0.18, 0.02, lambda: mlp(30, 7), 20, 128),
    "text": Task(generated_texts, 0.4, 0.2, 0.05, lambda: Words(2_500, 5), 30, 64),
}


def data_of(task: Task, seed: int) -> Data:
    """Parts that depend on the seed; every wrong label is another class."""
    samples = task.load(seed)
    sizes = tuple(round(share * len(samples)) for share in (task.test_share, task.trusted_share))
    test, trusted, rest = stratified_split(samples, sizes, seed)
    return Data(uniform_noise(rest, task.noise_rate, seed, redraw_true=False), trusted, test)


def accuracy(model: nn.Module, samples: Samples) -> float:
    """The share of samples that a network gets right."""
    model.eval()
    with torch.no_grad():
        right = (model(samples.inputs).argmax(dim=1) == samples.labels).float().mean()
    model.train()
    return float(right)


def loop(
    task: Task,
    train: Samples,
    seed: int,
    weigher: aw.Weigher | None = None,
    each_epoch: Callable[[nn.Module], None] = lambda model: None,
) -> nn.Module:
    """The user's own loop: AdamW at 1e-3, weighed by three more lines."""
    torch.manual_seed(seed)
    model = task.make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    batches = len(train) // task.batch_size
    for epoch in range(task.epochs):
        order = torch.randperm(len(train))
        for step in range(batches):
            indices = order[step * task.batch_size : (step + 1) * task.batch_size]
            labels = train.labels[indices]
            logits = model(train.inputs[indices])
            losses = cross_entropy(logits, labels, reduction="none")
            weights = torch.ones_like(losses)
            if weigher is not None:
                progress = (epoch + step / batches) / task.epochs
                weights = weigher.weigh(losses, logits, labels, progress=progress, indices=indices)
            optimizer.zero_grad()
            aw.weighted_mean(losses, weights).backward()
            optimizer.step()
        each_epoch(model)
    return model


def uniform(task: Task, data: Data, seed: int) -> dict[str, float]:
    """Not weighed; and, read off the same training, stopped where it is best on the trusted samples."""
    seen: list[tuple[float, float]] = []
    look = 0.0

    def each_epoch(model: nn.Module) -> None:
        nonlocal look
        began = time.perf_counter()
        seen.append((accuracy(model, data.trusted), accuracy(model, data.test)))
        look += time.perf_counter() - began

    began = time.perf_counter()
    loop(task, data.train, seed, each_epoch=each_epoch)
    seconds = time.perf_counter() - began - look
    return {"uniform": seen[-1][1], "early_stop": max(seen, key=lambda pair: pair[0])[1], "seconds": seconds}


def auto(task: Task, data: Data, seed: int) -> float:
    """The shipped strategy."""
    return accuracy(loop(task, data.train, seed, aw.load("auto")), data.test)


def law(task: Task, data: Data, seed: int) -> float:
    """A strategy searched on the task itself."""
    part, _ = stratified_split(data.train, (min(len(data.train), MOST_SEARCHED),), seed)
    training = aw.TrainingConfig(
        epochs=task.epochs,
        batch_size=task.batch_size,
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=0.01,
        schedule="constant",
    )
    strategy = aw.search(task.make_model, part, data.trusted, SEARCH, training=training, seed=seed)
    return accuracy(loop(task, data.train, seed, strategy), data.test)


def cleanlab(task: Task, data: Data, seed: int) -> float:
    """What cleanlab finds by out-of-fold probabilities of the same network is left out."""
    from cleanlab.filter import find_label_issues

    probabilities = np.zeros((len(data.train), data.train.num_classes))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for kept, held in folds.split(np.zeros(len(data.train)), data.train.labels.numpy()):
        model = loop(task, data.train.take(torch.from_numpy(kept)), seed).eval()
        with torch.no_grad():
            logits = model(data.train.take(torch.from_numpy(held)).inputs)
        probabilities[held] = logits.softmax(dim=1).numpy()
    wrong = find_label_issues(data.train.labels.numpy(), probabilities, n_jobs=1)
    return accuracy(loop(task, data.train.take(torch.from_numpy(~wrong).nonzero().flatten()), seed), data.test)


def oracle(task: Task, data: Data, seed: int) -> float:
    """Only what is right."""
    return accuracy(loop(task, data.train, seed, aw.Oracle(data.train.clean)), data.test)


METHODS: dict[str, Callable[[Task, Data, int], float]] = {
    "auto": auto,
    "law": law,
    **({"cleanlab": cleanlab} if find_spec("cleanlab") else {}),
    "oracle": oracle,
}


def measure(task: Task, seed: int) -> dict[str, dict[str, float]]:
    """Accuracy and seconds of every method on one seed."""
    data = data_of(task, seed)
    plain = uniform(task, data, seed)
    row = {name: {"accuracy": plain[name], "seconds": plain["seconds"]} for name in ("uniform", "early_stop")}
    for name, method in METHODS.items():
        began = time.perf_counter()
        reached = method(task, data, seed)
        row[name] = {"accuracy": reached, "seconds": time.perf_counter() - began}
    return row


def show(name: str, rows: list[dict[str, dict[str, float]]]) -> None:
    """Means over seeds, with their standard errors."""
    print(f"\n{name}, {len(rows)} seeds")
    for method in rows[0]:
        values = [100 * row[method]["accuracy"] for row in rows]
        error = f" +- {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
        print(
            f"  {method:11}{fmean(values):6.2f}{error:9}{fmean(row[method]['seconds'] for row in rows):9.1f} s",
            flush=True,
        )


def main() -> None:
    """Measure, show, and write down."""
    parser = argparse.ArgumentParser(description="What each way to weigh makes of a plain loop on wrong labels.")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # small networks gain nothing by more
    results: dict[str, object] = {"torch": torch.__version__, "seeds": chosen.seeds, "tasks": {}}
    for name in chosen.tasks.split(","):
        rows: list[dict[str, dict[str, float]]] = []
        results["tasks"][name] = rows  # type: ignore[index]
        for seed in range(chosen.seeds):
            rows.append(measure(TASKS[name], seed))
            RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        show(name, rows)


if __name__ == "__main__":
    main()
