"""The actor-critic agent: the paper's DDPG, and what keeps it from falling apart."""

from typing import Any

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.finding.actor import Actor
from autoweight.finding.agents.agent import Agent, Transition
from autoweight.finding.buffer import Buffer
from autoweight.finding.critic import Critics
from autoweight.finding.smooth import interpolate
from autoweight.finding.update import Learner
from autoweight.strategy import Rule


class ActorCritic(Agent):
    """Explores around an actor that learns from critics."""

    def __init__(self, search: SearchConfig, rule: Rule, num_stages: int, seed: int) -> None:
        self.config = config = search.actor_critic
        bounds = rule.bounds
        self.num_workers, self.num_stages, self.warmup_stages = search.num_workers, num_stages, search.warmup_stages
        # Where nothing is chosen at the end, as in the paper, there is no need for a worker that does not explore.
        self.num_greedy = 1 if search.choice_rounds else 0
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            start = rule.place(search.start)
            actor = Actor(num_stages, bounds, config.hidden, config.embedding_size, config.bounded, start)
            critics = Critics(num_stages, bounds, config.hidden, config.embedding_size, config.num_critics)
        self.learner = Learner(config, actor, critics)
        self.buffer = Buffer(config.buffer_size)
        self.bounds = bounds
        self.episode_rows = 0

    def begin_episode(self, progress: float, explore: bool = True) -> None:
        """Draw every worker's exploration noise for the whole episode; its scale falls along the search."""
        config = self.config
        self.explores = explore
        self.noise_scale = config.noise_start + (config.noise_end - config.noise_start) * progress
        knots = self._normal(self.num_workers, config.noise_knots, len(self.bounds))
        self.noise = interpolate(knots, self.num_stages, self.warmup_stages)
        self.noise += config.stage_noise * self._normal(*self.noise.shape)
        self.walk = torch.zeros(self.num_workers, len(self.bounds))
        self.episode_rows = 0

    @torch.no_grad()
    def act(self, stage: int, state: Tensor) -> Tensor:
        """The actor's parameters plus exploration; without it for worker 0, where a strategy is chosen at the end."""
        strategy_params: Tensor = self.learner.actor(state)
        if not self.explores:
            return strategy_params
        explored = self._explore(stage, strategy_params)
        return torch.cat([strategy_params[: self.num_greedy], explored[self.num_greedy :]])

    def learn(self, transition: Transition) -> None:
        """Remember the stage and run the full-data update."""
        if not self.explores:
            return  # the last episode, which only looks at what was learned
        self.buffer.add(transition)
        self.episode_rows += 1
        self.learner.update(self.buffer, self.generator)

    def end_episode(self, returns: Tensor) -> None:
        """The rest of each stage's rewards is known now."""
        if not self.explores:
            return
        self.buffer.close_episode(self.episode_rows, self.config.discount)

    def _explore(self, stage: int, strategy_params: Tensor) -> Tensor:
        if self.config.exploration == "ornstein_uhlenbeck":
            return self._explore_rarely(strategy_params)
        explored = strategy_params + self.noise_scale * self.bounds * self.noise[:, stage]
        return explored.clamp(-self.bounds, self.bounds) if self.config.bounded else explored

    def _explore_rarely(self, strategy_params: Tensor) -> Tensor:
        """With probability 0.3, an Ornstein-Uhlenbeck walk on the parameters' unit direction."""
        self.walk = 0.85 * self.walk + 0.2 * self._normal(*self.walk.shape)
        norm = strategy_params.norm(dim=-1, keepdim=True)
        tried = torch.rand(len(strategy_params), 1, generator=self.generator) < 0.3
        return torch.where(tried, strategy_params + 0.05 * norm * self.walk, strategy_params)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimisers, buffer and random state; taken between episodes."""
        return {
            "learner": self.learner.state_dict(),
            "buffer": self.buffer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.learner.load_state_dict(state["learner"])
        self.buffer.load_state_dict(state["buffer"])
        self.generator.set_state(state["generator"])
