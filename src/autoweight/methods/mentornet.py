"""mentornet: a curriculum, predefined or learned by a small recurrent network, says which samples to learn from.

Idea    Predefined: a sample counts while its loss lies below a running percentile of the losses. Learned: a mentor, an
        LSTM over how a sample's loss went, gives the probability that its label is right, as weight; it learned that on
        a data set whose wrong labels are known, and is used on another.
Source  Jiang et al., MentorNet: learning data-driven curriculum for very deep neural networks on corrupted labels,
        ICML 2018.
Told    The noise rate, which sets the percentile; a mentor, also which labels of another data set are wrong.
Knobs   mentor: the file of a learned one, which `autoweight.runs.mentor.learn_mentor` makes; without, the predefined
        curriculum. percentile: the share of losses below the level, the source's 0.8, 0.6 and 0.5 where 0.2, 0.4 and
        0.8 of the labels were redrawn. burn_in: the share of the training at whose beginning all samples count, the
        source's 18 of 100 epochs. heed_labels: show the mentor labels, too, where it learned on this very data set.
Cost    One sort of a batch's losses; with a mentor, ten LSTM cells of ten units a batch, and ten numbers a sample.
"""

import torch
from torch import Tensor

from autoweight.errors import UserError, require
from autoweight.methods.mentor import VISITS, Mentor, Seen
from autoweight.methods.self_paced import quantile
from autoweight.strategy import Weigher, check_batch
from autoweight.strategy.stages import check_progress

_KEEP = 0.9  # of the level, at a step
_NOT_YET = -1.0  # losses are never below 0


class MentorNet(Weigher):
    """Weights by a running percentile of the losses, or by a learned mentor."""

    capturable = True
    tasks = ("classification",)

    def __init__(
        self, mentor: str = "", percentile: float = 0.6, burn_in: float = 0.18, heed_labels: bool = False
    ) -> None:
        require(0 < percentile <= 1, f"mentornet.percentile is a share above 0, up to 1, but is {percentile}.")
        require(0 <= burn_in <= 1, f"mentornet.burn_in is a share of the training, from 0 to 1, but is {burn_in}.")
        require(bool(mentor) or not heed_labels, "mentornet.heed_labels is for a mentor: set mentornet.mentor, too.")
        self.percentile, self.burn_in, self.heed_labels = percentile, burn_in, heed_labels
        self.mentor = Mentor.load(mentor) if mentor else None
        self.level = torch.tensor(_NOT_YET)
        self.history: Tensor | None = None

    def reserve(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:
        """Make room for the last losses of every sample."""
        if self.mentor is not None:
            self.mentor.to(device)
            require(
                not self.heed_labels or num_classes == self.mentor.unknown_label,
                f"the mentor knows {self.mentor.unknown_label} classes, but there are {num_classes}: leave "
                "mentornet.heed_labels out.",
            )
        self.level = self.level.to(device)
        self.history = torch.full((num_samples, VISITS, 2), _NOT_YET, device=device)

    def tensors(self) -> dict[str, Tensor]:
        """The level, and how losses went."""
        return {"level": self.level} | ({} if self.history is None else {"history": self.history})

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The curriculum's weights in [0, 1]; 1 during the burn-in."""
        check_batch(losses, logits, labels)
        check_progress(progress)
        if self.level.device != losses.device:
            self.level = self.level.to(losses.device)
        values = losses.detach().float()
        done = torch.zeros_like(values) + progress  # of the training; a share for each sample, on their device
        now = quantile(values, self.percentile)
        self.level.copy_(torch.where(self.level == _NOT_YET, now, torch.lerp(now, self.level, _KEEP)))
        history = None if indices is None or self.history is None else self._remember(values, self.history, indices)
        if self.mentor is None:
            weights = (values <= self.level).float()
        elif history is None:
            raise UserError("a mentor remembers samples: call reserve first, and pass indices= to weigh.")
        else:
            unknown = torch.full_like(labels, self.mentor.unknown_label)
            weights = self.mentor(Seen(history, labels if self.heed_labels else unknown, done.float())).sigmoid()
        return torch.where(done < self.burn_in, 1.0, weights).to(losses.dtype)

    def _remember(self, losses: Tensor, memory: Tensor, indices: Tensor) -> Tensor:
        """The batch's last visits with this one, which is written down; one that is the first fills all places."""
        visit = torch.stack([losses, losses - self.level], dim=-1).unsqueeze(1)
        before = memory[indices]
        moved = torch.cat([before[:, 1:], visit], dim=1)
        history = torch.where((before[:, -1:, :1] == _NOT_YET), visit.expand_as(before), moved)
        memory[indices] = history
        return history
