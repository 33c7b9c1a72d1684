"""Weights in PyTorch Lightning: a callback that keeps the weigher, and a loss to call in `training_step`.

    def training_step(self, batch, batch_index):
        inputs, labels, indices = batch                      # aw.Indexed(dataset) yields the indices
        logits = self(inputs)
        losses = cross_entropy(logits, labels, reduction="none")
        return self.weighting.loss(self, losses, logits, labels, indices)

The same object goes to the trainer, `Trainer(callbacks=[weighting])`, so that its memory is in every checkpoint.
"""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from autoweight.config import IGNORED
from autoweight.distributed import weigh_global
from autoweight.errors import require
from autoweight.strategy.weigher import Weigher, weighted_mean


class Weighting(Callback):  # type: ignore[misc]
    """Weighs the losses of a `training_step`; logs mean weight and effective sample size unless `log` is False."""

    def __init__(self, weigher: Weigher, log: bool = True) -> None:
        require(isinstance(weigher, Weigher), f"Weighting takes a weigher such as aw.load('auto'), not {weigher!r}.")
        self.weigher, self.log = weigher, log
        self._to_load: dict[str, Any] = {}

    def loss(
        self, module: LightningModule, losses: Tensor, logits: Tensor, labels: Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The weighted mean of a batch's losses; with several processes, weights are those of the global batch.

        Where the trainer validates or tests, it is the plain mean, and nothing is remembered.
        """
        trainer = module.trainer
        valid = labels != IGNORED if labels.dim() == 2 and logits.dim() == 3 else None
        if not trainer.training:  # validation samples have the indices of training samples
            return weighted_mean(losses, torch.ones_like(losses), valid)
        require(
            self in trainer.callbacks,
            "the trainer does not know this weighting, so checkpoints would lack its memory: "
            "Trainer(callbacks=[weighting]).",
        )
        self._load(losses.device)
        weights = weigh_global(self.weigher, losses.detach(), logits.detach(), labels, progress_of(trainer), indices)
        if self.log:
            self._log(module, weights if valid is None else weights[valid])
        return weighted_mean(losses, weights, valid)

    def state_dict(self) -> dict[str, Any]:
        """The weigher's memory, for Lightning's checkpoint."""
        return self._to_load or self.weigher.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave; it waits for the first batch, which tells the device."""
        self._to_load = state_dict

    def _load(self, device: torch.device) -> None:
        if self._to_load:
            self.weigher.load_state_dict({name: value.to(device) for name, value in self._to_load.items()})
            self._to_load = {}

    @staticmethod
    def _log(module: LightningModule, weights: Tensor) -> None:
        weights = weights.float()
        effective = weights.sum().square() / weights.square().sum().clamp(min=torch.finfo(weights.dtype).tiny)
        values = {"weights/mean": weights.mean(), "weights/effective_sample_size": effective}
        module.log_dict(values, batch_size=len(weights))


def progress_of(trainer: Trainer) -> float:
    """The fraction of the training done: in steps of the optimiser, or in batches where the module steps by itself."""
    total = trainer.estimated_stepping_batches
    require(
        0 < total < float("inf"),
        "a strategy has to know how far the training is, and this one has no known end: give the trainer max_epochs or "
        "max_steps, besides max_time if you like.",
    )
    if trainer.lightning_module.automatic_optimization:
        return min(trainer.global_step / total, 1.0)
    # A batch may have a step of each optimiser, or none. The training ends with its batches or at max_steps, in which
    # every optimiser's steps count.
    steps = trainer.global_step / trainer.max_steps if trainer.max_steps > 0 else 0.0
    batches = trainer.num_training_batches * trainer.max_epochs if trainer.max_epochs > 0 else float("inf")
    return min(max(steps, trainer.fit_loop.total_batch_idx / batches), 1.0)
