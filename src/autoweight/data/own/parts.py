"""Parts of the user's own data: what has a label, what is trusted, what to test on."""

import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from autoweight.config import TaskName
from autoweight.data.dataset import Samples
from autoweight.data.inputs import row_hashes
from autoweight.data.labelled import Labelled
from autoweight.data.own.rows import MISSING, Rows
from autoweight.data.own.targets import labels_of
from autoweight.errors import UserError, require

_TEST_SEED = 0  # the test part is always the same: no search or choice ever sees it


def labelled(rows: Rows, task: TaskName) -> Rows:
    """The samples that have a label, with a warning on the others; where several may be true, those stay too."""
    missing = MISSING if task in ("regression", "huber") else {""}  # a class may be called none, a number may not
    there = np.array([rows.labels.ndim > 1 or label.lower() not in missing for label in rows.labels])
    if there.all():
        return rows
    require(bool(there.any()), "not one sample has a label: name another column with --label.")
    told = "have no label and are left out" if task != "multilabel" else "have no label, so that none is true of them"
    first = rows.names[int(np.argmin(there))]
    warnings.warn(f"{int((~there).sum())} samples {told}, such as {first}.", stacklevel=5)
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


def without(samples: list[Labelled], trusted: Labelled) -> list[Labelled]:
    """Parts without the samples that are trusted too, to the last bit of their inputs.

    For each trusted sample at most one goes, of the same label if there is one: in a table of few different values many
    rows are equal by chance. Else one of another label goes, which the trusted sample corrects.
    """
    if not isinstance(trusted, Samples):
        return samples
    both = [part for part in samples if isinstance(part, Samples)]
    inputs = np.array([content for part in both for content in row_hashes(part.inputs)], dtype=object)
    labels = [label for part in both for label in _labels(part)]
    known = row_hashes(trusted.inputs)
    same = _found(list(zip(inputs, labels, strict=True)), Counter(zip(known, _labels(trusted), strict=True)))
    corrected = np.zeros(len(inputs), dtype=bool)
    corrected[~same] = _found(inputs[~same].tolist(), Counter(known) - Counter(inputs[same].tolist()))
    gone = same | corrected
    if not gone.any():
        return samples
    apart = np.split(~gone, np.cumsum([len(part) for part in both])[:-1])
    left = all(part.any() for part in apart)
    require(left, "all samples are among the trusted ones: some have to be left to train and test on.")
    told = (
        f" ({corrected.sum()} with another label there, which is taken for the checked one)" if corrected.any() else ""
    )
    warnings.warn(f"{gone.sum()} samples are trusted ones too{told}, and are left out.", stacklevel=5)
    taken = iter([part.take(torch.from_numpy(own.nonzero()[0])) for part, own in zip(both, apart, strict=True)])
    return [next(taken) if isinstance(part, Samples) else part for part in samples]


def _found(values: list[Any], budget: Counter[Any]) -> NDArray[np.bool_]:
    """Which values a budget has; of equal ones the first, as many as it has."""
    found = np.zeros(len(values), dtype=bool)
    for place, value in enumerate(values):
        found[place] = budget[value] > 0
        budget[value] -= 1
    return found


def _labels(samples: Samples) -> list[str]:
    """Labels as text, so that several of a sample compare as one does."""
    return [str(label) for label in samples.labels.tolist()]
