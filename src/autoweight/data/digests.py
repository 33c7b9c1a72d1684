"""Numbers that tell sets of samples apart."""

from zlib import crc32

import torch
from torch import Tensor

from autoweight.data.dataset import Samples
from autoweight.data.inputs import parts
from autoweight.data.labelled import Labelled


def digests(samples: Labelled) -> list[int]:
    """A number for each of a set's inputs, which tells their contents, or for a stream's names; and for its labels."""
    labels = [digest(tensor) for tensor in (samples.labels, samples.true_labels)]
    if isinstance(samples, Samples):
        return [digest(tensor) for tensor in parts(samples.inputs)] + labels
    return labels if samples.names is None else [crc32(samples.names.tobytes()), *labels]


def digest(tensor: Tensor) -> int:
    """A number that tells a tensor's contents."""
    return crc32(tensor.cpu().contiguous().view(torch.uint8).numpy())  # type: ignore[arg-type]
