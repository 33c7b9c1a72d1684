"""AutoWeightClassifier on scikit-learn's own data, with 30 % wrong labels and with none.

python benchmarks/sklearn_weights.py            about two minutes on one core

Mean accuracy in percent over three splits of halves: the estimator alone, with weights, and with the labels put right.
The share of wrong labels found, and of found ones that are wrong, stand beside it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autoweight.sklearn import AutoWeightClassifier

DATA = {"breast_cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
ESTIMATORS = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0, max_iter=50),
}
SEEDS = 3


class Outcome(NamedTuple):
    """Of one split."""

    alone: float
    weighted: float
    corrected: float
    found: float
    precise: float


def outcomes(data: str, estimator: str, rate: float) -> Iterator[Outcome]:
    """Fit on one half of the data, score on the other, for every seed."""
    inputs, labels = DATA[data](return_X_y=True)
    for seed in range(SEEDS):
        split = train_test_split(inputs, labels, test_size=0.5, stratify=labels, random_state=seed)
        train_inputs, test_inputs, train_labels, test_labels = split
        draw = np.random.default_rng(seed)
        wrong = draw.random(len(train_labels)) < rate
        others = (train_labels + draw.integers(1, labels.max() + 1, len(train_labels))) % (labels.max() + 1)
        given = np.where(wrong, others, train_labels)
        plain = [ESTIMATORS[estimator]().fit(train_inputs, one) for one in (given, train_labels)]
        weighted = AutoWeightClassifier(ESTIMATORS[estimator]()).fit(train_inputs, given)
        alone, corrected, own = (one.score(test_inputs, test_labels) for one in (*plain, weighted))
        suspected = weighted.label_issues_["is_label_issue"]
        hits = (suspected & wrong).sum()
        yield Outcome(alone, own, corrected, hits / max(wrong.sum(), 1), hits / max(suspected.sum(), 1))


if __name__ == "__main__":
    print("| data | estimator | wrong | alone | weighted | labels right | found | of those found, wrong |")
    print("|---|---|---|---|---|---|---|---|")
    for rate in (0.3, 0.0):
        for data in DATA:
            for estimator in ESTIMATORS:
                means = 100 * np.mean(list(outcomes(data, estimator, rate)), axis=0)
                print(
                    f"| {data} | {estimator} | {rate:.0%} |",
                    " | ".join(f"{mean:.1f}" for mean in means),
                    "|",
                    flush=True,
                )
