"""Weights in the real skorch, and through it in scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import LoadInitState, TrainEndCheckpoint
from torch import nn
from torch.utils.data import Subset, TensorDataset

import autoweight as aw
from autoweight.skorch import WeightedNetClassifier, WeightedNetRegressor

from .conftest import make_blobs

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")

BLOBS = make_blobs(60)
X, Y = BLOBS.inputs.numpy(), BLOBS.labels.numpy()
QUIET = {"verbose": 0, "max_epochs": 3, "batch_size": 16, "lr": 0.1, "iterator_train__shuffle": True}


def probabilities():
    return nn.Sequential(nn.Linear(2, 3), nn.Softmax(dim=-1))


def logits():
    return nn.Linear(2, 3)


def fitted(kind, module, target=Y, **settings):
    torch.manual_seed(0)
    return kind(module, **QUIET | settings).fit(X, target)


def state(net):
    return torch.cat([one.detach().flatten() for one in net.module_.parameters()])


@pytest.mark.parametrize(
    ("kind", "module", "target", "settings"),
    [
        (WeightedNetClassifier, probabilities, Y, {}),
        (WeightedNetClassifier, logits, Y, {"criterion": nn.CrossEntropyLoss, "criterion__label_smoothing": 0.1}),
        (WeightedNetRegressor, lambda: nn.Linear(2, 1), X[:, :1] * 2, {}),
        (WeightedNetRegressor, lambda: nn.Linear(2, 2), X * 2, {"criterion": nn.SmoothL1Loss}),
    ],
    ids=["probabilities", "logits", "numbers", "pairs of numbers"],
)
def test_ones_change_nothing_to_the_bit(kind, module, target, settings):
    ones = fitted(kind, module, target, weigher=aw.Uniform(), **settings)
    plain = fitted(kind, module, target, **settings)
    assert torch.equal(state(ones), state(plain))
    assert ones.history[:, "valid_loss"] == plain.history[:, "valid_loss"]


class Recorder(aw.Weigher):
    """Zeros for one class, and what it was told."""

    def __init__(self):
        self.progress, self.indices = [], []

    def weigh(self, losses, logits, labels, progress, indices=None):
        self.progress.append(progress)
        self.indices += indices.tolist()
        return (labels != 2).float()


def test_batches_tell_their_rows_of_x_and_progress_ends_at_1():
    net = fitted(WeightedNetClassifier, probabilities, weigher=Recorder(), max_epochs=2)
    told = net.weigher_
    assert told.progress == pytest.approx([step / 6 for step in range(6)])  # 48 samples train, in batches of 16
    assert len(set(told.indices)) == 48
    assert max(told.indices) > 48  # rows of X, not of the part that trains
    net.partial_fit(X, Y)
    assert told.progress[6:] == [1.0] * 6
    net.set_params(planned_epochs=4).fit(X, Y).partial_fit(X, Y)
    assert net.weigher_.progress == pytest.approx([step / 12 for step in range(12)])


@pytest.mark.parametrize("settings", [{"train_split": None}, {}], ids=["whole", "split"])
def test_rows_of_a_subset_are_its_own(settings):
    part = Subset(Subset(TensorDataset(BLOBS.inputs, BLOBS.labels), [*range(10, 60)]), [*range(5, 45)])
    net = WeightedNetClassifier(probabilities, weigher=aw.load("auto"), **QUIET | settings)
    net.fit(part, None if settings else Y[15:55])
    remembered = net.weigher_.state_dict()["label"][:40]
    seen = remembered >= 0
    assert int(seen.sum()) == (40 if settings else 32)
    assert torch.equal(remembered[seen].long(), BLOBS.labels[15:55][seen])
    assert not (net.weigher_.state_dict()["label"][40:] >= 0).any()


def test_weights_decide_what_is_learned():
    without, plain = (fitted(WeightedNetClassifier, probabilities, weigher=one) for one in (Recorder(), None))
    third = Y == 2  # those of a weight of 0
    assert without.predict_proba(X)[third, 2].mean() < 0.5 * plain.predict_proba(X)[third, 2].mean()


def test_a_clone_starts_afresh_and_a_grid_search_chooses_among_weighers():
    net = fitted(WeightedNetClassifier, probabilities, weigher=aw.load("auto"))
    assert net.weigher.memory is None
    assert int(net.weigher_.state_dict()["counts"][:, 0].sum()) == 48
    again = clone(net)
    assert again.get_params()["weigher"].memory is None
    assert not hasattr(again, "weigher_")
    search = GridSearchCV(
        WeightedNetClassifier(probabilities, **QUIET | {"max_epochs": 10}),
        {"weigher": [Recorder(), None, aw.Focal(gamma=1.0)]},
        cv=2,
        refit=False,
    ).fit(X, Y)
    ranks = search.cv_results_["rank_test_score"]
    assert ranks[0] == 3  # leaving out a class is worst


def test_training_goes_on_from_skorchs_checkpoints_as_if_never_stopped(tmp_path):
    settings = {"train_split": None, "planned_epochs": 6, "iterator_train__shuffle": False}

    def net(*callbacks):
        return fitted(WeightedNetClassifier, probabilities, weigher=aw.load("auto"), callbacks=[*callbacks], **settings)

    first, saved = net(TrainEndCheckpoint(dirname=tmp_path)), TrainEndCheckpoint(dirname=tmp_path)
    again, whole = net(saved, LoadInitState(saved)), first.partial_fit(X, Y)
    assert torch.equal(state(again), state(whole))
    for name, value in whole.weigher_.state_dict().items():
        assert torch.equal(again.weigher_.state_dict()[name], value), name


def test_an_optimiser_is_loaded_with_and_without_a_memory_and_a_lost_one_is_told(tmp_path):
    files = {"f_params": tmp_path / "p", "f_optimizer": tmp_path / "o", "f_history": tmp_path / "h"}
    kinds = {"plain": None, "weighted": aw.load("auto")}
    made = {name: fitted(WeightedNetClassifier, probabilities, weigher=one) for name, one in kinds.items()}
    for source, target in (("plain", "weighted"), ("weighted", "plain")):
        made[source].save_params(**files)
        loaded = clone(made[target]).initialize()
        loaded.load_params(**files)
        assert torch.equal(state(loaded), state(made[source]))
        if target == "weighted":
            with pytest.warns(UserWarning, match="remembers nothing of 3 earlier epochs: its memory is saved"):
                loaded.partial_fit(X, Y)


def test_it_goes_into_a_pipeline():
    net = WeightedNetClassifier(probabilities, weigher=aw.load("auto"), **QUIET | {"max_epochs": 20})
    model = make_pipeline(StandardScaler(), net).fit(X, Y)
    assert np.mean(model.predict(X) == Y) > 0.9


def test_what_cannot_be_weighed_is_said():
    with pytest.raises(aw.UserError, match="reduction 'mean' and no class weights"):
        fitted(WeightedNetClassifier, probabilities, weigher=aw.Uniform(), criterion__weight=torch.ones(3))
    with pytest.raises(aw.UserError, match="not 'auto'"):
        fitted(WeightedNetClassifier, probabilities, weigher="auto")
