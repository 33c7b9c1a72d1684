"""What aw.search takes from users, and what it says of their mistakes."""

from functools import partial

import pytest
import torch
from torch import nn

import autoweight as aw
from autoweight.config import SearchConfig, TrainingConfig

from .conftest import make_blobs


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
    return aw.search(make_model, train or make_blobs(48), make_blobs(30, seed=9), config, training=training, **options)


class Picky(nn.Linear):
    def __init__(self):
        super().__init__(2, 3)

    def forward(self, inputs):
        raise AssertionError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small_search(lambda: None), "must return an nn.Module, but returned NoneType"),
        (lambda: small_search(lambda: nn.Linear(2, 2)), r"for 3 classes, but for 2 samples gives \(2, 2\)"),
        (lambda: small_search(lambda: nn.Linear(5, 3)), "cannot take torch.float32 inputs of shape"),
        (lambda: small_search(lambda: nn.LSTM(2, 3)), "gives tuple"),
        (lambda: small_search(partial({0: nn.Linear(2, 3)}.get, 0)), "a fresh network at every call"),
        (lambda: small_search(lambda: nn.LazyLinear(3)), "lazy layers"),
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
        (lambda: small_search(train=[{"x": torch.randn(2), "y": 1, "z": 2}] * 4), "a Dataset of such pairs"),
        (lambda: aw.TrainingConfig(precision="fp16"), "unknown precision 'fp16'"),
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


def test_a_list_of_two_tensors_is_data_too():
    assert small_search(train=list(_pair(make_blobs(48)))).num_stages == 4


def _pair(samples):
    return samples.inputs, samples.labels
