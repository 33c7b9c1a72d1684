"""Weights in scikit-learn: for any classifier with `predict_proba` and `sample_weight`.

    model = AutoWeightClassifier(RandomForestClassifier()).fit(X, y)
    model.sample_weight_, model.label_issues_["index"]       # the worst label first

or by hand, `sample_weights(weigher, cross_val_predict(model, X, y, method="predict_proba"), y)`.
"""

import warnings
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from autoweight.audit.find import issues_of
from autoweight.audit.table import LabelIssues
from autoweight.errors import require
from autoweight.integrations.out_of_fold import Array, sample_weights, settled
from autoweight.strategy.shipped import load
from autoweight.strategy.weigher import Weigher

__all__ = ["AutoWeightClassifier", "sample_weights"]

_NAMED = 5  # classes, before a warning only counts them


class AutoWeightClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits a classifier twice: to find out, out of fold, which labels it contradicts, and then with weights.

    `estimator` has `predict_proba` and takes `sample_weight`, itself or as a pipeline's last step; by default it is a
    logistic regression. `weigher` is a weigher or the name of one, and `cv` as in `cross_val_predict`; whole numbers
    are shuffled folds with a share of every class. A class's only sample is trained on in every fold, has the weight 1
    and is not judged. With metadata routing, a `sample_weight` that the estimator requests is multiplied by the weights
    found.

    Folds of a small clean set are contradicted too. So weights have to pay: fitted with them, fold by fold, the
    estimator has to meet more of the labels held out than without, by more than the standard error of the difference;
    else all weights are 1. Wrong labels among those held out hide a part of what is gained, but do not turn it round.
    `must_pay=False` takes weights as they come.

    Fitted, it has `estimator_`, `weigher_`, `classes_`, `sample_weight_` and `label_issues_`, the table that
    `aw.find_label_issues` gives: columns `index`, `is_label_issue`, `label_score` (0 is bad), `given_label` and
    `predicted_label`, the worst label first.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        weigher: Weigher | str = "auto",
        cv: Any = 5,
        n_jobs: int | None = None,
        must_pay: bool = True,
    ) -> None:
        self.estimator = estimator
        self.weigher = weigher
        self.cv = cv
        self.n_jobs = n_jobs
        self.must_pay = must_pay

    def fit(self, X: Any, y: Any, **params: Any) -> "AutoWeightClassifier":  # noqa: N803
        """Find weights out of fold, and fit the estimator with them."""
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        X, y = validate_data(self, X, y, skip_check_array=True)  # noqa: N806 - the estimator looks at the rest
        estimator = self._estimator()
        require(
            hasattr(estimator, "predict_proba") and has_fit_parameter(_last(estimator), "sample_weight"),
            f"{type(_last(estimator)).__name__} cannot be weighted: it needs predict_proba and fit(sample_weight=).",
        )
        require(
            not params or _routing(),
            "fit takes X and y; sample_weight and the like need scikit-learn's metadata routing.",
        )
        self.classes_, classes = np.unique(y, return_inverse=True)
        routed = process_routing(self, "fit", **params) if params else None
        own = dict(routed.estimator.fit) if routed else {}
        judged = self._judged(classes)
        splits = self._splits(X, y, judged, routed.splitter.split if routed else {})
        # Where the estimator is given nothing, nothing is routed, and no step has to request the weights found.
        with config_context(enable_metadata_routing=_routing() and bool(own)):
            self._fit(X, y, classes, judged, splits, own)
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The weighted estimator's classes."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(lambda self: hasattr(self._estimator(), "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The weighted estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """What goes to the estimator, and what to the splitter."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add(estimator=self._estimator(), method_mapping=fit)
        return router.add(splitter=check_cv(self.cv, classifier=True), method_mapping=split)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self._estimator().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags

    def _estimator(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _weights(self, own: dict[str, Any]) -> dict[str, Array]:
        """The weights found, times those of the user, under the name that the estimator's fit has for them."""
        return {_weight_name(self._estimator()): self.sample_weight_ * np.asarray(own.get("sample_weight", 1.0))}

    def _fit(self, X: Any, y: Any, classes: Array, judged: Array, splits: Any, own: dict[str, Any]) -> None:  # noqa: N803
        """Find weights by the folds, see whether they pay, and fit with them."""
        probabilities = self._out_of_fold(X, y, splits, own)
        weigher = load(self.weigher) if isinstance(self.weigher, str) else self.weigher
        self.sample_weight_: Array = np.ones(len(y))
        self.weigher_ = weigher
        if probabilities is not None:
            rows = np.flatnonzero(judged)
            self.sample_weight_[rows], self.weigher_ = settled(weigher, probabilities[rows], classes[rows], rows)
            if self.must_pay and not np.allclose(self.sample_weight_, 1.0):
                weighted = self._out_of_fold(X, y, splits, own | self._weights(own))
                met = [one[rows].argmax(axis=1) == classes[rows] for one in (weighted, probabilities)]
                if not _pays(*met):
                    self.sample_weight_ = np.ones(len(y))
        self.label_issues_ = self._issues(probabilities, classes, judged)
        self.estimator_ = clone(self._estimator()).fit(X, y, **own | self._weights(own))

    def _judged(self, classes: Array) -> Array:
        """Which samples can be held out: all but a class's only one, of which a learner without it knows nothing."""
        counts = np.bincount(classes)
        alone = [str(name) for name in self.classes_[counts == 1]]
        if alone:
            names = ", ".join(alone[:_NAMED]) + (f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else "")
            warnings.warn(f"these classes have a single sample, which is not judged: {names}.", stacklevel=3)
        return counts[classes] > 1

    def _splits(self, X: Any, y: Any, judged: Array, routed: dict[str, Any]) -> list[Any] | None:  # noqa: N803
        """The folds, once for all; None where there are not two classes to hold samples out of."""
        _, counts = np.unique(y[judged], return_counts=True)
        if len(counts) < 2:
            return None
        splitter = self.cv
        if isinstance(splitter, int):
            splitter = StratifiedKFold(min(splitter, int(counts.max())), shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # which is then not in every fold
            splits = list(check_cv(splitter, y, classifier=True).split(X, y, **routed))
        alone = np.flatnonzero(~judged)
        if not len(alone):
            return splits
        splits = [(np.union1d(train, alone), np.setdiff1d(held_out, alone)) for train, held_out in splits]
        # A last part, so that each sample is in one: what it gives is not looked at.
        return [one for one in splits if len(one[1])] + [(np.arange(len(y)), alone)]

    def _out_of_fold(self, X: Any, y: Any, splits: Any, params: dict[str, Any]) -> Any:  # noqa: N803
        """The estimator's probabilities of samples that it has not seen."""
        if splits is None:
            return None
        estimator = clone(self._estimator())
        if _routing() and "sample_weight" in params:
            _last(estimator).set_fit_request(sample_weight=True)
        return cross_val_predict(
            estimator, X, y, cv=splits, method="predict_proba", n_jobs=self.n_jobs, params=params or None
        )

    def _issues(self, probabilities: Array | None, classes: Array, judged: Array) -> LabelIssues:
        """The audit of what was judged; all else is as if never seen."""
        margins, predicted = np.full(len(classes), np.nan), classes
        if probabilities is not None:
            rows, others = np.arange(len(classes)), probabilities.copy()
            others[rows, classes] = -1
            margins = np.where(judged, probabilities[rows, classes] - others.max(axis=1), np.nan)
            predicted = np.where(judged, probabilities.argmax(axis=1), classes)
        names = self.classes_.tolist()
        return issues_of(margins, predicted, classes, num_classes=len(names), class_names=names)


def _pays(weighted: Array, plain: Array) -> bool:
    """Whether more labels are met with weights than without, by more than the standard error of the difference."""
    difference = weighted.astype(float) - plain
    return bool(difference.mean() > difference.std() / np.sqrt(len(difference)))


def _routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _weight_name(estimator: Any) -> str:
    """What a fit calls the weights: pipelines without routing want to know the step that they are for."""
    return (
        f"{estimator.steps[-1][0]}__sample_weight"
        if hasattr(estimator, "steps") and not _routing()
        else "sample_weight"
    )
