"""Where tensors can live."""

import torch

from autoweight.errors import UserError


def check_device(device: str) -> None:
    """Raise `UserError` unless tensors can live on the device."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"there is no device '{device}' here: use cpu, or cuda where PyTorch finds a GPU.") from error
