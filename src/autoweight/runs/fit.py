"""Train one network in one call: weighed by `auto` or by another weigher, from tensors or a map-style data set."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from autoweight.audit.find import find_label_issues
from autoweight.audit.table import LabelIssues
from autoweight.config import Augmentation, BadSamples, TaskName, TrainingConfig
from autoweight.config.defaults import sensible_training
from autoweight.data.checks import check_training_data
from autoweight.data.convert import DataLike, as_data, convert_part
from autoweight.data.labelled import Labelled
from autoweight.data.reading import Collate, Reading
from autoweight.data.streamed import Streamed, warn_of_skipped
from autoweight.errors import RunError, UserError, require
from autoweight.methods.method import Method, Weighted
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.strategy import Weigher
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.shipped import load
from autoweight.training.checks import check_call, check_listen, check_method, check_training, warn_where_far
from autoweight.training.device import isolated
from autoweight.training.evaluate import score
from autoweight.training.loop import StageReport, Training, train
from autoweight.training.split import weigher_of
from autoweight.training.task import TASKS


@dataclass(frozen=True)
class Fitted:
    """A trained network, and all that is known of its training."""

    network: nn.Module
    """Trained, and set to evaluate."""
    history: list[StageReport] = field(repr=False)
    """Training loss, validation score (None without a validation set) and seconds, by stage. A training that went on
    from a checkpoint tells of the stages of this sitting."""
    weigher: Weigher | None
    """What weighed the samples, with what it remembers of them."""
    labels: Tensor = field(repr=False)
    """Those that were trained on, in the order of the weigher's indices."""
    positions: Tensor = field(repr=False)
    """Where each of these samples lies in the data set: samples that were skipped at once have no index."""
    val_score: float | None = None
    """The last stage's; accuracy, or the score of the task."""
    test_score: float | None = None
    """The same on the test data, where there were some."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Samples that could not be read and were skipped: positions in the data set, and why."""
    _judge: Weigher | None = field(default=None, repr=False)
    """A copy of the weigher, whose memory stays that of this training where `weigher` is used again."""

    @cached_property
    def issues(self) -> LabelIssues:
        """The samples whose labels look wrong, worst first."""
        return self.audit()

    def audit(self, **options: Any) -> LabelIssues:
        """What the weigher's memory says about the labels: `aw.find_label_issues`, whose options it takes."""
        if self._judge is None:
            raise UserError("the audit reads what a weigher remembers, and none was used: fit with weigher='auto'.")
        return find_label_issues(self._judge, self.labels, **options)


def fit(
    make_model: Callable[[], nn.Module],
    train_data: DataLike,
    *,
    val_data: DataLike | None = None,
    test_data: DataLike | None = None,
    weigher: str | Path | Weigher | Method | None = "auto",
    training: TrainingConfig | None = None,
    augmentation: Augmentation = "none",
    seed: int = 0,
    device: str = "cpu",
    stream: bool | None = None,
    collate_fn: Collate | None = None,
    num_workers: int = 0,
    bad_samples: BadSamples = "refuse",
    label_key: str = "",
    checkpoint: str | Path | None = None,
    listen: Callable[[StageReport], Any] = lambda report: None,
) -> Fitted:
    """Train a network of `make_model` on `train_data`, which needs no trusted samples; the same seed, the same bits.

    Data are tensors, or a map-style `Dataset` of pairs or of dicts with a label. They are kept in memory where they
    fit; with random transforms, a `collate_fn`, more than 4 GB, `bad_samples="skip"` or `stream=True`, they are read as
    they come, by `num_workers` processes. `weigher` is the name of a shipped strategy, a file, a weigher, a method, or
    None. `training` is by default AdamW with a cosine, of a length that suits the data. With a `checkpoint`, the path
    of a file, a training that was killed goes on when it is called again; a file of another training is refused. To
    begin anew, delete the file and NAME.previous beside it, the checkpoint before.
    """
    check_call(training, seed, device, checkpoint)
    check_listen(listen)
    require(train_data is not None, "train_data is missing: pass tensors or a map-style Dataset to train on.")
    task = "classification" if training is None else training.task
    reading = Reading(collate_fn, num_workers, bad_samples, label_key)
    given = {"training": train_data, "validation": val_data, "test": test_data}
    parts = _read(given, task, reading, stream, device)
    train_part, val = parts["training"], parts.get("validation")
    training = training or sensible_training(len(train_part))
    check_training_data(train_part, val, training.batch_size)
    check_training(make_model, train_part, training, device)
    method = _method(weigher, train_part)
    check_method(type(method).__name__, method, make_model, train_part, val, training, device)
    warn_where_far(method, training)
    history: list[StageReport] = []

    def report(stage: StageReport) -> None:
        history.append(stage)
        listen(stage)

    job = Training(make_model, train_part, val, method, int(seed), augmentation, on_stage=report, name="the training")
    with isolated(device):
        file = None if checkpoint is None else CheckpointFile(Path(checkpoint).expanduser())
        (trained,) = train([job], training, file).trained
        if trained.failure:
            raise RunError(trained.failure)
        network = trained.slot.method.networks[0].eval()
        judged = [name for name in parts if name != "training"]
        scores = {name: score(network, parts[name], TASKS[task], training.precision) for name in judged}
    for name, part in parts.items():
        warn_of_skipped(part, "" if name == "training" else name)
    own = weigher_of(method)
    if isinstance(own, Remembering):
        own.release()
    return Fitted(
        network=network,
        history=history,
        weigher=own,
        labels=train_part.labels.cpu(),
        positions=train_part.source.cpu(),
        val_score=scores.get("validation"),
        test_score=scores.get("test"),
        skipped=dict(train_part.bad) if isinstance(train_part, Streamed) else {},
        _judge=deepcopy(own),
    )


def _read(
    given: dict[str, DataLike | None], task: TaskName, reading: Reading, stream: bool | None, device: str
) -> dict[str, Labelled]:
    """The parts that were given, by name, with one number of classes, on the device."""
    read = {
        name: convert_part(name, as_data, data, task, reading, stream)
        for name, data in given.items()
        if data is not None
    }
    num_classes = max(part.num_classes for part in read.values())
    return {name: replace(part, num_classes=num_classes).to(device) for name, part in read.items()}  # type: ignore[type-var]


def _method(weigher: Any, samples: Labelled) -> Method:
    if isinstance(weigher, str | Path):
        weigher = load(weigher, class_counts=samples.class_counts.cpu() if samples.has_classes else None)
    if isinstance(weigher, Method):
        return weigher
    require(
        weigher is None or isinstance(weigher, Weigher),
        f"weigher takes the name of a shipped strategy, a file, a weigher or None, but is {weigher!r}.",
    )
    return Weighted(weigher)
