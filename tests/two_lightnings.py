"""Lightning's DDP in two processes on a CPU; test_integrations_lightning.py looks at what they wrote."""

import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import autoweight as aw
from autoweight.lightning import Weighting
from tests.counting import Counting


class Net(LightningModule):
    """One layer."""

    def __init__(self, weighting: Weighting) -> None:
        super().__init__()
        self.layer, self.weighting = nn.Linear(2, 3), weighting

    def training_step(self, batch):
        """Weighted."""
        inputs, labels, indices = batch
        logits = self.layer(inputs)
        losses = cross_entropy(logits, labels, reduction="none")
        return self.weighting.loss(self, losses, logits, labels, indices)

    def configure_optimizers(self):
        """Plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seed_everything(0, verbose=False)
    generator = torch.Generator().manual_seed(0)
    rows = TensorDataset(torch.randn(43, 2, generator=generator), torch.arange(43) % 3)
    weigher = Counting()
    weighting = Weighting(weigher)
    net = Net(weighting)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        callbacks=[weighting],
        enable_checkpointing=False,
        **quiet,
    )
    trainer.fit(net, DataLoader(aw.Indexed(rows), batch_size=8, shuffle=True))
    found = {"sizes": weigher.sizes, "memory": weigher.state_dict(), "weight": net.layer.weight.detach()}
    torch.save(found, Path(sys.argv[1]) / f"{trainer.global_rank}.pt")
