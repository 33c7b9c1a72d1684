"""What a search tells: the outcome of an episode, how far the search is, and what it found."""

from typing import NamedTuple

from torch import Tensor


class Episode(NamedTuple):
    """The outcome of one episode of every worker."""

    tables: Tensor
    """The strategy parameters that each worker used, `[workers, stages, P]`."""
    returns: Tensor
    """Of each worker (reward.py), `[workers]`; NaN where a training blew up."""


class Progress(NamedTuple):
    """How far a search is, at a stage's end."""

    doing: str
    """`searching` or `choosing`."""
    done: int
    """Stages run, over all episodes."""
    total: int
    """Stages to run."""
    episode: int
    stage: int
    reference_score: float
    """The reference's score on the validation set, such as accuracy."""
    greedy_gain: float
    """The score of the agent's best guess less that of its reference, after this stage."""
    loss_gap: float
    """The guess's mean training loss over the stage less that of its reference."""
    best_gain: float
    """The best return of a guess so far; NaN before the first."""
    returns: tuple[float, ...] = ()
    """Every worker's return, at an episode's last stage; NaN where a training blew up."""


class Found(NamedTuple):
    """The outcome of a search."""

    table: Tensor
    """The chosen strategy parameters, `[stages, P]`."""
    gain: float
    """Its mean return on the validation set."""
    gain_error: float
    """The gain's standard error."""
    repeats: int
    """How many returns the gain is the mean of."""
    candidates: int
    """How many tables this one was chosen from, by these very returns; 1 where there was no choice."""
    network_steps: int
    seconds: float
    episodes: int
    dropped: int
    """Trainings that blew up."""
