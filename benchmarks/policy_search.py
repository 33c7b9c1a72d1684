"""A policy instead of a table: what a search over tasks finds, judged against rules set by hand (docs/search-tasks.md).

    python benchmarks/policy_search.py            search a table and a policy on digits-many, judge, print the table
    python benchmarks/policy_search.py show       print what is in results/policy_search.jsonl

A policy's parameters follow at every step from what the training itself shows: the share of samples whose margin lies
below -0.3, how far margins fall into two groups, whether they are still rising, and how unequal the classes are. It
begins as the gated rule, which mixes a margin rule with no weighting by the first of these alone. Searches see data
seeds of their own; judged is last-epoch test accuracy on the unseen seeds 0 and 1. What is there already is not run
again. Each search took eight to ten minutes on a busy CPU.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from autoweight.config import CmaesConfig, RunConfig
from autoweight.data import Splits, load_pool
from autoweight.finding.agents.evolution import Evolution
from autoweight.finding.loop import SearchLoop
from autoweight.methods.method import Weighted
from autoweight.methods.oracle import Oracle
from autoweight.methods.uniform import Uniform
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.runs import find
from autoweight.strategy import Rule, Strategy, Weigher
from autoweight.strategy.memory import Memory
from autoweight.strategy.rule import weigh
from autoweight.strategy.shipped import load
from autoweight.strategy.view import View
from autoweight.training.evaluate import score
from autoweight.training.loop import Training, train
from autoweight.training.task import TASKS
from autoweight.workers import make_crew

RESULTS = Path(__file__).parents[1] / "results" / "policy_search.jsonl"
SEEDS = range(2)
BOUNDS = {
    "margin": 10.0,
    "margin*deep": 20.0,
    "bias": 3.0,
    "bias*deep": 10.0,
    "strength": 2.0,
    "strength*deep": 20.0,
    "strength*bimodality": 2.0,
    "strength*taken_back": 2.0,
    "strength*imbalance": 2.0,
    "memory": 3.0,
}
"""Half-widths of the box for a policy's parameters: each is a slope on a statistic, or what there is without."""
GATED = {"margin": 6.0, "strength": -0.33, "strength*deep": 11.1}
"""Full strength from 12 % of deep margins on, none below 3 %."""


def statistics_of(memory: Memory) -> Tensor:
    """What a training shows, `[4]`, each from -1 to 1: deep margins, bimodality, contradiction taken back,
    imbalance.
    """
    margins, visited = memory.columns["margin"], memory.columns["label"] >= 0
    shares = visited / visited.sum().clamp(min=1)
    deep = (shares * (margins < -0.3)).sum()
    away = margins - (shares * margins).sum()
    second, third, fourth = ((shares * away**power).sum() for power in (2, 3, 4))
    second = second.clamp(min=1e-8)
    bimodality = (third**2 / second**3 + 1) * second**2 / fourth.clamp(min=1e-16)
    contradicted, taken_back = memory.census.taken_back
    counts = memory.census.counts[:, 0].float()
    known = counts.where(counts > 0, counts.amax()).clamp(min=1)
    imbalance = (known.amax() / known.amin()).log() / log(100)
    return torch.stack([deep, bimodality, taken_back / contradicted.clamp(min=1e-3), imbalance]).float().clamp(-1, 1)


@dataclass(frozen=True)
class PolicyRule(Rule):
    """A margin rule, mean 1 within each class, mixed with no weighting; theta, bias and mixture follow the training."""

    features: tuple = ("margin",)
    within_class: bool = True

    @property
    def param_names(self) -> tuple[str, ...]:
        """The policy's parameters."""
        return tuple(BOUNDS)

    @property
    def bounds(self) -> Tensor:
        """Their box."""
        return torch.tensor(list(BOUNDS.values()))

    def weigh(
        self, strategy_params: Tensor, view: View, memory: Memory | None = None, indices: Tensor | None = None
    ) -> Tensor:
        """Weights `[batch]`; tensor operations alone, so that they can be stacked and captured."""
        assert memory is not None
        assert indices is not None
        seen, labels = statistics_of(memory), view.labels.long().clamp(min=0)
        margin = self._remembered(strategy_params[-1], view, labels, memory, indices)["margin"]
        theta = strategy_params[0] + strategy_params[1] * seen[0]
        bias = strategy_params[2] + strategy_params[3] * seen[0]
        strength = (strategy_params[4] + (strategy_params[5:9] * seen).sum()).clamp(0, 1)
        bold = weigh(margin.unsqueeze(-1), torch.stack([theta, bias]), False, view.valid)
        bold = memory.census.within_class(bold, labels, view.valid)
        return (1 + strength * (bold - 1)).where(view.valid, 0)


RULES: dict[str, Rule] = {"table": Rule(("margin",), within_class=True), "policy": PolicyRule()}


def _place(recipe: str, epochs: int = 0, **data: Any) -> RunConfig:
    config = get_recipe(recipe)
    training = replace(config.training, epochs=epochs or config.training.epochs)
    return replace(config, training=training, data=replace(config.data, **data))


PLACES: dict[str, RunConfig] = {
    "no wrong label": _place("digits-noise", noise="none", noise_rate=0.0),
    "no wrong label, 20 epochs": _place("digits-noise", 20, noise="none", noise_rate=0.0),
    "0.2": _place("digits-noise", noise_rate=0.2),
    "0.4": _place("digits-noise"),
    "0.4, 20 epochs": _place("digits-noise", 20),
    "0.6": _place("digits-noise", noise_rate=0.6),
    "asymmetric 0.3": _place("digits-noise", noise="asymmetric", noise_rate=0.3),
    "long tail": _place("digits-longtail"),
    "long tail, 0.3": _place("digits-longtail", noise="uniform", noise_rate=0.3),
    "two rare classes": _place("digits-imbalance"),
}

WEIGHERS: dict[str, Callable[[Splits], Weigher]] = {
    "uniform": lambda splits: Uniform(),
    "table": lambda splits: Strategy(found("table"), RULES["table"]),
    "gated": lambda splits: Strategy(RULES["policy"].place(GATED)[None], RULES["policy"]),
    "policy": lambda splits: Strategy(found("policy"), RULES["policy"]),
    "auto": lambda splits: load("auto"),
    "oracle": lambda splits: Oracle(splits.train.clean),
}


def lines() -> list[dict[str, Any]]:
    """All that was measured."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def write(line: dict[str, Any]) -> None:
    """Append a line to the results."""
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line)[:200], flush=True)


def found(kind: str) -> Tensor:
    """The parameters that a search found, `[stages, P]`; searched where they are not there yet."""
    for line in lines():
        if line.get("search") == kind:
            return torch.tensor(line["params"])
    config = get_recipe("digits-many")
    config = replace(config, search=replace(config.search, num_episodes=4, choice_rounds=1))
    job, rule = find.prepare(config), RULES[kind]
    search = replace(job.config, cmaes=CmaesConfig(sigma=0.15))
    if kind == "policy":
        search = replace(search, stagewise=False, start=GATED, cmaes=CmaesConfig(sigma=0.1))
    crew = make_crew(tuple(replace(problem, rule=rule) for problem in job.problems), search.num_workers)
    outcome = SearchLoop(crew, Evolution(search, rule, config.training.num_stages, seed=0), search).run()
    told = {"gain": outcome.gain, "seconds": outcome.seconds, "network_steps": outcome.network_steps}
    write({"search": kind, **told, "params": outcome.table.tolist()})
    return outcome.table


def judge(place: str, seed: int, kind: str) -> float:
    """Last-epoch test accuracy on an unseen data seed."""
    config = PLACES[place]
    splits = load_pool(config.data).splits(config.data, seed, final=True)
    make_model = partial(make_network, config.network, splits.train.input_shape, splits.train.num_classes)
    training = Training(make_model, splits.train, splits.val, Weighted(WEIGHERS[kind](splits)), seed)
    [trained] = train([training], config.training).trained
    return float(score(trained.slot.model, splits.test, TASKS["classification"], "float32"))


def table() -> Iterator[str]:
    """Mean accuracies in percent, as Markdown."""
    accuracies: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines():
        if "place" in line:
            accuracies[line["place"], line["kind"]].append(100 * line["accuracy"])
    yield f"| | {' | '.join(WEIGHERS)} |\n|---{'|---' * len(WEIGHERS)}|"
    for place in PLACES:
        own = [accuracies.get((place, kind), []) for kind in WEIGHERS]
        yield f"| {place} | {' | '.join(f'{fmean(values):.1f}' if values else '' for values in own)} |"


def main() -> None:
    """Search and judge what is not there yet, and print the table."""
    torch.set_num_threads(1)
    done = {(line["place"], line["seed"], line["kind"]) for line in lines() if "place" in line}
    for key in [] if "show" in sys.argv else [(p, s, k) for s in SEEDS for p in PLACES for k in WEIGHERS]:
        if key not in done:
            place, seed, kind = key
            write({"place": place, "seed": seed, "kind": kind, "accuracy": judge(*key)})
    print("\n".join(table()))


if __name__ == "__main__":
    main()
