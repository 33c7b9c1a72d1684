"""Data of the user's own, from a path: a new kind is a file here and a line in `KINDS`.

Nothing is corrupted. The test part and the trusted samples are what the user names; without a test part one is split
off, always the same.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from autoweight.config import DataConfig, TaskName
from autoweight.data.dataset import Samples
from autoweight.data.images import Placed
from autoweight.data.labelled import Labelled
from autoweight.data.own.archives import read_shards
from autoweight.data.own.arrays import encode_arrays, read_arrays
from autoweight.data.own.columns import encode_columns
from autoweight.data.own.images import encode_images, read_images
from autoweight.data.own.kinds import KindName, kind_of
from autoweight.data.own.parts import labelled, marked_apart, split_off, without
from autoweight.data.own.rows import Encoder, Parts, Rows
from autoweight.data.own.tables import TABLES, read_table
from autoweight.data.own.targets import Targets, learn_targets
from autoweight.data.own.texts import encode_texts, read_texts
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.errors import UserError, require

OWN = "own"
"""The name that the user's own data have among data sets."""


class Kind(NamedTuple):
    """How one kind of data becomes samples."""

    read: Callable[[Path, DataConfig], Parts]
    encode: Callable[[Rows, DataConfig, TaskName], Encoder]
    """Learns from the training part how all parts become inputs."""


KINDS: dict[KindName, Kind] = {
    "images": Kind(read_images, lambda train, config, task: encode_images(train.content, config)),
    "shards": Kind(read_shards, lambda train, config, task: encode_images(train.content, config)),
    "table": Kind(read_table, lambda train, config, task: encode_columns(train.content, train.names)),
    "texts": Kind(read_texts, lambda train, config, task: encode_texts(train.content)),
    "arrays": Kind(read_arrays, lambda train, config, task: encode_arrays(train.content, task)),
}


class OwnData(NamedTuple):
    """The user's own samples."""

    train: Labelled
    test: Labelled
    trusted: Labelled | None
    skipped: dict[str, int]
    """How many could not be read when they were, by part."""


def load_own(config: DataConfig, task: TaskName = "classification") -> OwnData:
    """Read the user's own data; only the training part tells how they become numbers."""
    kind = _checked_kind(config)
    train, test, trusted = _split(kind, config, task)
    if test is train:
        warnings.warn("nothing is split off to test on, so scores are those on the training samples.", stacklevel=3)
    targets = learn_targets(train, task)
    make = _Maker(KINDS[kind].encode(train, config, task), targets, config, task)
    train_samples, trusted_samples = make(train), None if trusted is None else make(trusted)
    test_samples = train_samples if test is train else make(test)
    parts = [("training", train, train_samples), ("trusted", trusted, trusted_samples)]
    if test is not train:
        parts.append(("test", test, test_samples))
    skipped = {name: lost for name, rows, samples in parts if (lost := _lost(rows, samples))}
    if trusted_samples is not None and train.marked is None:  # marked rows are in one part alone
        train_samples, test_samples = _without_trusted(train_samples, test_samples, trusted_samples, config)
    return OwnData(train_samples, test_samples, trusted_samples, skipped)


def count_own(config: DataConfig, task: TaskName) -> int:
    """How many of the user's own samples there are to train on; 0 where that cannot be told."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return len(_split(_checked_kind(config), config, task)[0])
    except Exception:  # whoever reads them in earnest says what is wrong
        return 0


def _split(kind: KindName, config: DataConfig, task: TaskName) -> tuple[Rows, Rows, Rows | None]:
    """The labelled samples to train on, to test on (the same where nothing is split off), and the trusted ones."""
    try:
        found = KINDS[kind].read(Path(config.path), config)
    except OSError as error:
        raise UserError(f"{error.filename or config.path} cannot be read: {error.strerror}.") from error
    train, trusted = _trusted(found, kind, config, task)
    test = found.test if not config.test else _another(config.test, kind, config).train
    learn_targets(train, task)  # says what is wrong with the labels, before too few of a kind are said to be
    if test is not None:
        return train, labelled(test, task), trusted
    if config.test_share == 0:
        return train, train, trusted
    return *split_off(train, config.test_share, task), trusted


def _checked_kind(config: DataConfig) -> KindName:
    """The kind of the user's data; `UserError` where a setting does not fit it."""
    require(bool(config.path), "data.path is empty: name a folder or a file of your own.")
    path = Path(config.path)
    kind = kind_of(path, config.text)
    require(
        not config.stream or kind in ("images", "shards"),
        "data.stream is for folders of images; other data lie in memory.",
    )
    is_table = path.suffix.lower() in TABLES and not path.is_dir()
    require(not config.label or is_table, f"--label names a column of a table, but {path.name} is none.")
    return kind


def _lost(rows: Rows | None, samples: Labelled | None) -> int:
    """How many of the rows could not be read, and so made no sample."""
    return 0 if rows is None or samples is None else len(rows) - len(samples)


def _without_trusted(
    train: Labelled, test: Labelled, trusted: Labelled, config: DataConfig
) -> tuple[Labelled, Labelled]:
    """Both parts without the samples that are trusted too; a test part that the user named stays as it is."""
    if config.test:
        return without([train], trusted)[0], test
    if test is train:
        (left,) = without([train], trusted)
        return left, left
    train, test = without([train, test], trusted)
    return train, test


def _trusted(found: Parts, kind: KindName, config: DataConfig, task: TaskName) -> tuple[Rows, Rows | None]:
    """Samples to train on, and trusted ones: marked, in a part or a file of their own, or none."""
    train, marked = marked_apart(labelled(found.train, task), config.trusted or "trusted")
    if marked is not None:
        return train, marked
    if not config.trusted:
        return train, None if found.trusted is None else labelled(found.trusted, task)
    path = Path(config.trusted)
    require(
        path.exists(),
        f"--trusted names '{config.trusted}', which is neither a file nor part of {Path(config.path).name}: name a "
        "column or array that marks trusted samples, or a file that holds them.",
    )
    return train, labelled(_another(config.trusted, kind, config).train, task)


def _another(path: str, kind: KindName, config: DataConfig) -> Parts:
    """A further file or folder of the same kind."""
    own = kind_of(Path(path), config.text if not Path(path).is_dir() else "")
    if own != kind:
        raise UserError(f"{path} holds {own}, but {config.path} {kind}: they need to be of one kind.")
    return KINDS[kind].read(Path(path), replace(config, trusted=""))


class _Maker(NamedTuple):
    """Makes samples of rows."""

    encode: Encoder
    targets: Targets
    config: DataConfig
    task: TaskName

    def __call__(self, rows: Rows) -> Labelled:
        inputs, kept = self.encode(rows.content)
        rows = rows if kept is None else rows.take(kept)
        labels, targets = self.targets.encode(rows), self.targets
        source = torch.from_numpy(rows.places)
        samples: Labelled
        if isinstance(inputs, torch.Tensor):
            samples = Samples.of(inputs, labels, targets.num_classes, self.task)
            samples = replace(samples, source=source)
        else:
            reading = Reading(num_workers=self.config.workers, bad_samples=self.config.bad_samples)
            placed = Placed(inputs, rows.places)
            samples = Streamed.of(placed, reading, labels, targets.num_classes, self.task, source)
        return replace(samples, names=rows.names, class_names=targets.class_names)
