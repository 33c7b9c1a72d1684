"""What aw.search takes from users, and what it says of their mistakes."""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

import autoweight as aw
from autoweight.config import SearchConfig, TrainingConfig
from autoweight.data import as_samples
from autoweight.finding import prepare_search

from .conftest import make_blobs

LONGTAIL = Path(__file__).parents[1] / "results" / "strategies" / "cifar10-longtail-0.safetensors"


def test_search_takes_numpy_and_refuses_what_it_cannot_use():
    data = make_blobs(48)
    arrays = data.inputs.double().numpy(), data.labels.numpy()
    training = TrainingConfig(epochs=4, batch_size=16, num_stages=4)
    config = SearchConfig(num_episodes=1, num_workers=5, choice_rounds=1, warmup_stages=1)
    assert aw.search(lambda: nn.Linear(2, 3), arrays, arrays, config, training=training).num_stages == 4
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data.inputs, data.labels))
    with pytest.raises(aw.UserError, match="not a DataLoader"):
        aw.search(lambda: nn.Linear(2, 3), loader, data, config, training=training)
    with pytest.raises(aw.UserError, match="callable that returns a fresh network"):
        aw.search(nn.Linear(2, 3), data, data, config, training=training)
    with pytest.raises(aw.UserError, match="there is no device"):
        aw.search(lambda: nn.Linear(2, 3), data, data, config, training=training, device="cuda:99")


def small_search(make_model=lambda: nn.Linear(2, 3), train=None, agent="cmaes", **options):
    config = SearchConfig(agent=agent, num_episodes=1, num_workers=5, choice_rounds=1, warmup_stages=1)
    training = TrainingConfig(epochs=4, batch_size=16, num_stages=4)
    train = make_blobs(48) if train is None else train
    return aw.search(make_model, train, make_blobs(30, seed=9), config, training=training, **options)


class Picky(nn.Linear):
    def __init__(self):
        super().__init__(2, 3)

    def forward(self, inputs):
        raise AssertionError


class OneRow(nn.Linear):
    def __init__(self):
        super().__init__(2, 3)

    def forward(self, inputs):
        return super().forward(inputs).mean(dim=0, keepdim=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small_search(lambda: None), "must return an nn.Module, but returned NoneType"),
        (lambda: small_search(OneRow), r"for 2 samples gives \(1, 3\)"),
        (lambda: small_search(lambda: nn.Linear(2, 2)), r"for 3 classes, but for 2 samples gives \(2, 2\)"),
        (lambda: small_search(lambda: nn.Linear(5, 3)), "cannot take torch.float32 inputs of shape"),
        (lambda: small_search(lambda: nn.LSTM(2, 3)), "gives tuple"),
        (lambda: small_search(partial({0: nn.Linear(2, 3)}.get, 0)), "a fresh network at every call"),
        (lambda: small_search(lambda: nn.LazyLinear(3)), "lazy layers"),
        (lambda: small_search(nn.Linear), "make_model\\(\\) does not build a network: .* missing 2 required"),
        (lambda: small_search(lambda: nn.Linear(2, 3).requires_grad_(False)), "no parameters that can be trained"),
        (
            lambda: small_search(train=(torch.randn(48, 5), make_blobs(48).labels)),
            "validation inputs .*: make them alike",
        ),
        (lambda: aw.search(nn.Linear, make_blobs()), "^val_data is missing: pass tensors .* to choose strategies by"),
        (lambda: aw.search(nn.Linear), "^train_data is missing: "),
        (lambda: aw.search(nn.Linear, *[(torch.randn(48, 2), torch.zeros(48).long())] * 2), "there is one class only"),
        (lambda: small_search(seed=-1), "seed goes from 0 to 2147483647, but is -1"),
        (lambda: small_search(device=None), "there is no device 'None'"),
        (lambda: aw.search(None, None, None, aw.presets.noise), "config takes an aw.SearchConfig"),
        (lambda: aw.search(None, None, None, training={"epochs": 3}), "training takes an aw.TrainingConfig"),
        (lambda: small_search(Picky), "of shape \\(2,\\), 2 at a time: AssertionError"),
        (lambda: small_search(agent="cmase"), "unknown agent 'cmase': did you mean 'cmaes'"),
        (lambda: small_search(augmentation="flip"), "unknown augmentation 'flip'"),
        (lambda: small_search(augmentation="crop_flip"), "only images can be augmented"),
        (lambda: small_search(train=(torch.randn(4, 2), torch.tensor([0, 1, 2, 7]))), "class 3 .* labels go up to 7"),
        (
            lambda: small_search(train=(torch.full((4, 2), float("nan")), torch.tensor([0, 1, 2, 0]))),
            "the training data cannot be used: sample 0 has a NaN",
        ),
        (lambda: small_search(train=(torch.randn(4, 2),)), "data are a pair of tensors"),
        (lambda: small_search(train=[(torch.randn(2), 0), (torch.randn(3), 1)]), "all inputs of one shape"),
        (lambda: small_search(train=[(torch.randn(2), "cat")] * 4), "labels integers"),
        (
            lambda: small_search(train=[{"x": torch.randn(2), "z": 2}] * 4),
            "has its label under label, labels, target, y",
        ),
        (lambda: aw.TrainingConfig(precision="fp16"), "unknown precision 'fp16'"),
        (lambda: aw.TrainingConfig(epochs=8.5), "training.epochs takes a whole number, but is 8.5"),
        (lambda: aw.TrainingConfig(epochs=True), "training.epochs takes a whole number, but is True"),
        (lambda: aw.TrainingConfig(learning_rate="0.1"), "training.learning_rate takes a number, but is '0.1'"),
        (lambda: aw.TrainingConfig(drop_stages=5), "training.drop_stages takes a tuple, but is 5"),
        (lambda: aw.TrainingConfig(drop_stages=(5.5,)), "training.drop_stages takes whole numbers"),
        (lambda: aw.TrainingConfig(learning_rate=np.float32("inf")), "must be a finite number"),
        (lambda: small_search(seed=True), "seed goes from 0 to 2147483647, but is True"),
        (lambda: small_search(checkpoint="/"), "checkpoint takes a file"),
        (lambda: small_search(train=(torch.randn(4, 2), torch.tensor(1))), "in one dimension"),
        (
            lambda: aw.Constant(label=1.0).weigh(torch.ones(4), torch.randn(4, 3), torch.zeros(4).long(), progress=0.5),
            "class_counts=torch.bincount",
        ),
        (lambda: aw.TrainingConfig(compile=1), "training.compile takes True or False, but is 1"),
        (lambda: aw.SearchConfig(features="loss"), "search.features takes a tuple, but is 'loss'"),
        (lambda: aw.load(LONGTAIL, "abc"), "^class_counts says how many"),
        (lambda: aw.weighted_mean(torch.tensor(1.0), torch.ones(3)), "reduction='none'"),
        (
            lambda: aw.Constant().weigh(torch.tensor(1.0), torch.randn(4, 3), torch.zeros(4).long(), progress=0.5),
            "losses \\[batch\\]",
        ),
    ],
)
def test_mistakes_get_one_sentence(call, message):
    with pytest.raises(aw.UserError, match=message):
        call()


class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield torch.zeros(2), 0


class Unsized(torch.utils.data.Dataset):
    def __getitem__(self, position):
        return torch.zeros(2), 0


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        (Endless(), "not an IterableDataset: it cannot be shuffled"),
        (Unsized(), "this one has no length"),
        ([], "the training data cannot be used: the data set is empty"),
        (torch.utils.data.TensorDataset(torch.zeros(0, 2), torch.zeros(0)), "the data set is empty"),
        ((torch.randn(48, 2), np.array(3)), "in one dimension"),
        ((torch.randn(48, 2), make_blobs(48).labels + 1), "class 0 has no training sample, .* correct labels that"),
    ],
    ids=["iterable", "no length", "nothing", "empty", "one label", "labels from 1"],
)
def test_data_of_an_odd_kind_get_one_sentence_that_names_no_flag(train, sentence):
    with pytest.raises(aw.UserError, match=sentence) as error:
        small_search(train=train)
    assert "--" not in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_of_a_dataset_may_be_numpys_own_numbers():
    blobs = make_blobs(48)
    rows = [(blobs.inputs[n].numpy(), np.array(int(blobs.labels[n]))) for n in range(48)]
    assert small_search(train=rows).num_stages == 4


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, scipy.sparse.csr_matrix])
def test_sparse_inputs_are_made_dense(sparse):
    blobs = make_blobs(48)
    samples = as_samples((sparse(blobs.inputs), blobs.labels))
    assert torch.equal(samples.inputs, blobs.inputs)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [({"num_workers": 4}, "at least 5 workers"), ({"agent": "constant", "num_workers": 1}, "at least 2")],
)
def test_too_few_workers_are_refused_at_once(config, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        SearchConfig(**config)


def test_a_validation_set_that_tells_little_gets_a_word():
    train, val = make_blobs(60), make_blobs(60, seed=9)
    options = {"training": TrainingConfig(epochs=4, batch_size=16, num_stages=4)}
    prepare = partial(prepare_search, lambda: nn.Linear(2, 3), config=SearchConfig(), **options)
    with pytest.warns(UserWarning, match="^12 validation samples tell little: strategies are chosen by luck"):
        prepare(train, val.take(torch.arange(12)))
    both = torch.cat([val.inputs[:50], train.inputs[:10]]), torch.cat([val.labels[:50], train.labels[:10]])
    with pytest.warns(UserWarning, match="^10 of 60 validation samples are in the training set too"):
        prepare(train, both)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare(train, val)


def test_a_list_of_two_tensors_is_data_too():
    assert small_search(train=list(_pair(make_blobs(48)))).num_stages == 4


def _pair(samples):
    return samples.inputs, samples.labels
