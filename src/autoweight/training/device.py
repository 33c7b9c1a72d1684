"""Where tensors can live."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from autoweight.errors import UserError


def check_device(device: str) -> None:
    """Raise `UserError` unless tensors can live on the device."""
    try:
        torch.zeros(1, device=torch.device(device)).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise UserError(f"there is no device '{device}' here: use cpu, or cuda where PyTorch finds a GPU.") from error


@contextmanager
def isolated(device: str) -> Iterator[None]:
    """Make the device the current one, on which streams and graphs are made; random numbers drawn leave no trace."""
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device), torch.random.fork_rng([torch.cuda.current_device()]):
            yield
    else:
        with torch.random.fork_rng([]):
            yield
