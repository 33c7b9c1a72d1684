"""What a search depends on, as text: a checkpoint of another search must not be gone on with."""

from dataclasses import replace
from zlib import crc32

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.data import Labelled, Samples
from autoweight.data.inputs import parts
from autoweight.training.device import isolated
from autoweight.training.schedules import learning_rate_at
from autoweight.workers import Problem


def fingerprint(problem: Problem, config: SearchConfig, seed: int) -> str:
    """All but the number of episodes, which may grow; of the network, only the shapes of its parameters."""
    contents = [number for part in (problem.train, problem.val) for number in digests(part)]
    with isolated(problem.device):
        shapes = [tuple(parameter.shape) for parameter in problem.make_model().parameters()]
    training = problem.training
    rates = [learning_rate_at(training, step, 20) for step in range(20)]
    if not isinstance(training.schedule, str):
        training = replace(training, schedule="constant")  # a function has no text of its own; its rates tell
    search = replace(config, num_episodes=1)
    return repr((search, training, rates, problem.augmentation, seed, contents, shapes))


def digests(samples: Labelled) -> list[int]:
    """A number for each of a set's inputs, which tells their contents, or for a stream's names; and for its labels."""
    labels = [_digest(tensor) for tensor in (samples.labels, samples.true_labels)]
    if isinstance(samples, Samples):
        return [_digest(tensor) for tensor in parts(samples.inputs)] + labels
    return labels if samples.names is None else [crc32(samples.names.tobytes()), *labels]


def _digest(tensor: Tensor) -> int:
    return crc32(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
