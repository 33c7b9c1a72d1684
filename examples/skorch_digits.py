"""skorch with weights: digits with 36 % wrong labels, and the rows whose labels look wrong.

python examples/skorch_digits.py             weighted by auto
python examples/skorch_digits.py none        not weighted
"""

import sys

import torch
from torch import nn

import autoweight as aw
from autoweight.config import DataConfig
from autoweight.data import load_pool
from autoweight.skorch import WeightedNetClassifier

torch.set_num_threads(1)
torch.manual_seed(0)
config = DataConfig(noise="uniform", noise_rate=0.4)
data = load_pool(config).splits(config, seed=0)


def make_module() -> nn.Module:
    """A small network for images of eight by eight pixels."""
    layers = nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    return nn.Sequential(nn.Flatten(), *layers)


net = WeightedNetClassifier(
    make_module,
    weigher=None if "none" in sys.argv else aw.load("auto"),
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.SGD,
    optimizer__momentum=0.9,
    lr=0.05,
    max_epochs=25,
    batch_size=64,
    iterator_train__shuffle=True,
    train_split=None,
    verbose=0,
)
net.fit(data.train.inputs, data.train.labels)
print(f"test accuracy {net.score(data.test.inputs, data.test.labels):.1%}")
