"""PyTorch Lightning with weights: digits with 36 % wrong labels, in about ten seconds on one core.

python examples/lightning_digits.py              weighted by auto: about 95 %
python examples/lightning_digits.py none         not weighted: about 75 %
"""

import logging
import sys
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import autoweight as aw
from autoweight.config import DataConfig
from autoweight.data import load_pool
from autoweight.lightning import Weighting

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")  # how many workers a loader could have, and the like
torch.set_num_threads(1)


class Digits(LightningModule):
    """A small network for images of eight by eight pixels."""

    def __init__(self, weighting: Weighting) -> None:
        super().__init__()
        layers = nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        self.network = nn.Sequential(nn.Flatten(), *layers)
        self.weighting = weighting

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """The weighted loss of a batch."""
        inputs, labels, indices = batch
        logits = self.network(inputs)
        losses = cross_entropy(logits, labels, reduction="none")
        return self.weighting.loss(self, losses, logits, labels, indices)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


config = DataConfig(noise="uniform", noise_rate=0.4)
data = load_pool(config).splits(config, seed=0)
seed_everything(0, verbose=False)
weighting = Weighting(aw.Uniform() if "none" in sys.argv else aw.load("auto"))
module = Digits(weighting)
train = aw.Indexed(TensorDataset(data.train.inputs, data.train.labels))  # tells each sample's position
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = Trainer(max_epochs=25, accelerator="cpu", callbacks=[weighting], **quiet)
trainer.fit(module, DataLoader(train, batch_size=64, shuffle=True))

module.eval()
accuracy = (module.network(data.test.inputs).argmax(dim=1) == data.test.labels).float().mean()
print(f"test accuracy {accuracy:.1%}")
