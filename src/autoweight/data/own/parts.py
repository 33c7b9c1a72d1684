"""Parts of the user's own data: what has a label, what is trusted, what to test on."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.config import TaskName
from autoweight.data.dataset import Samples
from autoweight.data.inputs import row_hashes
from autoweight.data.labelled import Labelled
from autoweight.data.own.rows import Rows
from autoweight.data.own.targets import labels_of
from autoweight.errors import UserError, require

_TEST_SEED = 0  # the test part is always the same: no search or choice ever sees it


def labelled(rows: Rows, task: TaskName) -> Rows:
    """The samples that have a label; says how many have none. Where several may be true, none may be, too."""
    there = rows.labels != "" if rows.labels.ndim == 1 else np.ones(len(rows), dtype=bool)
    if there.all():
        return rows
    require(bool(there.any()), "not one sample has a label: name another column with --label.")
    told = "have no label and are left out" if task != "multilabel" else "have no label, so that none is true of them"
    first = rows.names[int(np.argmin(there))]
    warnings.warn(f"{int((~there).sum())} samples {told}, such as {first}.", stacklevel=4)
    return rows if task == "multilabel" else rows.take(there.nonzero()[0])


def marked_apart(rows: Rows, what: str) -> tuple[Rows, Rows | None]:
    """The samples that nobody marked as trusted, and those that somebody did."""
    if rows.marked is None:
        return rows, None
    require(
        bool(rows.marked.any()), f"'{what}' marks no sample as trusted: write 1, true or yes where a label was checked."
    )
    require(not rows.marked.all(), f"'{what}' marks every sample as trusted: some have to be left to train on.")
    return rows.take((~rows.marked).nonzero()[0]), rows.take(rows.marked.nonzero()[0])


def split_off(rows: Rows, share: float, task: TaskName) -> tuple[Rows, Rows]:
    """All but a share of each class, and that share to test on; a label always keeps a sample to train on."""
    generator = torch.Generator().manual_seed(_TEST_SEED)
    strata = rows.labels if task == "classification" else np.zeros(len(rows), dtype=int)
    test = np.zeros(len(rows), dtype=bool)
    for label in np.unique(strata):
        members = (strata == label).nonzero()[0]
        order = torch.randperm(len(members), generator=generator).numpy()
        test[members[order[: min(round(share * len(members)), len(members) - 1)]]] = True
    if task in ("multilabel", "tokens"):
        _keep_all_labels(rows, test, task)
    if not test.any():
        raise UserError(f"{len(rows)} samples are too few to split a test part off: name one with --test.")
    return rows.take((~test).nonzero()[0]), rows.take(test.nonzero()[0])


def _keep_all_labels(rows: Rows, test: NDArray[np.bool_], task: TaskName) -> None:
    """Take samples out of the test part whose labels would be missed in the training."""
    named = labels_of(rows, task)
    known = set[Any]().union(*(own for own, tested in zip(named, test, strict=True) if not tested))
    for place in test.nonzero()[0]:
        if not named[place] <= known:
            test[place] = False
            known |= named[place]


def without(samples: Labelled, trusted: Labelled) -> Labelled:
    """Samples without those that are trusted too, to the last bit of their inputs."""
    if not (isinstance(samples, Samples) and isinstance(trusted, Samples)):
        return samples
    known = set(row_hashes(trusted.inputs))
    apart = torch.tensor([content not in known for content in row_hashes(samples.inputs)])
    if apart.all():
        return samples
    require(bool(apart.any()), "all samples are among the trusted ones: some have to be left to train and test on.")
    warnings.warn(f"{int((~apart).sum())} samples are trusted ones too, and are left out.", stacklevel=4)
    return samples.take(apart.nonzero().flatten())
