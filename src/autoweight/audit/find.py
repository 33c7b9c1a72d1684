"""Find wrong labels: those that the network, weighted by what it remembers, has come to contradict."""

from collections.abc import Mapping, Sequence
from math import log
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from autoweight.audit.table import LabelIssues
from autoweight.config import IGNORED
from autoweight.errors import UserError, require
from autoweight.strategy.belief import SLOPE
from autoweight.strategy.census import LEAST_PRIOR, MOST_PRIOR
from autoweight.strategy.memory import Memory
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.weigher import Weigher


def find_label_issues(
    weigher: Weigher,
    labels: Any,
    *,
    threshold: float | None = None,
    names: Sequence[str] | None = None,
    class_names: Sequence[str] | Mapping[int, str] = (),
) -> LabelIssues:
    """The samples whose labels look wrong, from a weigher that remembers them and has been through a training.

    `labels` are the classes that were trained on, in the order of the indices; of tokens `[samples, tokens]`, with -100
    where one does not count: a row is then a token. A label's `label_score` is 1 where the network is sure of it, 0.5
    where it is torn between it and another class, and 0 where it is sure of the other. It is an issue where that is
    below `threshold`: raise it to find more, lower it to be surer. By default it lies where the label is as probably
    wrong as right: the fewer labels are contradicted, or the more firmly, the lower.
    `names`, such as files, become a column; with `class_names`, labels are shown by name. Of samples that never came up
    nothing is known: their score is NaN, they come last, and they count nowhere.
    """
    require(
        not hasattr(weigher, "whole"),
        "Sharded keeps a share of the samples: audit weigher.whole(), called in all processes.",
    )
    if not isinstance(weigher, Remembering) or weigher.memory is None:
        raise UserError(
            f"{type(weigher).__name__} remembers no samples: train with aw.load('auto') and indices, then ask again."
        )
    given = _classes(labels)
    places, weigher = _Places(*given.shape), weigher.settled()
    memory, given = weigher.memory, given.ravel()
    assert memory is not None
    known = _known(memory, given, places)
    margins, predicted = (_fitted(column, len(given)) for column in weigher.judgement())
    margins = np.where(known >= 0, margins, np.nan)
    counted = np.flatnonzero(given >= 0)  # all but tokens to ignore
    return issues_of(
        margins[counted],
        np.where(predicted >= 0, predicted, given)[counted],
        given[counted],
        num_classes=max(memory.num_classes, int(given.max()) + 1),
        threshold=threshold,
        index=places.sample(counted),
        names=None if names is None else _names(names, places)[places.sample(counted)],
        tokens=None if places.tokens is None else places.token(counted),
        class_names=class_names,
        visits=mean_visits(weigher, len(given)),
    )


def mean_visits(weigher: Remembering, count: int) -> float:
    """How often the first so many samples were visited in the mean, of those that were."""
    visits = weigher.settled().testimony.visits[:count]
    return float(visits[visits > 0].mean())


class _Places(NamedTuple):
    """Where labels lie in a memory: a place a sample, or one for each of its tokens."""

    samples: int
    tokens: int | None = None

    def sample(self, places: Any) -> Any:
        """The samples at places."""
        return places // (self.tokens or 1)

    def token(self, places: Any) -> Any:
        """Which of their samples' tokens lie there."""
        return places % (self.tokens or 1)

    def called(self, place: int) -> str:
        """What users call the place."""
        token = "" if self.tokens is None else f"token {self.token(place)} of "
        return f"{token}sample {self.sample(place)}"


def _known(memory: Memory, given: NDArray[Any], places: _Places) -> NDArray[Any]:
    """The labels that a memory has seen, -1 where none; they have to be those that are given."""
    seen = (memory.columns["label"] >= 0).nonzero()
    require(len(seen) > 0, "the weigher has seen no samples yet: train first.")
    last = int(seen.max())
    require(
        last < len(given), f"{places.called(last)} was trained on, but there are only {len(given)} labels: give all."
    )
    require(
        bool(memory.columns["margin"].any()),
        "this weigher remembers losses alone: an audit needs margins, as 'auto' keeps them.",
    )
    known = _fitted(memory.columns["label"], len(given))
    changed = np.flatnonzero((known >= 0) & (known != given))
    if len(changed):
        first = int(changed[0])
        raise UserError(
            f"{places.called(first)} has label {given[first]}, but {known[first]} was trained on: give the labels of "
            "the training, in the order of its indices."
        )
    return known


def _names(names: Sequence[str], places: _Places) -> NDArray[Any]:
    require(len(names) == places.samples, f"there are {places.samples} samples, but {len(names)} names.")
    return np.asarray(names, dtype=str)


def issues_of(
    margins: NDArray[Any],
    predicted: NDArray[Any],
    given: NDArray[Any],
    *,
    num_classes: int,
    threshold: float | None = None,
    index: NDArray[Any] | None = None,
    names: NDArray[Any] | None = None,
    tokens: NDArray[Any] | None = None,
    class_names: Sequence[str] | Mapping[int, str] = (),
    visits: float | None = None,
) -> LabelIssues:
    """The audit of samples by their averaged margins, NaN where one never came up, and their predicted classes.

    How probably a label is wrong is read off its margin m: `sigmoid(slope (even - m))`. It is as probably wrong as
    right at half the mean margin of contradicted labels, since hard samples are contradicted by less than wrong labels
    are; or where `auto` has it, at `logit(prior) / slope`, if that is lower. The prior is the share of negative
    margins: where few labels are contradicted, only strong contradiction counts. After a training, `visits` is how
    often it saw each sample in the mean.
    """
    require(
        threshold is None or (isinstance(threshold, Real) and 0 <= float(threshold) <= 1),
        f"the threshold goes from 0 to 1, but is {threshold!r}.",
    )
    shown = _in_order(class_names)
    if shown:  # a network may have outputs to spare, which are no classes and need no names
        highest = int(max(given.max(), predicted.max()))
        require(
            highest < len(shown),
            f"labels, given or predicted, go up to class {highest}, but there are {len(shown)} class names.",
        )
        num_classes = min(num_classes, len(shown))
    known = np.where(np.isfinite(margins), margins, np.nan).astype(np.float64)
    even = _even_margin(known)
    threshold = (1 + even) / 2 if threshold is None else threshold
    scores = np.clip((1 + known) / 2, 0, 1)
    columns: dict[str, NDArray[Any]] = {
        "index": np.arange(len(given)) if index is None else index,
        "is_label_issue": scores < threshold,
        "label_score": scores,
        "given_label": given,
        "predicted_label": predicted,
    }
    more = {"name": names, "token": tokens}
    columns |= {name: column for name, column in more.items() if column is not None}
    wrong = 1 / (1 + np.exp(SLOPE * (known - even)))
    return LabelIssues(columns, wrong, num_classes, threshold, shown, visits)


def _even_margin(margins: NDArray[np.float64]) -> float:
    """The margin at which a label is as probably wrong as right; NaN where a sample never came up."""
    against = margins[margins < 0]
    num_seen = max(np.isfinite(margins).sum(), 1)
    prior = float(np.clip(len(against) / num_seen, LEAST_PRIOR, MOST_PRIOR))
    halfway = float(against.mean()) / 2 if len(against) else 0.0
    return min(log(prior / (1 - prior)) / SLOPE, halfway)


def _in_order(class_names: Any) -> tuple[str, ...]:
    """Names of the classes, in their order also where they come as a dict."""
    if not isinstance(class_names, Mapping):
        return tuple(class_names)
    numbers = range(len(class_names))
    require(
        set(class_names) == set(numbers), "class_names as a dict has a name for each class's number: 0, 1, 2 and so on."
    )
    return tuple(class_names[number] for number in numbers)


def _fitted(column: Tensor, length: int) -> NDArray[Any]:
    """A memory's column as long as the labels: it grows ahead of the samples, and not to those that never came."""
    values = column[:length].cpu().numpy()
    return np.concatenate([values, np.full(length - len(values), -1, values.dtype)])


def _classes(labels: Any) -> NDArray[Any]:
    wanted = (
        "labels are one class, a whole number from 0 on, for each training sample; for tokens [samples, tokens], with "
        f"{IGNORED} where one does not count."
    )
    try:
        given = np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(wanted) from error
    require(given.ndim in (1, 2) and given.size > 0 and np.issubdtype(given.dtype, np.integer), wanted)
    sound = given >= 0 if given.ndim == 1 else (given >= 0) | (given == IGNORED)
    require(bool(sound.all()) and int(given.max()) >= 0, wanted)
    return given
