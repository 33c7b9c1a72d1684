"""Smooth tables: a few knots, linear between them."""

import torch
from torch import Tensor


def interpolate(knots: Tensor, num_stages: int, warmup_stages: int) -> Tensor:
    """Tables `[n, stages, P]` that run linearly through `knots` `[n, k, P]` from warm-up to the last stage."""
    last = knots.shape[1] - 1
    place = torch.linspace(0, last, num_stages - warmup_stages)
    left = place.long().clamp(max=max(last - 1, 0))
    share = (place - left)[:, None]
    rows = knots[:, left] * (1 - share) + knots[:, (left + 1).clamp(max=last)] * share
    return torch.cat([rows.new_zeros(len(rows), warmup_stages, rows.shape[-1]), rows], dim=1)
