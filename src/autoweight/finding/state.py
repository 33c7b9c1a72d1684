"""The state s_T that an agent sees (equation 5): stage, smoothed training loss, smoothed validation accuracy."""

import torch
from torch import Tensor

SMOOTHING = 0.5  # share of the past that stays at a stage's end


class StateTracker:
    """Follows one training, or many side by side, and tells their state at every stage's start."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.smoothed_loss = torch.zeros(shape)
        self.smoothed_accuracy = torch.zeros(shape)
        self.stages_seen = 0

    def end_stage(self, loss: Tensor, accuracy: Tensor) -> None:
        """Take in a stage's mean training loss and the validation accuracy at its end; the first sets the averages."""
        keep = SMOOTHING if self.stages_seen else 0.0
        self.smoothed_loss = keep * self.smoothed_loss + (1 - keep) * loss
        self.smoothed_accuracy = keep * self.smoothed_accuracy + (1 - keep) * accuracy
        self.stages_seen += 1

    def state(self, stage: int) -> Tensor:
        """Equation 5 as `[..., 3]`: the stage's index, which the actor embeds, smoothed loss, smoothed accuracy."""
        index = torch.full_like(self.smoothed_loss, float(stage))
        return torch.stack([index, self.smoothed_loss, self.smoothed_accuracy], dim=-1)
