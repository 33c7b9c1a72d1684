"""Train methods over seeds and compare them: what `train` and `compare` do, one method and seed after the other."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from torch import nn

from autoweight.config import Knob, RunConfig
from autoweight.data import Pool, Splits, check_training_data, load_pool
from autoweight.data.digests import digests
from autoweight.data.streamed import Streamed, warn_of_skipped
from autoweight.errors import require
from autoweight.methods import TrainingFacts, check_knobs, make_method
from autoweight.methods.early_stop import EARLY_STOP
from autoweight.methods.method import Method
from autoweight.models import make_network
from autoweight.ranks import ALONE, Ranks
from autoweight.runs.audit import check_audit
from autoweight.runs.folder import RunFolder
from autoweight.runs.jobs import Job, collect, ended
from autoweight.runs.result import score_key
from autoweight.runs.samples import Columns, sample_columns, samples_file, write_columns
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.storage.shared import SharedCheckpointFile
from autoweight.strategy.files import RUN_FILE
from autoweight.strategy.weigher import check_device
from autoweight.training.checks import check_method, check_training, warn_where_far
from autoweight.training.device import few_threads, isolated
from autoweight.training.evaluate import Judged, judge
from autoweight.training.loop import StageReport, Trained, Training, check_side_by_side, train
from autoweight.training.split import check_split
from autoweight.training.task import TASKS

Listener = Callable[[int, int, str], Any]  # stages done over all trainings, stages in all, what is being done


class Comparison:
    """A comparison whose data are read and whose parts were checked; it can begin."""

    def __init__(self, config: RunConfig, pool: Pool) -> None:
        self.config, self.pool = config, pool
        self.score = score_key(config)

    def splits(self, seed: int) -> Splits:
        """The data of a seed."""
        return self.pool.splits(self.config.data, seed, final=True)

    def make_model(self) -> nn.Module:
        """A fresh network."""
        return make_network(self.config.network, self.pool.samples.input_shape, self.pool.samples.num_classes)

    def method(self, name: str, splits: Splits) -> Method:
        """A method, set up for the training set."""
        knobs = _law_knobs(self.config) if name == "law" else self.config.knobs.get(name, {})
        return make_method(name, TrainingFacts(splits.train.class_counts, splits.train.clean), knobs)

    @property
    def split(self) -> bool:
        """Whether ranks take parts of each batch of one training, as for `train`; else each takes whole trainings."""
        return self.config.command == "train"

    def check(self, ranks: Ranks = ALONE) -> None:
        """Raise `UserError` for anything that could not run, before a folder is made."""
        config, epoch_steps = self.config, {}
        for name in dict.fromkeys(name for name in config.methods if name in self.left_out):
            said = f"{name} {self.left_out[name]}"
            require(bool(self.trained_methods()), f"{said}, or choose another method.")
            warnings.warn(f"{said}; it is left out.", stacklevel=2)
        for seed in config.seeds:  # all of them, lest a comparison die halfway
            splits = self.splits(seed)
            check_training_data(splits.train, splits.val, config.training.batch_size)
            epoch_steps[seed] = len(splits.train) // config.training.batch_size
        for group in self.groups():
            check_side_by_side(epoch_steps[job.seed] for job in group)
        check_training(self.make_model, splits.train, config.training, config.device)
        for method, knobs in config.knobs.items():
            check_knobs(method, knobs)
        for name in self.trained_methods():
            made = self.method(name, splits)
            if config.command == "audit":
                check_audit(name, made, config.training.task)
            check_method(
                name, made, self.make_model, splits.train, splits.val, config.training, config.device, self._trust
            )
            warn_where_far(made, config.training)
            if self.split:
                check_split(name, made, config.training.batch_size, ranks)
        if ranks.size > 1:
            ranks.check_alike(data=str(digests(self.pool.samples)), configuration=repr(config))

    def trained_methods(self) -> list[str]:
        """The methods that are trained: what stops early is read off uniform's training."""
        wanted = [name for name in self.config.methods if name not in self.left_out]
        names = ["uniform" if name == EARLY_STOP else name for name in wanted]
        return list(dict.fromkeys(names))

    @property
    def left_out(self) -> dict[str, str]:
        """Methods that need what is not known here, and why they are left out."""
        data, said = self.config.data, {}
        if self.pool.trusted is None and data.val_size == 0:
            said[EARLY_STOP] = f"stops where trusted samples say, and there are none: {self._trust}"
        if data.path and data.noise_rate == 0:  # the user's own, as they are
            said["oracle"] = "must know which labels are wrong, and of yours nobody does: put some in with --data.noise"
        return said

    @property
    def _trust(self) -> str:
        """What to do where there are no trusted samples."""
        return "name some with --trusted" if self.config.data.path else "set --data.val-size"

    def shown_methods(self) -> list[str]:
        """The methods of the table: uniform never comes without what it reaches by stopping early."""
        names = []
        for name in self.config.methods:
            names += ["uniform", EARLY_STOP] if name == "uniform" else [name]
        return [name for name in dict.fromkeys(names) if name not in self.left_out]

    def groups(self) -> list[list[Job]]:
        """The trainings, those that go side by side together."""
        size = self.config.side_by_side
        jobs = [Job(method, seed) for seed in self.config.seeds for method in self.trained_methods()]
        return [jobs[first : first + size] for first in range(0, len(jobs), size)]

    def run(self, folder: RunFolder, listen: Listener, ranks: Ranks = ALONE) -> dict[str, Any]:
        """Train every method on every seed, going on from what the folder holds; its `methods`, `failed`, `skipped`.

        A method that fails on one seed is left out, with a sentence that says why. All ranks have to call it.
        """
        if "law" in self.config.methods:
            _check_same_strategy(self.config, folder)
        together, apart = (ranks, ALONE) if self.split else (ALONE, ranks)
        groups = self.groups()
        left = ranks.share([group for group in groups if not all(ended(folder, job) for job in group)])
        stages = self.config.training.num_stages
        total, to_do = (stages * sum(map(len, jobs)) for jobs in (groups, left))
        stages_done, reached = apart.counter(), Counter[Job]()

        def report(group: list[Job], job: Job, stage: StageReport) -> None:
            """Log a stage of a job, and tell how far all jobs are."""
            ranks.beat()
            scores = {name: value for name, value in vars(stage).items() if value is not None}
            folder.log({"event": "stage", **job._asdict(), **scores})
            done = total - to_do + stages_done(stage.stage + 1 - reached[job])
            reached[job] = stage.stage + 1
            listen(done, total, f"training {', '.join(f'{job.method} {job.seed}' for job in group)}")

        for group in apart.deal(left):
            checkpoint = SharedCheckpointFile(folder.checkpoint_path(_checkpoint_name(group)), together)
            outcomes = self._train(group, folder, checkpoint, partial(report, group), together)
            for job, outcome in zip(group, outcomes, strict=True):
                folder.log({"event": "failed" if "why" in outcome else "trained", **job._asdict(), **outcome})
            checkpoint.remove()
        ranks.wait_for_all()
        skipped = _say_skipped(self.pool, ranks)
        if not ranks.first:
            return ranks.share({})
        folder.take_in_ranks()
        return ranks.share(collect(folder, self.shown_methods(), self.config.seeds, self.score) | skipped)

    def _train(
        self,
        jobs: Sequence[Job],
        folder: RunFolder,
        checkpoint: CheckpointFile,
        report: Callable[[Job, StageReport], None],
        ranks: Ranks,
    ) -> list[dict[str, Any]]:
        """Train the jobs side by side and test each; those that failed say why instead."""
        config = self.config
        parts = {seed: self.splits(seed).to(config.device) for seed in dict.fromkeys(job.seed for job in jobs)}
        with isolated(config.device):
            trainings = [self._training(job, parts[job.seed], report) for job in jobs]
            seconds, trained = train(trainings, config.training, checkpoint, ranks)
        outcomes: list[dict[str, Any]] = []
        for job, one in zip(jobs, trained, strict=True):
            if one.failure:
                outcomes.append({"why": one.failure})
                continue
            with few_threads(self.make_model, parts[job.seed].train, config.training.batch_size):
                tested, columns = self._test(one, parts[job.seed])
            if bad := [name for name, value in tested.items() if not isfinite(value)]:
                what = f"{job.method}, seed {job.seed}: its {bad[0]} is {tested[bad[0]]}"
                outcomes.append({"why": f"{what}: look at the data, or lower the learning rate."})
                continue
            if ranks.first:  # of those that train together
                write_columns(samples_file(folder.path, *job), columns)
            outcomes.append(tested | {"train_seconds": seconds})
        return outcomes

    def _training(self, job: Job, splits: Splits, report: Callable[[Job, StageReport], None]) -> Training:
        return Training(
            self.make_model,
            splits.train,
            splits.val,
            self.method(job.method, splits),
            job.seed,
            self.config.data.augmentation,
            test_data=splits.test if job.method == "uniform" else None,
            on_stage=partial(report, job),
            name=f"{job.method}, seed {job.seed}",
            recorded=True,
        )

    def _test(self, one: Trained, splits: Splits) -> tuple[dict[str, Any], Columns]:
        """Test scores of a training's network, of what is evaluated beside it, and of the best stage; and its samples.

        The samples' columns also say which test samples the network got right, and the network of the best stage.
        """
        training, best = self.config.training, one.best

        def on_test(network: nn.Module) -> Judged:
            return judge(network, splits.test, TASKS[training.task], training.precision)

        last = on_test(one.slot.method.networks[0])
        tested: dict[str, Any] = {self.score: last.score}
        for name, network in one.slot.evaluated().items():
            tested[f"{self.score}_{name}"] = on_test(network).score
        if best is not None:
            tested |= {"best_stage": best.stage, f"best_{self.score}": best.test_score}
        columns = sample_columns(one.slot.method, splits.train, training.precision)
        rights = {"test_right": last.right, "best_right": None if best is None else best.right}
        columns |= {name: right.cpu().numpy() for name, right in rights.items() if right is not None}
        columns["test_count"] = np.array(len(splits.test))
        return tested, columns


def prepare(config: RunConfig, pool: Pool | None = None, ranks: Ranks = ALONE) -> Comparison:
    """A comparison that can begin, or `UserError` for what keeps it from that."""
    check_device(config.device)
    comparison = Comparison(config, pool or load_pool(config.data, config.training.task))
    comparison.check(ranks)
    return comparison


def _say_skipped(pool: Pool, ranks: Ranks) -> dict[str, dict[str, int]]:
    """Say which samples of streams could not be read, by any rank; how many of each part, as a result has it."""
    said: list[int] = []
    counts = dict(pool.skipped)
    for part, samples in {"": pool.samples, "trusted": pool.trusted, "test": pool.test}.items():
        if isinstance(samples, Streamed) and id(samples.bad) not in said:  # parts of one set share what is bad
            for bad in ranks.gather(dict(samples.bad)):
                samples.bad.update(bad)
            warn_of_skipped(samples, part)
            said.append(id(samples.bad))
            counts[part or "training"] = len(samples.bad)
    counts = {part: count for part, count in counts.items() if count}
    return {"skipped": counts} if counts else {}


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


def _checkpoint_name(jobs: Sequence[Job]) -> str:
    """The first job tells: groups are cut from one list."""
    return f"{jobs[0].method}-{jobs[0].seed}"


def _law_knobs(config: RunConfig) -> dict[str, Knob]:
    own = config.knobs.get("law", {})
    return {**own} if config.strategy is None else {**own, "strategy": config.strategy}
