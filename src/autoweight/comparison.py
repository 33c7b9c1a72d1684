"""Train methods over seeds and compare them: what `train` and `compare` do, one method and seed after the other."""

import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from zlib import crc32

import torch

import autoweight
from autoweight.config import Knob, RunConfig, TrainingConfig
from autoweight.data import Splits, check_training_data, load_splits
from autoweight.errors import RunError, require
from autoweight.methods import TrainingFacts, check_knobs, make_method
from autoweight.models import make_network
from autoweight.run_folder import RunFolder
from autoweight.strategy import Weigher
from autoweight.strategy.files import RUN_FILE
from autoweight.strategy.stages import stage_starts
from autoweight.training.check import check_network
from autoweight.training.device import check_device, isolated
from autoweight.training.evaluate import accuracy
from autoweight.training.loop import StageReport, Training, check_side_by_side, train


class Job(NamedTuple):
    """One training of a comparison."""

    method: str
    seed: int


Listener = Callable[[int, int, str], Any]  # stages done over all trainings, stages in all, what is being done


def check(config: RunConfig) -> None:
    """Raise `UserError` for anything in the configuration that could not run, before a folder is made."""
    check_device(config.device)
    epoch_steps = {}
    for seed in config.seeds:  # all of them, lest a comparison die halfway
        splits = _load(config, seed)
        check_training_data(splits.train, splits.val, config.training.batch_size)
        check_stages(config.training, len(splits.train))
        epoch_steps[seed] = len(splits.train) // config.training.batch_size
    for group in _groups(config):
        check_side_by_side(epoch_steps[job.seed] for job in group)
    make_model = partial(make_network, config.network, tuple(splits.train.inputs.shape[1:]), splits.train.num_classes)
    check_network(make_model, splits.train, config.training.batch_size, config.device)
    for method, knobs in config.knobs.items():
        check_knobs(method, knobs)
    for method in config.methods:
        _make_weigher(config, method, splits)


def check_stages(training: TrainingConfig, num_samples: int) -> None:
    """Raise `UserError` where a training has too few steps for its stages."""
    stage_starts(num_samples // training.batch_size * training.epochs, training.num_stages)


def compare(config: RunConfig, folder: RunFolder, listen: Listener) -> dict[str, Any]:
    """Train every method on every seed, going on from what the folder holds; gives a result's `methods` and `failed`.

    A method that fails on one seed is left out, with a sentence that says why.
    """
    if "law" in config.methods:
        _check_same_strategy(config, folder)
    groups = _groups(config)
    total = sum(map(len, groups)) * config.training.num_stages
    for number, group in enumerate(groups):
        if all(_ended(folder, job) for job in group):
            continue

        def report(job: Job, stage: StageReport, number: int = number, group: list[Job] = group) -> None:
            folder.log({"event": "stage", **job._asdict(), **vars(stage)})
            done = number * config.side_by_side * config.training.num_stages + (stage.stage + 1) * len(group)
            listen(done, total, f"training {', '.join(f'{job.method} {job.seed}' for job in group)}")

        for job, outcome in zip(group, _train(config, group, folder, report), strict=True):
            folder.log({"event": "failed" if "why" in outcome else "trained", **job._asdict(), **outcome})
        folder.checkpoint(_checkpoint_name(group)).remove()
    results: dict[str, Any] = {}
    failed: list[str] = []
    for method in config.methods:
        lines = [_ended(folder, Job(method, seed)) or {} for seed in config.seeds]
        if whys := [line["why"] for line in lines if "why" in line]:
            failed += whys
        else:
            results[method] = {key: [line[key] for line in lines] for key in ("test_accuracy", "train_seconds")}
    if not results:
        raise RunError(failed[0])
    return {"methods": results, **({"failed": failed} if failed else {})}


def _groups(config: RunConfig) -> list[list[Job]]:
    """The trainings, those that go side by side together."""
    jobs = [Job(method, seed) for seed in config.seeds for method in config.methods]
    return [jobs[first : first + config.side_by_side] for first in range(0, len(jobs), config.side_by_side)]


def make_result(config: RunConfig, *, methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The content of result.json."""
    return {
        "recipe": config.recipe,
        "seeds": config.seeds,
        "methods": methods,
        "recovered": recovered_fractions(methods),
        **more,
        "environment": {
            "device": torch.cuda.get_device_name(config.device) if config.device.startswith("cuda") else "cpu",
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
    return {name: (mean - means["uniform"]) / gap for name, mean in means.items()} if gap > 0 else {}


def _train(
    config: RunConfig, jobs: Sequence[Job], folder: RunFolder, report: Callable[[Job, StageReport], None]
) -> list[dict[str, Any]]:
    """Train the jobs side by side and test each; those that failed say why instead."""
    parts = {job.seed: Splits(*(part.to(config.device) for part in _load(config, job.seed))) for job in jobs}
    with isolated(config.device):
        trainings = [_training(config, job, parts[job.seed], report) for job in jobs]
        checkpoint = folder.checkpoint(_checkpoint_name(jobs))
        seconds, failures = train(trainings, config.training, checkpoint)
    return [
        {"why": why}
        if why
        else {
            "test_accuracy": accuracy(one.model, parts[one.seed].test, config.training.precision),
            "train_seconds": seconds,
        }
        for one, why in zip(trainings, failures, strict=True)
    ]


def _training(config: RunConfig, job: Job, splits: Splits, report: Callable[[Job, StageReport], None]) -> Training:
    torch.manual_seed(job.seed)
    model = make_network(config.network, tuple(splits.train.inputs.shape[1:]), splits.train.num_classes)
    return Training(
        model.to(config.device),
        splits.train,
        splits.val,
        _make_weigher(config, job.method, splits),
        job.seed,
        config.data.augmentation,
        on_stage=partial(report, job),
        name=f"{job.method}, seed {job.seed}",
    )


def _check_same_strategy(config: RunConfig, folder: RunFolder) -> None:
    """Raise `UserError` where the strategy is not the one that the run began with: one row would mix two."""
    path = Path(str(_law_knobs(config)["strategy"])).expanduser()
    digest = crc32((path / RUN_FILE if path.is_dir() else path).read_bytes())
    begun_with = folder.find(event="strategy")
    require(
        begun_with is None or begun_with["digest"] == digest,
        f"{path} has changed since this run began: put the former file back, or choose another --out.",
    )
    folder.log({"event": "strategy", "digest": digest})


def _ended(folder: RunFolder, job: Job) -> dict[str, Any] | None:
    """The line that a training ends with, if it has."""
    lines = (folder.find(event=event, **job._asdict()) for event in ("trained", "failed"))
    return next((line for line in lines if line), None)


def _checkpoint_name(jobs: Sequence[Job]) -> str:
    """The first job tells: groups are cut from one list."""
    return f"{jobs[0].method}-{jobs[0].seed}"


def _load(config: RunConfig, seed: int) -> Splits:
    return load_splits(config.data, seed, final=True)


def _law_knobs(config: RunConfig) -> dict[str, Knob]:
    own = config.knobs.get("law", {})
    return {**own} if config.strategy is None else {**own, "strategy": config.strategy}


def _make_weigher(config: RunConfig, method: str, splits: Splits) -> Weigher:
    knobs = _law_knobs(config) if method == "law" else config.knobs.get(method, {})
    return make_method(method, TrainingFacts(splits.train.class_counts, splits.train.clean), knobs)
