"""How many threads PyTorch's operations on a CPU get."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for operations of microseconds: several wait for each other, for long where others use the cores.

    The user's own number of threads comes back at the end.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
