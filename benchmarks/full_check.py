"""What a training of full size says about the strategies of proxy_check.py, on validation images, on a GPU.

    python benchmarks/full_check.py DATA_DIR                              ResNet-18, 100 epochs, to 65 %: 5 minutes
    python benchmarks/full_check.py DATA_DIR --recipe cifar10-noise-wide --epochs 120 --weight-decay 5e-4 --stages 20 \
        --only uniform "strategy cifar10-noise-0"                         the schedule of WRN-28-10
    python benchmarks/full_check.py DATA_DIR --normalise --only "strategy cifar10-noise-64-0"     weights of a mean of 1
    python benchmarks/full_check.py                                       only what was measured

Strategies that begin alike share what they have in common, so that trying when to begin or to stop costs little. Every
stage's end tells the accuracy on the validation images, which the training does not see, by class too, and the share of
wrong labels that the network has memorised. Every check is a JSON in results/full/.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from functools import partial

import torch
from proxy_check import RESULTS, SEED, STAGES, found, noise_strategies
from torch import Tensor, nn

from autoweight.config import TrainingConfig
from autoweight.data import Samples, Splits, load_pool
from autoweight.data.loader import Loader
from autoweight.methods.method import Weighted
from autoweight.models import make_network
from autoweight.recipes import get_recipe
from autoweight.runs.find import search_splits
from autoweight.strategy import Rule
from autoweight.strategy.features import label_values
from autoweight.strategy.stages import stage_starts
from autoweight.training.captured import CapturedSteps
from autoweight.training.evaluate import score
from autoweight.training.steps import PlainSteps, Slot
from autoweight.training.task import TASKS
from autoweight.workers.base import ParamsWeigher

RECIPES = ("cifar10-noise", "cifar10-noise-wide")
FOLDER = RESULTS / "full"


@dataclass
class Moment:
    """A network after some stages of a strategy, and how it got there."""

    states: list[Tensor]
    val_accuracy: list[float]
    class_accuracy: list[list[float]]
    memorised: list[float]


class Branches:
    """Trainings that share their beginnings: what was trained once is not trained again."""

    def __init__(self, splits: Splits, network: str, training: TrainingConfig, normalise: bool, device: str) -> None:
        self.train, self.val = splits.train.to(device), splits.val.to(device)
        self.val_by_class = [of_class(self.val, label) for label in range(self.val.num_classes)]
        self.wrong = wrong_ones(self.train)
        self.training = training
        make_model = partial(make_network, network, self.train.input_shape, self.train.num_classes)
        torch.manual_seed(SEED)
        self.model: nn.Module = make_model().to(device)
        self.params = torch.zeros(3, device=device)
        values = label_values(splits.train.class_counts, "log_frequency").to(device)
        weigher = ParamsWeigher(Rule(normalised=normalise), values, self.params)
        loader = Loader(self.train, training.batch_size, SEED, "crop_flip")
        self.slot = Slot(self.model, loader, Weighted(weigher), training)
        total = loader.steps_per_epoch * training.epochs
        self.starts = stage_starts(total, STAGES)
        self.steps = (CapturedSteps if device == "cuda" else PlainSteps)([self.slot], training, total)
        self.moments: dict[tuple[tuple[float, ...], ...], Moment] = {(): Moment(self._states(), [], [], [])}

    def run(self, table: Tensor) -> Moment:
        """The end of a strategy's training, from the last moment that it has in common with an earlier one."""
        rows = tuple(map(tuple, table.tolist()))
        known = max(stage for stage in range(len(rows) + 1) if rows[:stage] in self.moments)
        moment = self.moments[rows[:known]]
        with torch.no_grad():
            for place, value in zip(self.slot.tensors(), moment.states, strict=True):
                place.copy_(value)
        for stage in range(known, len(rows)):
            self.params.copy_(table[stage])
            self.steps.run(self.starts[stage], self.starts[stage + 1])
            memorised, over_all, *by_class = [
                score(self.model, part, TASKS[self.training.task], self.training.precision)
                for part in (self.wrong, self.val, *self.val_by_class)
            ]
            moment = Moment(
                self._states(),
                [*moment.val_accuracy, over_all],
                [*moment.class_accuracy, by_class],
                [*moment.memorised, memorised],
            )
            self.moments[rows[: stage + 1]] = moment
        return moment

    def _states(self) -> list[Tensor]:
        return [state.detach().clone() for state in self.slot.tensors()]


def of_class(samples: Samples, label: int) -> Samples:
    """The samples of one class."""
    return samples.take((samples.labels == label).nonzero().squeeze(1))


def wrong_ones(samples: Samples, count: int = 2000) -> Samples:
    """The first samples whose label is wrong."""
    return samples.take(samples.clean.logical_not().nonzero().squeeze(1)[:count])


def check(asked: argparse.Namespace) -> dict:
    """Train the strategies that were asked for."""
    config = get_recipe(asked.recipe)
    config = replace(config, data=replace(config.data, folder=asked.data_dir, train_size=asked.images))
    splits = search_splits(config, load_pool(config.data))
    training = replace(
        config.training, epochs=asked.epochs, weight_decay=asked.weight_decay, compile=asked.device == "cuda"
    )
    tables = {"uniform": torch.zeros(STAGES, 3)} | noise_strategies()
    del tables["oracle"]
    for name in set(asked.only or []) - set(tables):
        tables[name] = found(name.removeprefix("strategy "))
    began = time.perf_counter()
    branches = Branches(splits, asked.network, training, asked.normalise, asked.device)
    strategies = {}
    for name in asked.only or tables:
        end = branches.run(tables[name][: asked.stages])
        strategies[name] = {
            "val_accuracy": end.val_accuracy,
            "class_accuracy": end.class_accuracy,
            "memorised": end.memorised,
        }
        print(f"{time.perf_counter() - began:6.0f} s  {name}", flush=True)
    return {
        "recipe": asked.recipe,
        "network": asked.network,
        "images": asked.images,
        "epochs": asked.epochs,
        "weight_decay": asked.weight_decay,
        "normalised": asked.normalise,
        "seed": SEED,
        "device": torch.cuda.get_device_name() if asked.device == "cuda" else asked.device,
        "seconds": time.perf_counter() - began,
        "strategies": strategies,
    }


def show() -> None:
    """Accuracy and the share of wrong labels memorised, at the end of every other stage; the worst class's below."""
    for path in sorted(FOLDER.glob("*.json")):
        one = json.loads(path.read_text())
        title = f"{one['recipe']}, {one['network']}, {one['images']} images, {one['epochs']} epochs"
        title += f", decay {one['weight_decay']:g}{', normalised' if one.get('normalised') else ''}"
        print(f"\n{title}: accuracy / memorised, in percent\n{'':80}", end="")
        print("".join(f"{100 * stage // STAGES:>8} %" for stage in range(2, STAGES + 1, 2)))
        for name, own in one["strategies"].items():
            pairs = list(zip(own["val_accuracy"], own["memorised"], strict=True))[1::2]
            print(f"{name:80}" + "".join(f"{100 * good:6.1f}/{100 * bad:2.0f} " for good, bad in pairs))
            if "class_accuracy" in own:  # not measured by the first checks
                worst = map(min, own["class_accuracy"][1::2])
                print(f"{'  in the worst class':80}" + "".join(f"{100 * one:6.1f}    " for one in worst))


def main() -> None:
    """Check what was asked for, and show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", nargs="?", help="where CIFAR-10 is")
    parser.add_argument("--recipe", default=RECIPES[0], choices=RECIPES, help="its data, decay and drops")
    parser.add_argument("--network", default="resnet18")
    parser.add_argument("--images", type=int, default=45_000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--weight-decay", type=float, help="else the recipe's")
    parser.add_argument("--normalise", action="store_true", help="weights to a mean of 1")
    parser.add_argument("--stages", type=int, default=13, help=f"of {STAGES}, to run")
    parser.add_argument("--only", nargs="+", metavar="STRATEGY", help="else all that have a name here")
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    if asked.data_dir:
        if asked.weight_decay is None:
            asked.weight_decay = get_recipe(asked.recipe).training.weight_decay
        result = check(asked)
        FOLDER.mkdir(exist_ok=True)
        name = "-".join(map(str, (asked.recipe, asked.network, asked.images, asked.epochs, asked.weight_decay)))
        path = FOLDER / f"{name}{'-normalised' if asked.normalise else ''}.json"
        if path.exists():  # another command's strategies stay
            before = json.loads(path.read_text())
            result["strategies"] = before["strategies"] | result["strategies"]
            result["seconds"] += before["seconds"]
        path.write_text(json.dumps(result) + "\n")
    show()


if __name__ == "__main__":
    main()
