"""Algorithm 1: the full-data update (FDU) of an actor and its critics."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from autoweight.config import ActorCriticConfig
from autoweight.finding.actor import Actor
from autoweight.finding.buffer import Buffer, TransitionBatch
from autoweight.finding.critic import Critics


class Learner:
    """Actor, critics, their lagged copies and optimisers."""

    def __init__(self, config: ActorCriticConfig, actor: Actor, critics: Critics) -> None:
        self.config = config
        self.actor, self.critics = actor, critics
        self.lagged_actor, self.lagged_critics = copy.deepcopy(actor), copy.deepcopy(critics)
        decay = config.weight_decay
        self.actor_optimizer = torch.optim.Adam(actor.parameters(), config.actor_learning_rate, weight_decay=decay)
        self.critic_optimizer = torch.optim.Adam(critics.parameters(), config.critic_learning_rate, weight_decay=decay)

    def update(self, buffer: Buffer, generator: torch.Generator) -> None:
        """Algorithm 1: for some epochs, shuffle the whole buffer and step on every mini-batch of it."""
        config = self.config
        if config.update == "sampled":  # DDPG's way, to compare with
            self._step(buffer.sample(config.update_batch_size, generator))
            return
        for _ in range(config.update_epochs):
            for batch in buffer.epoch(config.update_batch_size, generator):
                self._step(batch)

    def _step(self, batch: TransitionBatch) -> None:
        """One step of the critics, then one of the actor; their lagged copies follow."""
        if len(batch.reward) == 0:  # all of its trainings blew up
            return
        self._descend(self.critic_optimizer, self.critics, self.critic_loss(batch))
        self._descend(self.actor_optimizer, self.actor, self.actor_loss(batch))
        self._follow(self.lagged_critics, self.critics)
        self._follow(self.lagged_actor, self.actor)

    def critic_loss(self, batch: TransitionBatch) -> Tensor:
        """Equations 10 to 12: mean over workers and mini-batch of `(y - Q(s, theta))^2`, summed over the critics."""
        errors = self.critics(batch.state, batch.strategy_params) - self.targets(batch)
        return errors.square().mean(dim=-1).sum()

    @torch.no_grad()
    def targets(self, batch: TransitionBatch) -> Tensor:
        """Equation 12: `y = r + discount * Q(s', mu(s'))` with the lagged copies, or the rewards that in fact came."""
        next_params = self.lagged_actor(batch.next_state)
        value = self.lagged_critics(batch.next_state, next_params).amin(dim=0)
        bootstrapped = batch.reward + self.config.discount * (1 - batch.done) * value
        if self.config.target == "bootstrap":
            return bootstrapped
        return torch.where(batch.rest.isnan(), bootstrapped, batch.rest)

    def actor_loss(self, batch: TransitionBatch) -> Tensor:
        """Equation 13: the actor climbs `Q(s, mu(s))` of the least optimistic critic."""
        strategy_params = self.actor(batch.state)
        value = self.critics(batch.state, strategy_params).amin(dim=0).mean()
        return -value + self.config.action_penalty * strategy_params.norm(dim=-1).mean()

    def _descend(self, optimizer: torch.optim.Optimizer, module: nn.Module, loss: Tensor) -> None:
        parameters = list(module.parameters())
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        if self.config.gradient_clip:
            nn.utils.clip_grad_norm_(parameters, self.config.gradient_clip)
        optimizer.step()

    @torch.no_grad()
    def _follow(self, lagged: nn.Module, current: nn.Module) -> None:
        torch._foreach_lerp_(list(lagged.parameters()), list(current.parameters()), self.config.lag)

    def state_dict(self) -> dict[str, Any]:
        """All parameters and optimiser states."""
        return {name: getattr(self, name).state_dict() for name in _PARTS}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for name in _PARTS:
            getattr(self, name).load_state_dict(state[name])


_PARTS = ("actor", "critics", "lagged_actor", "lagged_critics", "actor_optimizer", "critic_optimizer")
