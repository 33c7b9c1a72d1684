"""Rivals at their published settings and at better ones, on equal terms: what they reach, and what a step costs.

    python benchmarks/rivals.py mentor digits-noise         a mentor for mentornet, learned on other seeds of the recipe
    python benchmarks/rivals.py choose digits-noise         which settings are best on validation samples
    python benchmarks/rivals.py compare digits-noise        the comparison, all at published settings
    python benchmarks/rivals.py compare digits-noise --chosen       those that `choose` found better ones for, at these
    python benchmarks/rivals.py cost digits-noise           time of a step and memory, relative to plain training
    python benchmarks/rivals.py table RUN[,RUN...]          finished comparisons as one Markdown table, and kept

All from the repository's root. On a GPU the same with `--device cuda --data-dir DIR`, for both trainings: cifar10-noise
and cifar100-noise (the paper's), cifar10-today-0.4 and cifar100-today-0.4 (today's). What else is typed goes to
`autoweight compare`.

A choice has a budget of three settings besides the published one, two seeds that no comparison uses, and one rule: the
best mean on one half of the validation samples; those that learn from trusted samples get the other half.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import yaml

from autoweight.cli.run import run
from autoweight.config import RunConfig
from autoweight.data import Pool, Splits, load_pool
from autoweight.data.splits import stratified_split
from autoweight.methods import told_of
from autoweight.recipes import get_recipe
from autoweight.runs.compare import Comparison
from autoweight.runs.mentor import learn_mentor
from autoweight.training.evaluate import score
from autoweight.training.loop import Training, _make_steps, make_slots, train
from autoweight.training.task import TASKS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "rivals"
COMPARED = ("l2rw", "mwnet", "mentornet", "coteaching", "gce", "elr", "focal", "self_paced")
METHODS = ("uniform", "early_stop", "auto", *COMPARED, "oracle")
SEEDS = (100, 101)
MENTOR_SEED = 200


def published(recipe: RunConfig) -> dict[str, dict]:
    """Where the published setting of a data set is not the default."""
    return {"elr": {"strength": 7.0}} if recipe.data.dataset == "cifar100" else {}


def tried(recipe: RunConfig, classes: int) -> dict[str, list[dict]]:
    """Settings besides the published one, three of each at most."""
    wrong = round(recipe.data.noise_rate * (1 - 1 / classes), 3)
    mentors = [{"mentor": str(path.relative_to(ROOT))} for path in sorted(RESULTS.glob("mentor-*.safetensors"))]
    return {
        "l2rw": [{"total": 0.3}, {"total": 0.1}, {"trusted": 0}],
        "mwnet": [{"normalise": True}, {"normalise": True, "rate": 3e-4}, {"exact": True}],
        "mentornet": [{"percentile": 0.7}, {"burn_in": 0.05}, *mentors[:1]],
        "coteaching": [{"drop": wrong}, {"rise": 0.2}, {"drop": wrong, "rise": 0.2}],
        "gce": [{"q": 0.5}, {"q": 0.9}, {"q": 1.0}],
        "elr": [{"strength": 1.0}, {"strength": 7.0}, {"keep": 0.9}],
        "focal": [{"gamma": 0.5}, {"gamma": 1.0}],
        "self_paced": [{"start": 0.3, "end": 0.6}, {"end": 0.7}, {"regulariser": "linear", "end": 0.7}],
    }


def config_of(asked: argparse.Namespace) -> RunConfig:
    """The recipe, on the device and with the data that were asked for."""
    recipe = get_recipe(asked.recipe)
    data = replace(recipe.data, folder=asked.data_dir)
    network = asked.network or recipe.network
    return replace(recipe, data=data, network=network, device=asked.device, methods=("uniform",), strategy=None)


def choose(asked: argparse.Namespace) -> None:
    """Train every setting, and keep the best of each method and what it was chosen from."""
    config = config_of(asked)
    pool = load_pool(config.data)
    data = replace(config.data, train_on_all=False)
    if config.data.train_on_all:  # all but the validation samples, which are to judge
        data = replace(data, train_size=len(pool.samples) - data.val_size)
    config, found = replace(config, data=data), {}
    for method, settings in tried(config, pool.samples.num_classes).items():
        scores = {json.dumps(knobs): judged(config, pool, method, knobs) for knobs in [{}, *settings]}
        best = max(scores, key=lambda knobs: statistics.fmean(scores[knobs]))
        found[method] = {"chosen": json.loads(best), "validation_accuracy": scores}
        print(method, best, {knobs: round(100 * statistics.fmean(own), 1) for knobs, own in scores.items()}, flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.recipe}-settings.json").write_text(json.dumps(found, indent=1) + "\n")


def judged(config: RunConfig, pool: Pool, method: str, knobs: dict) -> list[float]:
    """Accuracy at the last epoch on the half of the validation samples that no method sees, of every seed."""
    own = {**published(config).get(method, {}), **knobs}
    comparison, scores = Comparison(replace(config, knobs={method: own}), pool), []
    for seed in SEEDS:
        splits = Splits(*(part.to(config.device) for part in comparison.splits(seed)))
        judges, trusted = stratified_split(splits.val, (len(splits.val) // 2,), seed)
        made = comparison.method(method, splits)
        training = Training(
            comparison.make_model, splits.train, trusted, made, seed, config.data.augmentation, name=method
        )
        (one,) = train([training], config.training).trained
        task, precision = TASKS[config.training.task], config.training.precision
        scores.append(0.0 if one.failure else score(one.slot.method.networks[0], judges, task, precision))
    return scores


def compare(asked: argparse.Namespace, more: list[str]) -> None:
    """`autoweight compare` with all rivals, at published settings or at those chosen where they are others."""
    settings, methods = published(get_recipe(asked.recipe)), METHODS
    if asked.chosen:
        found = json.loads((RESULTS / f"{asked.recipe}-settings.json").read_text())
        better = {method: one["chosen"] for method, one in found.items() if one["chosen"]}
        settings = {method: {**settings.get(method, {}), **knobs} for method, knobs in better.items()}
        methods = ("uniform", *better, "oracle")
    knobs = [f"{method}.{knob}={value}" for method, own in settings.items() for knob, value in own.items()]
    words = ["compare", asked.recipe, "--methods", ",".join(methods), "--seeds", str(asked.seeds)]
    words += ["--data-dir", asked.data_dir] * bool(asked.data_dir) + ["--network", asked.network] * bool(asked.network)
    run([*words, "--device", asked.device, *(word for one in knobs for word in ("--knob", one)), *more])


def cost(asked: argparse.Namespace) -> None:
    """Time of a step of each method in turns, relative to plain training in the same run; on a GPU, memory, too."""
    config = config_of(asked)
    comparison = Comparison(replace(config, knobs=published(config)), load_pool(config.data))
    splits = Splits(*(part.to(config.device) for part in comparison.splits(0)))
    works, memory = {}, {}
    for method in ("uniform", "auto", *COMPARED):
        before = start_memory(config.device)
        made = comparison.method(method, splits)
        training = Training(comparison.make_model, splits.train, splits.val, made, 0, config.data.augmentation)
        slots = make_slots([training], config.training)
        works[method] = partial(_make_steps(slots, config.training, 10_000).run, 5_000, 5_000 + asked.steps)
        works[method]()
        memory[method] = 0 if config.device == "cpu" else torch.cuda.max_memory_allocated() - before
    seconds: dict[str, list[float]] = {method: [] for method in works}
    for _ in range(asked.repeats):  # in turns, since a machine's pace changes with time
        for method, work in works.items():
            began = clock(config.device)
            work()
            seconds[method].append((clock(config.device) - began) / asked.steps)
    medians = {method: statistics.median(own) for method, own in seconds.items()}
    print("| method | ms a step | against plain | extra MB |\n|---|---|---|---|")
    for method, median in medians.items():
        extra = "" if config.device == "cpu" else f"{(memory[method] - memory['uniform']) / 2**20:.0f}"
        print(f"| {method} | {1000 * median:.2f} | {median / medians['uniform']:.2f} | {extra} |")


def start_memory(device: str) -> int:
    """Begin to watch for a GPU's peak; what is taken now."""
    if device == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def clock(device: str) -> float:
    """Seconds: of this process on a CPU, which others may share; on a GPU, once it has done what it was given."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def mentor(asked: argparse.Namespace) -> None:
    """Learn a mentor on a recipe's data, whose wrong labels are known, and keep it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    learn_mentor(config_of(asked), seed=MENTOR_SEED).save(RESULTS / f"mentor-{asked.recipe}.safetensors")


def table(asked: argparse.Namespace) -> None:
    """Finished comparisons as one table, each kept as a JSON in results/rivals/; seconds are relative to uniform's."""
    print("| method | settings | told | accuracy % | std. error | recovered | seconds |")
    print("|---|---|---|---|---|---|---|")
    for folder in map(Path, asked.recipe.split(",")):
        knobs = yaml.safe_load((folder / "config.yaml").read_text())["knobs"]
        result = json.loads((folder / "result.json").read_text()) | {"knobs": knobs}
        (RESULTS / f"{result['recipe']}-{folder.name}.json").write_text(json.dumps(result, indent=1) + "\n")
        plain = statistics.fmean(result["methods"]["uniform"]["train_seconds"])
        for method, values in result["methods"].items():
            own = values["test_accuracy"]
            error = f"{100 * statistics.stdev(own) / len(own) ** 0.5:.1f}" if len(own) > 1 else "-"
            setting = ", ".join(f"{knob} {value}" for knob, value in knobs.get(method, {}).items()) or "default"
            recovered = result.get("recovered", {}).get(method)  # nothing, where nothing is wrong
            shown = "" if recovered is None else f"{recovered:z.2f}"
            figures = f"{100 * statistics.fmean(own):.1f} | {error} | {shown}"
            ratio = statistics.fmean(values["train_seconds"]) / plain
            print(f"| {method} | {setting} | {told_of(method).partition('.')[0]} | {figures} | {ratio:.1f} |")


PARTS = {"choose": choose, "compare": compare, "cost": cost, "mentor": mentor, "table": table}


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("recipe", help="a recipe, or run folders for table, with commas between them")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--network", default="", help="another than the recipe's; compare takes it, too")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    asked, more = parser.parse_known_args()
    compare(asked, more) if asked.part == "compare" else PARTS[asked.part](asked)


if __name__ == "__main__":
    main()
