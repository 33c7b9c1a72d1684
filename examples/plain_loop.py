"""A plain PyTorch loop with three lines of autoweight: digits with 36 % wrong labels.

python examples/plain_loop.py                                weighted by auto, which comes with the package
python examples/plain_loop.py strategy.safetensors           weighted by a strategy that a search found
python examples/plain_loop.py none                           not weighted
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import autoweight as aw
from autoweight.config import DataConfig
from autoweight.data import load_pool

EPOCHS = 60

torch.manual_seed(0)
config = DataConfig(noise="uniform", noise_rate=0.4)
data = load_pool(config).splits(config, seed=0)
rows = aw.Indexed(TensorDataset(data.train.inputs, data.train.labels))  # yields each sample's index too
loader = DataLoader(rows, batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [30, 39, 48])

choice = sys.argv[1] if len(sys.argv) > 1 else "auto"
weigher = aw.Uniform() if choice == "none" else aw.load(choice, class_counts=torch.bincount(data.train.labels))

for epoch in range(EPOCHS):
    for step, (inputs, labels, indices) in enumerate(loader):
        logits = model(inputs)
        losses = cross_entropy(logits, labels, reduction="none")
        progress = (epoch + step / len(loader)) / EPOCHS
        weights = weigher.weigh(losses, logits, labels, progress=progress, indices=indices)
        optimizer.zero_grad()
        aw.weighted_mean(losses, weights).backward()
        optimizer.step()
    scheduler.step()

accuracy = (model(data.test.inputs).argmax(dim=1) == data.test.labels).float().mean()
print(f"test accuracy {accuracy:.1%}")
