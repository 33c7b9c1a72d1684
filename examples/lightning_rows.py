"""PyTorch Lightning with weights: rows in ten classes, 36 % of them labelled wrongly, in about ten seconds on one core.

python examples/lightning_rows.py              weighted by auto: about 94 %
python examples/lightning_rows.py none         not weighted: about 66 %
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
from autoweight.lightning import Weighting

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")  # how many workers a loader could have, and the like
torch.set_num_threads(1)


CLASSES, COLUMNS = 10, 64


def make_rows(count: int, wrong: float, seed: int) -> TensorDataset:
    """Rows around a centre for each class; a share of the labels is drawn anew."""
    centres = torch.randn(CLASSES, COLUMNS, generator=torch.Generator().manual_seed(0)) / 2
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    inputs = centres[labels] + torch.randn(count, COLUMNS, generator=generator)
    redrawn = torch.rand(count, generator=generator) < wrong
    return TensorDataset(inputs, torch.where(redrawn, torch.randint(CLASSES, (count,), generator=generator), labels))


class Classifier(LightningModule):
    """A small network for rows."""

    def __init__(self, weighting: Weighting) -> None:
        super().__init__()
        layers = nn.Linear(COLUMNS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, CLASSES)
        self.network = nn.Sequential(*layers)
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


seed_everything(0, verbose=False)
weighting = Weighting(aw.Uniform() if "none" in sys.argv else aw.load("auto"))
module = Classifier(weighting)
train = aw.Indexed(make_rows(1000, wrong=0.4, seed=1))  # tells each sample's position
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = Trainer(max_epochs=25, accelerator="cpu", callbacks=[weighting], **quiet)
trainer.fit(module, DataLoader(train, batch_size=64, shuffle=True))

module.eval()
inputs, labels = make_rows(1000, wrong=0.0, seed=2).tensors
accuracy = (module.network(inputs).argmax(dim=1) == labels).float().mean()
print(f"test accuracy {accuracy:.1%}")
