"""What a search's proxy says about hand-set strategies and some whose worth on a full training is known, on a GPU.

    python benchmarks/proxy_check.py cifar10-noise DATA_DIR             the recipe's proxy
    python benchmarks/proxy_check.py cifar10-noise DATA_DIR --network small_resnet --images 20000 --epochs 20
    python benchmarks/proxy_check.py cifar10-longtail DATA_DIR --epochs 30 --head-start 18 --no-augment
    python benchmarks/proxy_check.py cifar10-imbalance DATA_DIR --images 5000 --epochs 100 --head-start 8
    python benchmarks/proxy_check.py                                    only the table of what was measured

A proxy is good when it ranks strategies as a full training does. One episode trains fifteen of them from one start, an
oracle among them where labels are wrong; 40 to 80 s. Every check is a JSON in results/proxies/.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from autoweight import Oracle, Strategy
from autoweight.config import Feature, RunConfig
from autoweight.data import load_pool
from autoweight.finding.reward import reward_scale
from autoweight.methods.method import Weighted
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.runs.find import search_splits
from autoweight.strategy import Rule
from autoweight.strategy.stages import stage_at
from autoweight.training.steps import Slot
from autoweight.workers import GraphedWorkers, Problem

RESULTS = Path(__file__).parents[1] / "results"
STAGES, SEED = 20, 1
LABEL_FEATURES: tuple[Feature, ...] = ("loss", "entropy", "label")
NOISE_FEATURES: tuple[Feature, ...] = ("loss", "entropy")
RECIPES = ("cifar10-noise", "cifar100-noise", "cifar10-longtail", "cifar100-longtail", "cifar10-imbalance")


@dataclass(frozen=True)
class Proxy:
    """What is told apart."""

    recipe: str
    images: int
    epochs: int
    head_start: int
    augment: bool
    network: str = "small_resnet"


def held(params: list[float], percent: int = 10) -> Tensor:
    """No weights up to some percent of a training, then one theta and bias."""
    return then(torch.zeros(STAGES, len(params)), percent, params)


def then(table: Tensor, percent: int, params: list[float]) -> Tensor:
    """A table that changes to one theta and bias."""
    stage = STAGES * percent // 100
    return torch.cat([table[:stage], torch.tensor(params).expand(STAGES - stage, -1)])


def found(name: str) -> Tensor:
    """The table of a kept strategy; of one with more stages, what it does in the middle of each of ours."""
    table = Strategy.load(RESULTS / f"strategies/{name}.safetensors").table
    return table[[stage_at((stage + 0.5) / STAGES, len(table)) for stage in range(STAGES)]]


def label_strategies() -> dict[str, Tensor]:
    """Tables of loss, entropy, label and bias: rare classes count more, by about a power of their frequency."""
    label_and_bias = {
        10: [(-0.25, -2.0), (-0.5, -2.0), (-2.0, -1.0)],
        50: [(-0.5, -2.0)],
        70: [(-0.25, -2), (-0.5, -2), (-0.5, -4), (-0.75, -3), (-0.75, -4.5), (-1, -4), (-1, 0), (-2, -1)],
        90: [(-0.5, -2.0)],
    }
    tables = {
        f"label {label:g}, bias {bias:g}, from {percent} % on": held([0.0, 0.0, label, bias], percent)
        for percent, choices in label_and_bias.items()
        for label, bias in choices
    }
    return tables | {f"strategy {name}": found(name) for name in ("cifar10-longtail-0", "cifar100-longtail-0")}


def rare_class_strategies() -> dict[str, Tensor]:
    """Tables of loss, entropy, label and bias, where two of ten classes are rare and label is class_frequency.

    A rare class's is then -2 and a frequent one's 0.5, so that far below 0 a label theta of -t weighs samples of rare
    classes exp(5 t) times as much: 2, 5, 25 or 150 times.
    """
    labels = {
        0: [-0.32],
        10: [-0.16, -0.32, -0.64, -1.0],
        30: [-0.32, -0.64],
        50: [-0.16, -0.32, -0.64, -1.0],
        70: [-0.32, -0.64],
    }
    tables = {
        f"label {label:g}, from {percent} % on": held([0.0, 0.0, label, -4.0], percent)
        for percent, choices in labels.items()
        for label in choices
    }
    for percent in (10, 50):
        tables[f"label -0.32, loss 0.3, from {percent} % on"] = held([0.3, 0.0, -0.32, -4.0], percent)
    return tables


def noise_strategies() -> dict[str, Tensor]:
    """Tables of loss, entropy and bias; the oracle takes the last one's place."""
    small_losses = [-8.0, 0.0, -2.0]
    sure_ones = [-4.0, -1.6, -4.2]  # small losses that the network is sure of: little is left to learn
    tables = {
        "loss -1": held([-1.0, 0.0, 0.0]),
        "loss -10, bias -5": held([-10.0, 0.0, -5.0]),
        "loss -8, entropy -4, bias -2": held([-8.0, -4.0, -2.0]),
    }
    for percent in (10, 20, 30, 40):
        tables[f"loss -8, bias -2, from {percent} % on"] = held(small_losses, percent)
    for percent in (50, 55):
        tables[f"loss -8, bias -2, from 20 % on; from {percent} % sure ones"] = then(
            held(small_losses, 20), percent, sure_ones
        )
    for name in ("cifar10-noise-first", "cifar10-noise-augmented", "cifar10-noise-1", "cifar10-noise-0"):
        tables[f"strategy {name}"] = found(name)
    again = then(found("cifar10-noise-0"), 50, small_losses)
    tables["strategy cifar10-noise-0; from 50 % loss -8, bias -2"] = again
    tables["strategy cifar10-noise-0; from 50 % loss -8, bias -2; from 55 % sure ones"] = then(again, 55, sure_ones)
    tables["oracle"] = held([0.001, 0.0, 0.0])
    return tables


class WithOracle(GraphedWorkers):
    """The last worker knows the wrong labels, where there are any."""

    built = 0

    def _slot(self, start: nn.Module, group: int, strategy_params: Tensor) -> Slot:
        slot = super()._slot(start, group, strategy_params)
        self.built += 1
        if self.built == self.num_workers and not bool(self.train.clean.all()):
            slot = Slot(slot.model, slot.loader, Weighted(Oracle(clean=self.train.clean)), slot.config)
        return slot


def strategies_for(config: RunConfig) -> tuple[tuple[Feature, ...], dict[str, Tensor]]:
    """What to try on a recipe's bias, and the features that its thetas are of."""
    if config.data.imbalance == "step":
        return LABEL_FEATURES, rare_class_strategies()
    if config.data.imbalance == "longtail":
        return LABEL_FEATURES, label_strategies()
    return NOISE_FEATURES, noise_strategies()


def check(proxy: Proxy, data_dir: str) -> dict:
    """Train all strategies on a proxy; accuracies on the validation set by stage and strategy."""
    config = get_recipe(proxy.recipe)
    config = replace(
        config,
        data=replace(config.data, folder=data_dir, train_size=proxy.images),
        training=replace(config.training, epochs=proxy.epochs, compile=False),
    )
    features, tables = strategies_for(config)
    splits = search_splits(config, load_pool(config.data))
    problem = Problem(
        partial(make_network, proxy.network, (3, 32, 32), splits.train.num_classes),
        splits.train,
        splits.val,
        config.training,
        Rule(features, config.search.label_feature, normalised=config.search.normalise),
        augmentation="crop_flip",
        device="cuda",
        head_start=proxy.head_start,
        augment_stages=proxy.augment,
    )
    began = time.perf_counter()
    workers = WithOracle(problem, len(tables))
    workers.begin(SEED)
    params = torch.stack(list(tables.values()))
    outcomes = [workers.run_stage(stage, params[:, stage]) for stage in range(STAGES)]
    return {
        "proxy": asdict(proxy),
        "seed": SEED,
        "device": torch.cuda.get_device_name(),
        "seconds": time.perf_counter() - began,
        "names": list(tables),
        "accuracy": [outcome.score.tolist() for outcome in outcomes],
        "reference": [float(outcome.reference_score[0]) for outcome in outcomes],
    }


def search_return(recipe: str, differences: list[float]) -> float:
    """What a recipe's search would make of a strategy's differences to the reference, stage by stage."""
    config = get_recipe(recipe).search
    scales = [reward_scale(config, (stage + 1) / STAGES) for stage in range(config.episode_stages(STAGES))]
    return sum(scale * own for scale, own in zip(scales, differences, strict=False)) / sum(scales)


def show() -> None:
    """For every proxy, how each strategy ends, and what a search would see of it."""
    for path in sorted((RESULTS / "proxies").glob("*.json")):
        one = json.loads(path.read_text())
        reference, stages = one["reference"], one["accuracy"]
        print(f"\n{one['proxy']}: reference {100 * reference[-1]:.1f} %")
        gap = stages[-1][-1] - reference[-1] if one["names"][-1] == "oracle" else float("nan")
        print(f"{'points above it':80}{'at the end':>12}{'return of a search':>20}{'recovered':>12}")
        for position, name in enumerate(one["names"]):
            differences = [own[position] - other for own, other in zip(stages, reference, strict=True)]
            seen = 100 * search_return(one["proxy"]["recipe"], differences)
            print(f"{name:80}{100 * differences[-1]:12.1f}{seen:20.1f}{differences[-1] / gap:12.2f}")


def main() -> None:
    """Check the proxy that was asked for, and show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", choices=RECIPES)
    parser.add_argument("data_dir", nargs="?", help="where its data are")
    parser.add_argument("--images", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--head-start", type=int)
    parser.add_argument("--network")
    parser.add_argument(
        "--augment", action=argparse.BooleanOptionalAction, help="augment the stages too, not the head start alone"
    )
    asked = parser.parse_args()
    if asked.recipe:
        config = get_recipe(asked.recipe)
        proxy = Proxy(
            asked.recipe,
            asked.images or config.data.train_size,
            asked.epochs or config.search.proxy_epochs,
            config.search.head_start if asked.head_start is None else asked.head_start,
            config.search.augment_stages if asked.augment is None else asked.augment,
            asked.network or config.search.proxy_network,
        )
        name = "-".join(map(str, (proxy.recipe, proxy.network, proxy.images, proxy.epochs, proxy.head_start)))
        (RESULTS / "proxies").mkdir(exist_ok=True)
        path = RESULTS / "proxies" / f"{name}{'-augmented' * proxy.augment}.json"
        path.write_text(json.dumps(check(proxy, asked.data_dir)) + "\n")
    show()


if __name__ == "__main__":
    main()
