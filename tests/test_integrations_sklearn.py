"""Weights from out-of-fold probabilities, and the classifier that scikit-learn checks."""

import numpy as np
import pytest
import sklearn
import torch
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import autoweight as aw
from autoweight.integrations.sklearn import _pays
from autoweight.sklearn import AutoWeightClassifier

X, RIGHT = make_blobs(240, centers=3, cluster_std=0.7, random_state=0)
WRONG = np.random.default_rng(0).random(240) < 0.3
GIVEN = np.where(WRONG, (RIGHT + 1) % 3, RIGHT)


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own checks do
def test_scikit_learn_finds_nothing_wrong():
    check_estimator(AutoWeightClassifier())


def test_weights_follow_the_probabilities_and_the_weigher_stays_as_it_was():
    probabilities = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    weigher = aw.Focal(gamma=2.0)
    expected = [(1 - 0.7) ** 2, (1 - 0.4) ** 2]
    np.testing.assert_allclose(aw.sample_weights(weigher, probabilities, [0, 2]), expected, rtol=1e-5)
    auto = aw.load("auto")
    aw.sample_weights(auto, probabilities, [0, 2])
    assert auto.memory is None


def test_out_of_fold_looks_are_no_training_that_could_be_far_from_a_strategys_own():
    strategy = aw.Strategy(torch.tensor([[-1.0, 0.0, 0.0]]), info={"found_in": {"batch_size": 16, "steps": 900}})
    aw.sample_weights(strategy, np.full((240, 3), 1 / 3), GIVEN)
    assert strategy.judges_batches


def test_auto_judges_labels_by_one_look_at_each():
    probabilities = cross_val_predict(LogisticRegression(), X, GIVEN, cv=5, method="predict_proba")
    weights = aw.sample_weights(aw.load("auto"), probabilities, GIVEN)
    assert weights[WRONG].mean() < 0.5 < 1.1 < weights[~WRONG].mean()


def test_wrong_labels_are_found_and_lose_their_weight():
    names = np.array(["red", "green", "blue"])
    forest = RandomForestClassifier(30, min_samples_leaf=10, random_state=0)
    model = AutoWeightClassifier(forest, must_pay=False).fit(X, names[GIVEN])
    issues = model.label_issues_
    suspected = issues["index"][issues["is_label_issue"]]
    assert WRONG[suspected].mean() > 0.9
    assert len(suspected) > 0.8 * WRONG.sum()
    assert (issues["given_label"] == names[GIVEN][issues["index"]]).all()
    assert (issues["predicted_label"] == names[RIGHT][issues["index"]]).mean() > 0.9
    assert model.sample_weight_[WRONG].mean() < 0.5 * model.sample_weight_[~WRONG].mean()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_weights_have_to_pay_on_labels_held_out():
    tree = DecisionTreeClassifier(min_samples_leaf=4, random_state=0)
    rows, classes = make_blobs(240, centers=3, cluster_std=1.3, random_state=2)  # they overlap; no label is wrong
    anyway, clean = (AutoWeightClassifier(tree, must_pay=must).fit(rows, classes) for must in (False, True))
    assert (anyway.sample_weight_ < 0.1).any()
    assert (clean.sample_weight_ == 1).all()
    noisy = AutoWeightClassifier(tree).fit(X, GIVEN)
    assert noisy.score(X, RIGHT) > tree.fit(X, GIVEN).score(X, RIGHT) + 0.1


class Contrary(DecisionTreeClassifier):
    """Its classes are not those that it finds most probable."""

    def predict(self, rows):
        return np.zeros(len(rows), int)


def test_with_and_without_weights_the_most_probable_class_counts():
    model = AutoWeightClassifier(Contrary(min_samples_leaf=4, random_state=0)).fit(X, GIVEN)
    assert (model.sample_weight_ != 1).any()


def test_what_pays_is_more_than_a_standard_error():
    plain = np.arange(100) < 60
    differ = np.zeros(100, dtype=bool)
    differ[60:64] = True  # four more are met: 0.04, where the standard error is sqrt(0.04 * 0.96) / 10 = 0.0196
    assert _pays(plain | differ, plain)
    differ[:2] = True  # and two fewer: 0.02, where it is 0.0237
    assert not _pays(plain ^ differ, plain)
    assert not _pays(plain, plain)


def test_ones_change_nothing_to_the_bit():
    ones = AutoWeightClassifier(LogisticRegression(), weigher=aw.Uniform()).fit(X, GIVEN)
    plain = LogisticRegression().fit(X, GIVEN)
    assert (ones.estimator_.coef_ == plain.coef_).all()


def test_the_last_step_of_a_pipeline_is_weighted():
    model = AutoWeightClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, GIVEN)
    again = make_pipeline(StandardScaler(), LogisticRegression())
    again.fit(X, GIVEN, logisticregression__sample_weight=model.sample_weight_)
    assert (model.predict_proba(X) == again.predict_proba(X)).all()


@pytest.mark.parametrize("steps", [1, 2])
def test_with_routing_and_nothing_to_route_all_is_as_without(steps):
    estimator = make_pipeline(*[StandardScaler(), LogisticRegression()][-steps:])
    plain = AutoWeightClassifier(estimator).fit(X, GIVEN)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = AutoWeightClassifier(estimator).fit(X, GIVEN)
        groups = np.arange(len(X)) % 4
        AutoWeightClassifier(estimator, cv=GroupKFold(4)).fit(X, GIVEN, groups=groups)
        assert (routed.predict_proba(X) == plain.predict_proba(X)).all()
    assert (routed.sample_weight_ != 1).any()


def test_metadata_are_routed():
    own = np.linspace(0.1, 1, len(X))
    groups = np.arange(len(X)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = AutoWeightClassifier(inner, cv=GroupKFold(4)).fit(X, GIVEN, sample_weight=own, groups=groups)
        again = LogisticRegression().fit(X, GIVEN, sample_weight=own * model.sample_weight_)
        deaf = LogisticRegression().set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="unexpected argument"):
            AutoWeightClassifier(deaf).fit(X, GIVEN, nonsense=own)
    assert (model.estimator_.coef_ == again.coef_).all()
    with pytest.raises(aw.UserError, match="need scikit-learn's metadata routing"):
        AutoWeightClassifier().fit(X, GIVEN, sample_weight=own)


@pytest.mark.parametrize("cv", [5, KFold(4)])
def test_a_mistyped_label_is_not_judged_and_all_others_are(cv):
    labels = np.array(["red", "green", "blue"])[GIVEN].astype(object)
    labels[7] = "geen"
    with pytest.warns(UserWarning, match="have a single sample, which is not judged: geen"):
        model = AutoWeightClassifier(cv=cv, must_pay=False).fit(X, labels)
    issues = model.label_issues_
    assert (issues.num_seen, issues["index"][-1], issues["is_label_issue"][-1]) == (239, 7, False)
    assert WRONG[issues["index"][issues["is_label_issue"]]].mean() > 0.8
    assert model.sample_weight_[7] == 1
    assert model.sample_weight_[WRONG].mean() < 0.7 * model.sample_weight_[~WRONG].mean()
    remembered = model.weigher_.memory.columns["label"][:240].numpy()
    assert (model.classes_[remembered] == labels)[remembered >= 0].all()
    assert np.flatnonzero(remembered < 0).tolist() == [7]


def test_a_class_of_two_leaves_the_others_their_folds():
    labels = RIGHT.copy()
    labels[:2] = 7
    splits = AutoWeightClassifier()._splits(X, labels, np.ones(240, bool), {})
    assert len(splits) == 5
    assert all((labels[train] == 7).any() for train, _ in splits)


@pytest.mark.filterwarnings("ignore:these classes")
def test_one_class_and_single_samples_are_not_judged():
    labels = np.zeros(240)
    labels[0] = 7
    model = AutoWeightClassifier().fit(X, labels)
    assert (model.sample_weight_ == 1).all()
    assert np.isnan(model.label_issues_["label_score"]).all()
    assert (model.label_issues_.num_issues, model.label_issues_.num_seen, model.label_issues_.noise_rate) == (0, 0, 0)


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([[0.5, 0.5]], [0, 1], r"shapes are \(1, 2\) and \(2,\)"),
        ([0.5, 0.5], [0, 1], r"shapes are \(2,\) and \(2,\)"),
        (np.zeros((0, 2)), [], "a row a sample"),
        ([[0.5, 0.6], [0.5, 0.5]], [0, 1], "sum to 1: use predict_proba"),
        ([[1.5, -0.5], [0.5, 0.5]], [0, 1], "lie between 0 and 1"),
        ([[float("nan"), 0.5], [0.5, 0.5]], [0, 1], "lie between 0 and 1"),
        ([[0.5, 0.5]] * 3, ["a", "b", "c"], "3 different labels, but probabilities of 2 classes"),
        ([[0.5, 0.5]] * 3, [0, 1, 2], "3 different labels, but probabilities of 2 classes"),
    ],
)
def test_probabilities_that_are_none_are_refused(probabilities, labels, message):
    with pytest.raises(aw.UserError, match=message):
        aw.sample_weights(aw.load("auto"), probabilities, labels)


def test_what_cannot_be_weighted_is_said():
    with pytest.raises(aw.UserError, match="LinearSVC cannot be weighted: it needs predict_proba"):
        AutoWeightClassifier(LinearSVC()).fit(X, GIVEN)
    with pytest.raises(aw.UserError, match="unknown strategy 'awto': did you mean 'auto'"):
        AutoWeightClassifier(weigher="awto").fit(X, GIVEN)
    with pytest.raises(aw.UserError, match="takes a weigher such as"):
        aw.sample_weights(torch.ones(3), [[0.5, 0.5]] * 2, [0, 1])
