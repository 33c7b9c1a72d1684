"""Named settings of a search; docs/deviations.md says what the paper leaves open and how it is filled."""

from collections.abc import Callable
from dataclasses import replace
from math import exp
from typing import Literal

from autoweight.config import ActorCriticConfig, SearchConfig

PresetName = Literal["default", "noise", "rare", "paper", "authors"]

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
    """For wrong labels: CMA-ES begins where small losses count and large ones do not, instead of at no weighting.

    It so needs far fewer trainings, since the first episodes do not have to find that out.
    """
    return replace(search, normalise=False, start_loss=-5.0, start_bias=-2.0, sigma=0.3)


def rare(search: SearchConfig) -> SearchConfig:
    """For rare classes: weights of a mean of 1 that can differ by orders of magnitude, and heed the label.

    Around a bias of 0 weights soon saturate; far below 0 they are nearly exponential in theta . f, and small steps of
    CMA-ES change much. (Only that agent has a place to begin and steps.)
    """
    return replace(
        search, features=("loss", "entropy", "label"), normalise=True, start_loss=0.0, start_bias=-4.0, sigma=0.1
    )


def paper(search: SearchConfig) -> SearchConfig:
    """The paper to the letter, on the recipe's proxy, features and warm-up."""
    return replace(
        search,
        agent="actor-critic",
        head_start=0,
        augment_stages=True,
        normalise=False,
        start_loss=0.0,
        start_bias=0.0,
        num_episodes=1000,
        num_workers=8,
        num_starts=8,
        episode_share=1.0,
        choice_rounds=0,
        reward_growth=5.0,
        reward_gain=20 * exp(-5),
        actor_critic=_PAPER_AGENT,
    )


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


PRESETS: dict[str, Callable[[SearchConfig], SearchConfig]] = {
    "default": lambda search: search,
    "noise": noise,
    "rare": rare,
    "paper": paper,
    "authors": authors,
}
