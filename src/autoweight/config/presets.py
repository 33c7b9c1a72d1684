"""Named settings of a search; docs/deviations.md says what the paper leaves open and how it is filled."""

from collections.abc import Callable
from dataclasses import replace
from math import exp
from typing import Literal, NamedTuple

from autoweight.config.data import DataConfig
from autoweight.config.search import ActorCriticConfig, SearchConfig
from autoweight.config.training import TrainingConfig
from autoweight.errors import require_kind

PresetName = Literal["default", "noise", "losses", "rare", "paper", "authors"]

_PAPER_AGENT = ActorCriticConfig(
    hidden=(256, 512, 256),
    embedding_size=16,
    bounded=False,
    num_critics=1,
    target="bootstrap",
    discount=0.99,
    actor_learning_rate=1e-5,
    critic_learning_rate=1e-4,
    gradient_clip=0.0,
    lag=1.0,
    exploration="ornstein_uhlenbeck",
    update="full",
    update_epochs=8,
    update_batch_size=32,
)


def noise(search: SearchConfig) -> SearchConfig:
    """For wrong labels: the search begins at what `auto` does, by a memory of each sample, not at no weighting.

    It so needs far fewer trainings, since the first episodes do not have to find that out. Nothing has to warm up: a
    belief is no more than the training itself shows.
    """
    _check(search)
    return replace(
        search,
        features=("belief",),
        normalise=False,
        within_class=True,
        warmup_stages=0,
        start={"belief": 0.5},
        cmaes=replace(search.cmaes, sigma=0.2),
        actor_critic=replace(search.actor_critic, noise_start=0.2, noise_end=0.1),
    )


def losses(search: SearchConfig) -> SearchConfig:
    """For wrong labels without a memory, or in tasks without classes: begins where small losses count.

    Losses say something once the network has learned something: so there is a warm-up.
    """
    _check(search)
    return replace(
        search,
        features=search.features if "loss" in search.features else ("loss", "entropy"),
        normalise=False,
        within_class=False,
        warmup_stages=max(search.warmup_stages, SearchConfig.warmup_stages),
        start={"loss": -5.0, "bias": -2.0},
        cmaes=replace(search.cmaes, sigma=0.3),
    )


def rare(search: SearchConfig) -> SearchConfig:
    """For rare classes: weights of a mean of 1 that can differ by orders of magnitude, and heed the label.

    Around a bias of 0 weights soon saturate; far below 0 they are nearly exponential in theta . f, and small steps of
    CMA-ES change much. (The other agents' steps stay as they are.)
    """
    _check(search)
    return replace(
        search,
        features=("loss", "entropy", "label"),
        normalise=True,
        within_class=False,
        start={"bias": -4.0},
        cmaes=replace(search.cmaes, sigma=0.1),
    )


def paper(search: SearchConfig) -> SearchConfig:
    """As the paper: its features, its agent, the full network and schedule, and what the actor does at the end."""
    _check(search)
    return replace(
        search,
        agent="actor-critic",
        features=("loss", "entropy", "density", "label"),
        label_feature="raw",
        within_class=False,
        warmup_stages=SearchConfig.warmup_stages,
        start={},
        proxy_network="",
        proxy_epochs=0,
        head_start=0,
        augment_stages=True,
        normalise=False,
        num_episodes=1000,
        num_workers=8,
        num_starts=8,
        episode_share=1.0,
        choice_rounds=0,
        stagewise=True,
        reward="difference",
        reward_growth=5.0,
        reward_gain=20 * exp(-5),
        actor_critic=_PAPER_AGENT,
    )


def paper_data(data: DataConfig) -> DataConfig:
    """The paper's 20,000 images to train on and 5,000 to validate on, where they are CIFAR's."""
    return replace(data, train_size=20_000, val_size=5_000) if data.dataset.startswith("cifar") else data


def paper_training(training: TrainingConfig) -> TrainingConfig:
    """The paper's epochs, schedule and decay in place of today's; trainings by stages are the paper's already."""
    if training.optimizer != "sgd" or training.schedule != "cosine":
        return training
    return replace(training, epochs=200, nesterov=False, weight_decay=2e-5, schedule="stages", average=0.0)


def authors(search: SearchConfig) -> SearchConfig:
    """As the authors' code: one worker, lagged copies, a buffer of 500, a penalty on theta, normalised weights."""
    agent = replace(
        _PAPER_AGENT,
        critic_learning_rate=1e-3,
        weight_decay=1e-5,
        gradient_clip=5.0,
        lag=0.001,
        buffer_size=500,
        action_penalty=0.001,
    )
    return replace(paper(search), normalise=True, num_workers=1, num_starts=1, actor_critic=agent)


def _check(search: SearchConfig) -> None:
    require_kind("a preset", search, SearchConfig, "an aw.SearchConfig")


class Preset(NamedTuple):
    """What a named setting changes of a run."""

    search: Callable[[SearchConfig], SearchConfig]
    data: Callable[[DataConfig], DataConfig] = lambda data: data
    training: Callable[[TrainingConfig], TrainingConfig] = lambda training: training


PRESETS: dict[str, Preset] = {
    "default": Preset(lambda search: search),
    "noise": Preset(noise),
    "losses": Preset(losses),
    "rare": Preset(rare),
    "paper": Preset(paper, paper_data, paper_training),
    "authors": Preset(authors, paper_data, paper_training),
}
