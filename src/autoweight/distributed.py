"""Weighing over the batches of all processes together, so that features and memories are those of the global batch."""

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn.functional import pad

from autoweight.config import IGNORED
from autoweight.sharded import Sharded
from autoweight.strategy.indices import places_of, weigh_once
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.view import view_of
from autoweight.strategy.weigher import Weigher, check_tensors


def num_processes() -> int:
    """How many processes train together; 1 unless torch.distributed has been initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def weigh_global(
    weigher: Weigher,
    losses: Tensor,
    logits: Tensor,
    labels: Tensor,
    progress: float | Tensor,
    indices: Tensor | None = None,
) -> Tensor:
    """Weights of the process's own batch, weighed within the batch that all processes have together.

    The batches are gathered in the order of the ranks and may differ in size, also be empty. Every process weighs all
    of them, so that memories stay the same everywhere; what a `Sharded` one needs is put together for that. A sample
    that comes twice, as samplers repeat some to fill the last batch, is weighed once. With one process it is
    `weigher.weigh`.
    """
    if num_processes() == 1:
        return weigher.weigh(losses, logits, labels, progress=progress, indices=indices)
    tokens = _check_rows(losses, logits, labels, indices)
    if tokens:
        return _weigh_tokens(weigher, losses, logits, labels, progress, indices)
    sizes = _sizes(len(losses), losses.device)
    own = sum(sizes[: dist.get_rank()])
    given = None if indices is None else _gather(indices.to(losses.device), sizes)
    together = [_gather(one.detach(), sizes) for one in (losses, logits, labels)]
    weights = None if given is None else weigh_once(weigher, together[0], together[1], together[2], progress, given)
    if weights is None:
        weights = weigher.weigh(together[0], together[1], together[2], progress=progress, indices=given)
    return weights[own : own + len(losses)].to(losses.dtype)


def _check_rows(losses: Tensor, logits: Tensor, labels: Tensor, indices: Tensor | None) -> bool:
    """Whether labels are those of tokens; what gathering would pad or crop is refused before, as one process would."""
    check_tensors(losses=losses, logits=logits, labels=labels, indices=indices)
    tokens = labels.dim() == 2 and logits.dim() == 3 and not labels.is_floating_point()
    rows = labels.shape[: 1 + tokens]
    if not (rows and rows == losses.shape[: len(rows)] == logits.shape[: len(rows)]):
        view_of(losses, logits, labels)
    if indices is not None and indices.shape[:1] != rows[:1]:
        places_of(indices, losses)
    return tokens


def _weigh_tokens(
    weigher: Weigher, losses: Tensor, logits: Tensor, labels: Tensor, progress: Any, indices: Tensor | None
) -> Tensor:
    """Tokens that count are samples of their own: processes that pad to different lengths need not agree."""
    valid = labels != IGNORED
    longest = max(_sizes(losses.shape[1], losses.device))
    places = indices
    if indices is not None and indices.shape != losses.shape:
        if isinstance(weigher, Remembering | Sharded):
            weigher.check_tokens(longest)
        blocks = losses.new_empty(len(losses), longest)  # as many places a sample as the longest has tokens
        places = places_of(indices, blocks).view(len(losses), longest)[:, : losses.shape[1]]
    given = None if places is None else places[valid.to(places.device)]
    weights = torch.zeros_like(losses, requires_grad=False)
    weights[valid] = weigh_global(weigher, losses[valid], logits[valid], labels[valid], progress, given)
    return weights


def _sizes(own: int, device: torch.device) -> list[int]:
    size = torch.tensor([own], device=device)
    sizes = [torch.empty_like(size) for _ in range(num_processes())]
    dist.all_gather(sizes, size)
    return [int(one) for one in sizes]


def _gather(own: Tensor, sizes: list[int]) -> Tensor:
    """All processes' rows, one after the other; short batches travel padded."""
    if own.dtype in (torch.bfloat16, torch.float16):
        own = own.float()  # not every backend carries halves, and weights are computed in float32 anyway
    most = max(sizes)
    padded = pad(own, (0, 0) * (own.dim() - 1) + (0, most - len(own))).contiguous()
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
