"""Agents by name. A new one is a file here and a line in `AGENTS`."""

from collections.abc import Callable

from autoweight.config import AgentName, SearchConfig
from autoweight.finding.agents.actor_critic import ActorCritic
from autoweight.finding.agents.agent import Agent, Transition
from autoweight.finding.agents.evolution import Evolution
from autoweight.finding.agents.random_constant import RandomConstant
from autoweight.finding.agents.replay import Replay
from autoweight.finding.agents.trust_region import TrustRegion
from autoweight.strategy import Rule

__all__ = ["AGENTS", "Agent", "Replay", "Transition", "make_agent"]

# Each is made of the search's settings, the rule whose parameters it looks for, the number of stages, and a seed.
AGENTS: dict[AgentName, Callable[[SearchConfig, Rule, int, int], Agent]] = {
    "actor-critic": ActorCritic,
    "cmaes": Evolution,
    "constant": RandomConstant,
    "trust-region": TrustRegion,
}


def make_agent(config: SearchConfig, num_stages: int, seed: int) -> Agent:
    """The agent that the configuration names."""
    return AGENTS[config.agent](config, Rule.of(config), num_stages, seed)
