"""A mentor: the small recurrent network that says of a sample, from how its loss went, whether its label is right."""

from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from autoweight.errors import UserError, require
from autoweight.storage.atomic import write_bytes

VISITS = 5
"""How many of a sample's last visits a mentor sees."""
_UNITS, _LABEL_SIZE, _SHARES, _SHARE_SIZE, _HIDDEN = 10, 2, 100, 5, 20


class Seen(NamedTuple):
    """What a mentor sees of some samples."""

    losses: Tensor
    """Of the last visits, the oldest first: the loss, and how far it lay above the level, `[samples, visits, 2]`."""
    labels: Tensor
    progress: Tensor
    """The share of the training that was done, `[samples]`."""


class Mentor(nn.Module):
    """A bidirectional LSTM over a sample's losses, with its label and the share of the training embedded beside it."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.forwards, self.backwards = nn.LSTMCell(2, _UNITS), nn.LSTMCell(2, _UNITS)
        self.label = nn.Embedding(num_classes + 1, _LABEL_SIZE)  # the last is for labels that it does not know
        self.share = nn.Embedding(_SHARES, _SHARE_SIZE)
        self.head = nn.Sequential(
            nn.Linear(2 * _UNITS + _LABEL_SIZE + _SHARE_SIZE, _HIDDEN), nn.Tanh(), nn.Linear(_HIDDEN, 1), nn.Flatten(0)
        )

    @property
    def unknown_label(self) -> int:
        """Stands for labels that mean something else than where the mentor learned."""
        return self.label.num_embeddings - 1

    def forward(self, seen: Seen) -> Tensor:
        """The log-odds that each label is right."""
        visits = seen.losses.unbind(dim=1)
        ends = [_last(self.forwards, visits), _last(self.backwards, visits[::-1])]
        share = (seen.progress * _SHARES).long().clamp(0, _SHARES - 1)
        logits: Tensor = self.head(torch.cat([*ends, self.label(seen.labels), self.share(share)], dim=-1))
        return logits

    def save(self, path: Path | str) -> None:
        """Write it to a file."""
        write_bytes(Path(path), safetensors.torch.save(self.state_dict()))

    @classmethod
    def load(cls, path: Path | str) -> "Mentor":
        """The mentor of a file."""
        try:
            state = safetensors.torch.load_file(path)
        except OSError as error:
            raise UserError(f"there is no mentor in {path}: learn one with autoweight.runs.mentor.") from error
        except SafetensorError as error:
            raise UserError(f"{path} is truncated or holds no mentor.") from error
        require("label.weight" in state, f"{path} is a safetensors file, but holds no mentor.")
        mentor = cls(len(state["label.weight"]) - 1)
        mentor.load_state_dict(state)
        return mentor.requires_grad_(False)


def fit_mentor(seen: Seen, right: Tensor, num_classes: int, seed: int = 0, steps: int = 500) -> Mentor:
    """A mentor that tells right labels from wrong ones among these samples, `right` of which are known.

    Half of the labels are hidden from it, so that it can do without them on another data set.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mentor = Mentor(num_classes)
        optimizer = torch.optim.Adam(mentor.parameters(), 1e-2)
        for _ in range(steps):
            rows = torch.randint(len(right), (256,))
            batch = Seen(*(part[rows] for part in seen))
            hidden = torch.rand(len(rows)) < 0.5
            batch = batch._replace(labels=batch.labels.masked_fill(hidden, mentor.unknown_label))
            optimizer.zero_grad()
            binary_cross_entropy_with_logits(mentor(batch), right[rows].float()).backward()
            optimizer.step()
    return mentor.requires_grad_(False)


def _last(cell: nn.LSTMCell, visits: tuple[Tensor, ...]) -> Tensor:
    """What an LSTM says after the last visit. Cells, since cuDNN's whole LSTM is no part of a captured step."""
    state = None
    for visit in visits:
        state = cell(visit, state)
    assert state is not None
    return state[0]
