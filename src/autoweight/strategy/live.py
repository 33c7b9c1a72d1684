"""An actor that follows a running training."""

from typing import Any

import torch
from torch import Tensor

from autoweight.errors import UserError
from autoweight.strategy.actor import Actor
from autoweight.strategy.state import StateTracker


class LiveActor:
    """Runs an actor on the state of a training that goes on: equation 4 at the start of every stage."""

    def __init__(self, actor: Actor, trained_stages: int) -> None:
        self.actor, self.trained_stages = actor, trained_stages
        self.tracker = StateTracker()
        self.stage = 0
        self.loss_sum = torch.zeros(())
        self.num_losses = 0
        self.accuracy: Tensor | None = None
        self.params: Tensor | None = None

    def observe_loss(self, stage: int, losses: Tensor) -> None:
        """Add a batch; at a new stage's first batch, close the stage before."""
        if not self.num_losses:
            self.stage = stage
        if stage != self.stage:
            if self.accuracy is None:
                raise UserError(
                    "a live strategy heeds the validation accuracy: call observe_accuracy at every stage's end."
                )
            self.tracker.end_stage(self.loss_sum / self.num_losses, self.accuracy)
            self.stage, self.params = stage, None
            self.loss_sum, self.num_losses = torch.zeros(()), 0
        self.loss_sum = self.loss_sum + losses.detach().float().mean().cpu()
        self.num_losses += 1

    def observe_accuracy(self, accuracy: float) -> None:
        """The validation accuracy at the end of the running stage."""
        self.accuracy = torch.tensor(float(accuracy))

    def params_at(self, stage: int) -> Tensor:
        """The running stage's strategy parameters."""
        if self.params is None:
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                self.params = self.actor(self.tracker.state(min(stage, self.trained_stages - 1)))
        return self.params

    def state_dict(self) -> dict[str, Any]:
        """All that `params_at` depends on, as tensors and numbers."""
        return {
            "smoothed_loss": self.tracker.smoothed_loss,
            "smoothed_accuracy": self.tracker.smoothed_accuracy,
            "stages_seen": self.tracker.stages_seen,
            "stage": self.stage,
            "loss_sum": self.loss_sum,
            "num_losses": self.num_losses,
            "accuracy": self.accuracy,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.tracker.smoothed_loss = state["smoothed_loss"]
        self.tracker.smoothed_accuracy = state["smoothed_accuracy"]
        self.tracker.stages_seen = state["stages_seen"]
        self.stage, self.loss_sum = state["stage"], state["loss_sum"]
        self.num_losses, self.accuracy = state["num_losses"], state["accuracy"]
        self.params = None
