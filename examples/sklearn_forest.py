"""scikit-learn with weights: a random forest on digits with 30 % wrong labels, and which labels it suspects.

python examples/sklearn_forest.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from autoweight.sklearn import AutoWeightClassifier

inputs, labels = load_digits(return_X_y=True)
train_inputs, test_inputs, train_labels, test_labels = train_test_split(inputs, labels, test_size=0.5, random_state=0)
draw = np.random.default_rng(0)
wrong = draw.random(len(train_labels)) < 0.3
given = np.where(wrong, (train_labels + draw.integers(1, 10, len(train_labels))) % 10, train_labels)

plain = RandomForestClassifier(random_state=0).fit(train_inputs, given)
model = AutoWeightClassifier(RandomForestClassifier(random_state=0)).fit(train_inputs, given)
suspected = model.label_issues_["is_label_issue"]
print(
    f"suspected {suspected.sum()} labels, of which {wrong[suspected].mean():.1%} are wrong, of {wrong.sum()} wrong ones"
)
print(f"test accuracy without weights {plain.score(test_inputs, test_labels):.1%}")
print(f"test accuracy {model.score(test_inputs, test_labels):.1%}")
