"""Train methods over seeds and compare them: what `train` and `compare` do, one method and seed after the other."""

import platform
from collections.abc import Callable
from statistics import fmean
from typing import Any

import torch

import autoweight
from autoweight.config import RunConfig
from autoweight.data import Splits, check_training_data, load_splits
from autoweight.errors import RunError, UserError
from autoweight.methods import TrainingFacts, make_method
from autoweight.models import make_network
from autoweight.run_folder import RunFolder
from autoweight.strategy import Weigher
from autoweight.training.evaluate import accuracy
from autoweight.training.loop import StageReport, train

Listener = Callable[[int, int, str], Any]  # stages done over all trainings, stages in all, what is being done


def check(config: RunConfig) -> None:
    """Raise `UserError` for anything in the configuration that could not run, before a folder is made."""
    check_device(config.device)
    splits = load_splits(config.data, config.seed, final=True)
    check_training_data(splits.train, splits.val, config.training.batch_size)
    make_network(config.network, tuple(splits.train.inputs.shape[1:]), splits.train.num_classes)
    for method in config.methods:
        _make_weigher(config, method, splits)


def check_device(device: str) -> None:
    """Raise `UserError` unless tensors can live on the device."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"there is no device '{device}' here: use cpu, or cuda where PyTorch finds a GPU.") from error


def compare(config: RunConfig, folder: RunFolder, listen: Listener) -> dict[str, Any]:
    """Train every method on every seed, going on from what the folder holds; returns the `methods` part of a result."""
    num_stages = config.training.num_stages
    trainings = [(seed, method) for seed in config.seeds for method in config.methods]
    for position, (seed, method) in enumerate(trainings):
        if folder.find(event="trained", method=method, seed=seed):
            continue

        def report(stage: StageReport, position: int = position, method: str = method, seed: int = seed) -> None:
            folder.log({"event": "stage", "method": method, "seed": seed, **vars(stage)})
            done = position * num_stages + stage.stage + 1
            listen(done, len(trainings) * num_stages, f"training {method}, seed {seed}")

        folder.log(
            {"event": "trained", "method": method, "seed": seed, **_train_one(config, method, seed, folder, report)}
        )
    results: dict[str, Any] = {}
    for method in config.methods:
        lines = [folder.find(event="trained", method=method, seed=seed) or {} for seed in config.seeds]
        results[method] = {key: [line[key] for line in lines] for key in ("test_accuracy", "train_seconds")}
    return results


def make_result(config: RunConfig, methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The content of result.json."""
    return {
        "recipe": config.recipe,
        "seeds": config.seeds,
        "methods": methods,
        "recovered": recovered_fractions(methods),
        **more,
        "environment": {
            "device": torch.cuda.get_device_name() if config.device.startswith("cuda") else "cpu",
            "torch": torch.__version__,
            "python": platform.python_version(),
            "autoweight": autoweight.__version__,
        },
    }


def recovered_fractions(methods: dict[str, Any]) -> dict[str, float]:
    """How much of the gap between no weighting and the oracle each method closes, where both ran and differ."""
    if not {"uniform", "oracle"} <= methods.keys():
        return {}
    means = {name: fmean(result["test_accuracy"]) for name, result in methods.items()}
    gap = means["oracle"] - means["uniform"]
    return {name: (mean - means["uniform"]) / gap for name, mean in means.items()} if gap else {}


def _train_one(
    config: RunConfig, method: str, seed: int, folder: RunFolder, report: Callable[[StageReport], None]
) -> dict[str, float]:
    splits = Splits(*(part.to(config.device) for part in load_splits(config.data, seed, final=True)))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        shape = tuple(splits.train.inputs.shape[1:])
        model = make_network(config.network, shape, splits.train.num_classes).to(config.device)
        try:
            seconds = train(
                model,
                splits.train,
                splits.val,
                _make_weigher(config, method, splits),
                config.training,
                seed,
                augmentation=config.data.augmentation,
                checkpoint=folder.checkpoint(f"{method}-{seed}"),
                on_stage=report,
            )
        except RunError as error:
            raise RunError(f"{method}, seed {seed}: {error}") from error
    return {"test_accuracy": accuracy(model, splits.test), "train_seconds": seconds}


def _make_weigher(config: RunConfig, method: str, splits: Splits) -> Weigher:
    knobs = dict(config.knobs.get(method, {}))
    if method == "law" and config.strategy is not None:
        knobs["strategy"] = config.strategy
    return make_method(method, TrainingFacts(splits.train.class_counts, splits.train.clean), knobs)
