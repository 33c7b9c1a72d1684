"""Weights in scikit-learn: for any classifier with `predict_proba` and `sample_weight`.

    model = AutoWeightClassifier(RandomForestClassifier()).fit(X, y)
    model.sample_weight_, model.label_issues_["is_label_issue"]

or by hand, `sample_weights(weigher, cross_val_predict(model, X, y, method="predict_proba"), y)`.
"""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from autoweight.errors import require
from autoweight.integrations.out_of_fold import Array, sample_weights, settled
from autoweight.strategy.shipped import load
from autoweight.strategy.weigher import Weigher

__all__ = ["AutoWeightClassifier", "sample_weights"]


class AutoWeightClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits a classifier twice: to find out, out of fold, which labels it contradicts, and then with weights.

    `estimator` has `predict_proba` and takes `sample_weight`, itself or as a pipeline's last step; by default it is a
    logistic regression. `weigher` is a weigher or the name of one, and `cv` as in `cross_val_predict`; whole numbers
    are shuffled folds with a share of every class. Where a class has a single sample, all weights are 1. With metadata
    routing, a `sample_weight` that the estimator requests is multiplied by the weights found.

    Fitted, it has `estimator_`, `weigher_`, `classes_`, `sample_weight_` and `label_issues_`: columns `index`,
    `is_label_issue`, `label_score` (0 is bad), `given_label` and `predicted_label`, as arrays.
    """

    def __init__(
        self, estimator: Any = None, *, weigher: Weigher | str = "auto", cv: Any = 5, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.weigher = weigher
        self.cv = cv
        self.n_jobs = n_jobs

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
        probabilities = self._out_of_fold(X, y, classes, params)
        weigher = load(self.weigher) if isinstance(self.weigher, str) else self.weigher
        self.sample_weight_: Array = np.ones(len(y))
        self.weigher_ = weigher
        if probabilities is not None:
            self.sample_weight_, self.weigher_ = settled(weigher, probabilities, classes)
        self.label_issues_ = self._issues(probabilities, classes)
        routed = process_routing(self, "fit", **params).estimator.fit if params else {}
        weights = self.sample_weight_ * np.asarray(routed.get("sample_weight", 1.0))
        self.estimator_ = clone(estimator).fit(X, y, **routed | {_weight_name(estimator): weights})
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

    def _out_of_fold(self, X: Any, y: Any, classes: Array, params: dict[str, Any]) -> Array | None:  # noqa: N803
        """Probabilities of samples that the estimator has not seen; None where a class is too small for that."""
        smallest = int(np.bincount(classes).min())
        if len(self.classes_) < 2 or smallest < 2:
            return None
        splits = self.cv
        if isinstance(splits, int):
            splits = StratifiedKFold(min(splits, smallest), shuffle=True, random_state=0)
        return cross_val_predict(
            self._estimator(), X, y, cv=splits, method="predict_proba", n_jobs=self.n_jobs, params=params or None
        )

    def _issues(self, probabilities: Array | None, classes: Array) -> dict[str, Array]:
        predicted = classes if probabilities is None else probabilities.argmax(axis=1)
        most = np.zeros(len(self.classes_))
        np.maximum.at(most, classes, self.sample_weight_)
        score = self.sample_weight_ / np.maximum(most[classes], np.finfo(np.float64).tiny)
        return {
            "index": np.arange(len(classes)),
            "is_label_issue": (score < 0.5) & (predicted != classes),
            "label_score": score,
            "given_label": self.classes_[classes],
            "predicted_label": self.classes_[predicted],
        }


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
