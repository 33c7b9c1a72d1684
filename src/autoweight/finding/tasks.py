"""What a search trains on: one task, or several that share a strategy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import Augmentation, SearchConfig, TrainingConfig
from autoweight.data import Samples, as_samples
from autoweight.data.convert import DataLike, convert_part
from autoweight.data.labelled import Labelled
from autoweight.data.labels import check_labels
from autoweight.data.streamed import Streamed, warn_of_skipped
from autoweight.errors import UserError, require
from autoweight.workers import Problem


class SearchTask(NamedTuple):
    """One of the tasks of a search over several: networks, data, and, where it is not the search's, how they train.

    Where labels were made wrong on purpose, `true_labels` are those of the training set as they were. An oracle then
    trains beside the task, so that a gain can be told as a share of what could be won. A task without is a guard: a
    loss there counts double.
    """

    make_model: Callable[[], nn.Module]
    train_data: DataLike
    val_data: DataLike
    training: TrainingConfig | None = None
    augmentation: Augmentation | None = None
    true_labels: Any = None


def tasks_of(make_model: Any, train_data: Any, val_data: Any) -> list[SearchTask]:
    """The tasks that were passed: a list of them, or the parts of a single one."""
    if callable(make_model) or not isinstance(make_model, Sequence):
        return [SearchTask(make_model, train_data, val_data)]
    make_model = [make_model] if isinstance(make_model, SearchTask) else make_model
    require(len(make_model) > 0, "the list of tasks is empty: name at least one aw.SearchTask.")
    for task in make_model:
        require(
            isinstance(task, SearchTask), f"a list of tasks holds aw.SearchTask alone, but also {type(task).__name__}."
        )
    require(
        train_data is None and val_data is None,
        "tasks bring their own data: pass settings by name, aw.search(tasks, config=config).",
    )
    return list(make_model)


def samples_of(task: SearchTask, training: TrainingConfig) -> tuple[Labelled, Samples]:
    """A task's training set, which may be a stream, and its validation set, with one number of classes."""
    for name, data in {"train_data": task.train_data, "val_data": task.val_data}.items():
        use = "to train on" if name == "train_data" else "to choose strategies by"
        require(data is not None, f"{name} is missing: pass tensors or a map-style Dataset {use}.")
    val = convert_part("validation", as_samples, task.val_data, task=training.task)
    train: Any = task.train_data
    # Parts of one stream share what is bad: then the search's end says it for both.
    if not isinstance(train, Streamed) or getattr(task.val_data, "bad", None) is not train.bad:
        warn_of_skipped(task.val_data, "validation")
    if not isinstance(train, Streamed):
        train = convert_part("training", as_samples, train, task=training.task)
    num_classes = max(train.num_classes, val.num_classes)
    train = replace(train, num_classes=num_classes)
    if task.true_labels is not None:
        train = replace(train, true_labels=_true_labels(task.true_labels, train, training))
    return train, replace(val, num_classes=num_classes)


def _true_labels(given: Any, train: Labelled, training: TrainingConfig) -> Tensor:
    """The labels as they were, checked as those to train on are."""
    try:
        labels = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(given).__name__
        raise UserError(f"true_labels are numbers, one a training label, but these are no numbers: {kind}.") from error
    require(
        labels.shape == train.labels.shape,
        f"true_labels are one a training label, {tuple(train.labels.shape)}, but their shape is {tuple(labels.shape)}.",
    )
    try:
        return check_labels(labels, train.num_classes, training.task)[0].to(train.labels)
    except UserError as error:
        raise UserError(f"true_labels cannot be used: {error}") from error


def check_together(problems: Sequence[Problem], config: SearchConfig) -> None:
    """Raise `UserError` where tasks cannot share a strategy, or their gains cannot be compared."""
    if len(problems) == 1:
        return
    _require_one({problem.training.task for problem in problems}, "kind of task", "search those of each kind apart")
    _require_one({problem.training.num_stages for problem in problems}, "num_stages", "set training.num_stages alike")
    if "label" in config.features and config.label_feature == "raw":
        classes = {problem.train.num_classes for problem in problems}
        _require_one(classes, "number of classes", "the raw label means nothing then, so choose log_frequency")
    require(config.reward == "difference", "a plain search.reward cannot be compared between tasks: choose difference.")


def _require_one(values: set[Any], what: str, remedy: str) -> None:
    said = " and ".join(map(str, sorted(values)))
    require(len(values) == 1, f"tasks that share a strategy need one {what}, but have {said}: {remedy}.")
