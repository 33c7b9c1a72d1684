"""What each kind of search, and each of its parts, is worth on digits: the tables of docs/search.md.

    python benchmarks/digits_search.py all --seeds 5         every variant; about a minute a search on two cores
    python benchmarks/digits_search.py cmaes constant        only these
    python benchmarks/digits_search.py transfer              one strategy on another network and other noise rates
    python benchmarks/digits_search.py cifar10-noise-64-0    the same with a kept strategy of results/strategies
    python benchmarks/digits_search.py agents --first-seed 20 --seeds 10 --processes 16 --out agents.jsonl
                                                             all agents on the recipe as it is, side by side
    python benchmarks/digits_search.py elsewhere --first-seed 20 --seeds 8   two agents elsewhere than at what auto does
    python benchmarks/digits_search.py features --first-seed 20 --seeds 3    the memory's features, stages or one theta

A search with seed s sees data of seed 10,000 + s; what it finds is trained on the unseen data seeds 0 to 4, and the
share of the gap between uniform and oracle that it closes is the mean over those. Lines of JSON go to
results/digits_search.jsonl, or to --out, from which the tables are printed; variants that are there already are not
run again. (Lines that are named `belief` are of the recipe with an earlier gate.)
"""

import argparse
import json
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import torch

from autoweight.config import ActorCriticConfig, AgentName, CmaesConfig, RunConfig, SearchConfig
from autoweight.config.presets import losses, rare
from autoweight.recipes import get_recipe
from autoweight.runs import compare, find
from autoweight.runs.folder import RunFolder
from autoweight.strategy.files import RUN_FILE

RESULTS = Path(__file__).parents[1] / "results" / "digits_search.jsonl"
KEPT = {path.stem: path for path in sorted(RESULTS.parent.glob("strategies/cifar10-noise-*.safetensors"))}
TEST_SEEDS = 5
ACTOR_CRITIC = SearchConfig(agent="actor-critic")
HALF = SearchConfig(proxy_epochs=30, num_episodes=26, choice_rounds=4)
FEW = {"num_workers": 11, "num_episodes": 6, "choice_rounds": 2}
# Around margins, on the same steps of 0.2 of the box, without warm-up.
FROM_MARGINS = SearchConfig(
    **FEW,
    features=("margin",),
    start={"margin": 4.0},
    warmup_stages=0,
    cmaes=CmaesConfig(sigma=0.2),
    actor_critic=ActorCriticConfig(noise_start=0.2, noise_end=0.1),
)
RECIPE = get_recipe("digits-noise").search
LAST_GUESS = {"num_episodes": 15, "choice_rounds": 0}
SAMPLED = replace(ACTOR_CRITIC, actor_critic=replace(ACTOR_CRITIC.actor_critic, update="sampled"))

VARIANTS: dict[str, tuple[str, SearchConfig]] = {
    "cmaes": ("digits-noise", SearchConfig(agent="cmaes")),
    "actor-critic": ("digits-noise", ACTOR_CRITIC),
    "constant": ("digits-noise", SearchConfig(agent="constant")),
    "actor-critic without DNR": ("digits-noise", replace(ACTOR_CRITIC, reward="plain")),
    "actor-critic without 3SM": ("digits-noise", replace(ACTOR_CRITIC, stagewise=False)),
    "actor-critic without FDU": ("digits-noise", SAMPLED),
    "cmaes, stages from the start": ("digits-noise", SearchConfig(cmaes=CmaesConfig(coarse_share=0))),
    "cmaes, last guess": ("digits-noise", SearchConfig(**LAST_GUESS)),
    "cmaes, half the epochs, twice the episodes": ("digits-noise", HALF),
    "cmaes, half the epochs, twice the episodes, head start": ("digits-noise", replace(HALF, head_start=2)),
    "cmaes without DNR": ("digits-noise", SearchConfig(reward="plain")),
    "cmaes without 3SM": ("digits-noise", SearchConfig(stagewise=False)),
    "cmaes, normalised": ("digits-noise", SearchConfig(normalise=True)),
    "cmaes, from small losses": ("digits-noise", losses(SearchConfig())),
    "cmaes, few trainings": ("digits-noise", SearchConfig(**FEW)),
    "constant, few trainings": ("digits-noise", SearchConfig(agent="constant", **FEW)),
    "cmaes, few trainings, from small losses": ("digits-noise", losses(SearchConfig(**FEW))),
    "trust-region, few trainings, from small losses": (
        "digits-noise",
        replace(losses(SearchConfig(**FEW)), agent="trust-region"),
    ),
    **{
        f"{place}, {agent}": ("digits-noise", replace(settings, agent=agent))
        for place, settings in (("memory", FROM_MARGINS), ("recipe", RECIPE))
        for agent in get_args(AgentName)
    },
}
FEATURES = {
    "recipe, one theta": replace(RECIPE, stagewise=False),
    "recipe, with history": replace(RECIPE, features=("belief", "history")),
    "recipe, with entropy": replace(RECIPE, features=("belief", "entropy")),
    "memory, over the batch": replace(FROM_MARGINS, margin_scale="batch"),
    "memory, with history": replace(FROM_MARGINS, features=("margin", "history")),
    "memory, with entropy": replace(FROM_MARGINS, features=("margin", "entropy")),
}
VARIANTS |= {name: ("digits-noise", search) for name, search in FEATURES.items()}
BY_CLASS = {"label_feature": "class_frequency"}
RARE = rare(SearchConfig())
SATURATING = replace(RARE, start={}, cmaes=CmaesConfig())


def coarse(search: SearchConfig, share: float) -> SearchConfig:
    """A search that looks for one theta in this share of its episodes."""
    return replace(search, cmaes=replace(search.cmaes, coarse_share=share))


for recipe in ("longtail", "imbalance"):
    own = replace(get_recipe(f"digits-{recipe}").search, **FEW)
    region = replace(own, agent="trust-region")
    for name, search in {
        f"{recipe}, the recipe with few trainings, cmaes": own,
        f"{recipe}, the recipe with few trainings, trust-region": region,
        f"{recipe}, the recipe with few trainings, trust-region from 0.1": replace(
            region, trust_region=replace(region.trust_region, radius=0.1)
        ),
        recipe: RARE,
        f"{recipe}, frequency over classes": replace(RARE, **BY_CLASS),
        f"{recipe}, label alone": replace(RARE, features=("label",)),
        f"{recipe}, label alone, frequency over classes": replace(RARE, features=("label",), **BY_CLASS),
        f"{recipe}, one theta": coarse(get_recipe(f"digits-{recipe}").search, 1.0),
        f"{recipe}, stages from the start": coarse(get_recipe(f"digits-{recipe}").search, 0.0),
        f"{recipe}, last guess": replace(RARE, **LAST_GUESS),
        f"{recipe}, few trainings": replace(RARE, **FEW),
        f"{recipe}, around a bias of 0": SATURATING,
        f"{recipe}, around a bias of 0, stages from the start": coarse(SATURATING, 0.0),
        f"{recipe}, not normalised": replace(SATURATING, normalise=False),
        f"{recipe}, not normalised, stages from the start": coarse(replace(SATURATING, normalise=False), 0.0),
    }.items():
        VARIANTS[name] = (f"digits-{recipe}", search)

GROUPS = {
    "all": list(VARIANTS),
    "agents": [f"recipe, {agent}" for agent in get_args(AgentName)],
    "features": ["recipe, cmaes", "memory, cmaes", *FEATURES],
    "elsewhere": [name for name in VARIANTS if "few trainings, from" in name or "the recipe with few" in name],
}

PLACES = {
    f"to {network}, noise rate {noise_rate}": (network, noise_rate)
    for network, noise_rate in (("mlp", 0.4), ("small_cnn", 0.4), ("mlp", 0.2), ("mlp", 0.6))
}


def accuracies(config: RunConfig, method: str, strategy: Path | None = None) -> list[float]:
    """Last-epoch test accuracy of a method on the unseen seeds."""
    config = replace(
        config, methods=(method,), seed=0, num_seeds=TEST_SEEDS, strategy=None if strategy is None else str(strategy)
    )
    with tempfile.TemporaryDirectory() as folder:
        result = compare.prepare(config).run(RunFolder(Path(folder)), lambda *progress: None)
    values: list[float] = result["methods"][method]["test_accuracy"]
    return values


@cache
def baselines(recipe: str, network: str, noise_rate: float) -> tuple[list[float], list[float]]:
    """Accuracies of uniform and oracle."""
    config = get_recipe(recipe)
    config = replace(config, network=network, data=replace(config.data, noise_rate=noise_rate))
    return accuracies(config, "uniform"), accuracies(config, "oracle")


def known(results: Path) -> list[dict]:
    """All lines of the results."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def evaluate(config: RunConfig, strategy: Path) -> dict:
    """How a strategy does on the unseen seeds."""
    law = accuracies(config, "law", strategy)
    uniform, oracle = baselines(config.recipe, config.network, config.data.noise_rate)
    gap = statistics.fmean(oracle) - statistics.fmean(uniform)
    recovered = (statistics.fmean(law) - statistics.fmean(uniform)) / gap if gap else None
    return {"law": law, "uniform": uniform, "oracle": oracle, "recovered": recovered}


def run(name: str, seed: int) -> Iterator[dict]:
    """One search and its evaluation."""
    recipe, search = VARIANTS[name]
    config = replace(get_recipe(recipe), search=search, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        strategy = find.find_strategy(config, find.prepare(config), RunFolder(Path(folder)), lambda progress: None)
        outcome = evaluate(config, Path(folder) / RUN_FILE)
    info = {key: strategy.info[key] for key in ("seconds", "network_steps", "validation_gain", "dropped_trainings")}
    yield {"variant": name, "seed": seed, "threads": torch.get_num_threads(), **info, **outcome}


def transfer(name: str, seed: int) -> Iterator[dict]:
    """The recipe's search, and what it found in other places."""
    config = replace(get_recipe("digits-noise"), seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        find.find_strategy(config, find.prepare(config), RunFolder(Path(folder)), lambda progress: None)
        yield from move(name, Path(folder) / RUN_FILE, seed)


def move(name: str, strategy: Path, seed: int) -> Iterator[dict]:
    """A strategy on an MLP and a small CNN, and at other noise rates."""
    config = get_recipe("digits-noise")
    for place, (network, noise_rate) in PLACES.items():
        moved = replace(config, network=network, data=replace(config.data, noise_rate=noise_rate))
        yield {"variant": f"{name} {place}", "seed": seed, **evaluate(moved, strategy)}


def measure(name: str, seed: int) -> list[dict]:
    """The lines of one variant and search seed."""
    if name in KEPT:
        return list(move(name, KEPT[name], seed))
    return list((run if name in VARIANTS else transfer)(name, seed))


def measure_all(jobs: list[tuple[str, int]], processes: int) -> Iterator[list[dict]]:
    """The lines of all, each as soon as it is there; with several processes, side by side on one thread each.

    One that fails is raised once the others are there.
    """
    if processes == 1:
        yield from (measure(*job) for job in jobs)
        return
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, fresh, torch.set_num_threads, (1,)) as pool:
        failed = None
        for done in as_completed([pool.submit(measure, *job) for job in jobs]):
            if error := done.exception():
                failed = failed or error  # the others' lines are worth keeping
            else:
                yield done.result()
    if failed is not None:
        raise failed


def show(lines: list[dict]) -> None:
    """The table of all that was measured."""
    titles = "recovered: mean   min  seeds   law %  uniform %  oracle %  seconds"
    print(f"\n{'variant':56}{titles}")
    for name in dict.fromkeys(line["variant"] for line in lines):
        own = [line for line in lines if line["variant"] == name]
        shares = [line["recovered"] for line in own if line["recovered"] is not None]
        share = f"{statistics.fmean(shares):15.3f}{min(shares):6.3f}" if shares else " " * 21
        means = [100 * statistics.fmean(x for line in own for x in line[k]) for k in ("law", "uniform", "oracle")]
        seconds = statistics.fmean(line.get("seconds", float("nan")) for line in own)
        print(f"{name:56}{share}{len(own):7}{means[0]:8.2f}{means[1]:11.2f}{means[2]:10.2f}{seconds:9.1f}")


def main() -> None:
    """Run what was asked for and is not there yet; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = f"{', '.join([*GROUPS, 'transfer'])}, or any of: {', '.join([*VARIANTS, *KEPT])}"
    parser.add_argument("variants", nargs="*", help=names)
    parser.add_argument("--seeds", type=int, default=5, help="search seeds; kept ones have theirs")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=1, help="searches side by side")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of JSON lines to append to")
    arguments = parser.parse_args()
    wanted = [name for given in arguments.variants for name in GROUPS.get(given, [given])]
    if unknown := set(wanted) - {*VARIANTS, *KEPT, "transfer"}:
        parser.error(f"unknown variants: {', '.join(sorted(unknown))}.")
    there = {(line["variant"], line["seed"]) for line in known(arguments.out)}
    jobs = []
    for name in wanted:
        lines = [name] if name in VARIANTS else [f"{name} {place}" for place in PLACES]
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        jobs += [(name, seed) for seed in ([0] if name in KEPT else seeds) if not {(x, seed) for x in lines} <= there]
    for lines in measure_all(jobs, arguments.processes):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with arguments.out.open("a") as file:
            file.write(text)
        print(text, end="", flush=True)
    show(known(arguments.out))


if __name__ == "__main__":
    main()
