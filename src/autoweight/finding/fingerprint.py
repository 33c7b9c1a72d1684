"""What a search depends on, as text: a checkpoint of another search must not be gone on with."""

from dataclasses import replace

from autoweight.config import SearchConfig
from autoweight.data.digests import digests
from autoweight.training.device import isolated
from autoweight.training.schedules import settings_and_rates
from autoweight.workers import Problem


def fingerprint(problem: Problem, config: SearchConfig, seed: int) -> str:
    """All but the number of episodes, which may grow; of the network, only the shapes of its parameters."""
    contents = [number for part in (problem.train, problem.val) for number in digests(part)]
    with isolated(problem.device):
        shapes = [tuple(parameter.shape) for parameter in problem.make_model().parameters()]
    search = replace(config, num_episodes=1)
    return repr((search, *settings_and_rates(problem.training), problem.augmentation, seed, contents, shapes))
