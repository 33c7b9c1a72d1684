"""Weights from probabilities that samples were not trained on, for whatever learner gave them."""

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from autoweight.errors import require
from autoweight.strategy import Strategy
from autoweight.strategy.weigher import Weigher

Array = np.ndarray[Any, np.dtype[Any]]

_VISITS = 40  # looks at the same probabilities until a memory has settled: 0.8 ** 40 of its beginning is nothing
_LEAST = 1e-6  # probabilities of 0 would have infinite losses


def sample_weights(weigher: Weigher, probabilities: Any, labels: Any) -> Array:
    """A weight for each sample, from probabilities `[samples, classes]` of learners that did not see it.

    Columns are classes in sorted order, as scikit-learn has them, or the labels' numbers. A weigher that remembers
    samples looks at them again and again, as if a training had come to these probabilities and stayed there; so it can
    judge them before the first fit. The weigher itself stays as it is.

    >>> from autoweight import Focal
    >>> sample_weights(Focal(gamma=1.0), [[0.9, 0.1], [0.9, 0.1]], ["no", "yes"]).round(1).tolist()
    [0.1, 0.9]
    """
    return settled(weigher, probabilities, labels)[0]


def settled(weigher: Weigher, probabilities: Any, labels: Any, rows: Array | None = None) -> tuple[Array, Weigher]:
    """Weights, and a copy of the weigher with all that it then remembers, by `rows` where samples are some of many."""
    require(isinstance(weigher, Weigher), f"sample_weights takes a weigher such as aw.load('auto'), not {weigher!r}.")
    given = np.asarray(probabilities, dtype=np.float64)
    classes = _columns(given, np.asarray(labels))
    require(
        bool((given >= 0).all()) and bool(np.allclose(given.sum(axis=1), 1, atol=1e-3)),
        "probabilities lie between 0 and 1, and those of a sample sum to 1: use predict_proba.",
    )
    logits = torch.from_numpy(given.clip(_LEAST)).float().log()
    targets, indices = torch.from_numpy(classes), torch.arange(len(classes)) if rows is None else torch.from_numpy(rows)
    losses = cross_entropy(logits, targets, reduction="none")
    weigher = deepcopy(weigher)
    if isinstance(weigher, Strategy):
        weigher.judges_batches = False  # all samples at once, again and again, are no training
    for visit in range(1, _VISITS + 1):
        weights = weigher.weigh(losses, logits, targets, progress=visit / _VISITS, indices=indices)
    return weights.double().numpy(), weigher


def _columns(given: Array, labels: Array) -> Array:
    """The column of each label."""
    require(
        given.ndim == 2 and len(given) > 0 and labels.shape == given.shape[:1],
        f"probabilities have a row a sample and a column a class, and there is a label a sample, but shapes are "
        f"{given.shape} and {labels.shape}.",
    )
    names, columns = np.unique(labels, return_inverse=True)
    if len(names) == given.shape[1]:
        return columns.astype(np.int64)
    whole = np.issubdtype(labels.dtype, np.integer) and labels.min() >= 0 and labels.max() < given.shape[1]
    require(whole, f"there are {len(names)} different labels, but probabilities of {given.shape[1]} classes.")
    return labels.astype(np.int64)
