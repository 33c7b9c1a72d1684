"""Algorithm 2: learning to auto-weight, over all workers at once."""

import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from autoweight.checkpoint import CheckpointFile
from autoweight.config import SearchConfig
from autoweight.data.loader import mix
from autoweight.errors import RunError, require
from autoweight.search.agent import Agent, Transition
from autoweight.search.archive import Archive
from autoweight.search.replay import Replay
from autoweight.search.reward import reward, reward_scale
from autoweight.strategy.state import StateTracker
from autoweight.training.device import isolated
from autoweight.workers import StageOutcome, Workers


class Episode(NamedTuple):
    """What one episode of every worker came to."""

    tables: Tensor
    """The strategy parameters that each worker used, `[workers, stages, P]`."""
    returns: Tensor
    """Mean of the stages' rewards before their growth, weighted by it, `[workers]`; NaN where a training blew up."""


class Progress(NamedTuple):
    """How far a search is, at a stage's end."""

    doing: str
    """searching or choosing."""
    done: int
    """Stages run, over all episodes."""
    total: int
    episode: int
    stage: int
    reference_accuracy: float
    greedy_gain: float
    """Validation accuracy of the agent's best guess less its reference's, now."""
    best_gain: float
    """The best return of a guess so far; NaN before the first."""


class Found(NamedTuple):
    """The outcome of a search."""

    table: Tensor
    """The chosen strategy parameters, `[stages, P]`."""
    gain: float
    """Its mean return on the validation set."""
    network_steps: int
    seconds: float
    dropped: int
    """Trainings that blew up."""


class Search:
    """A search under way: workers, an agent, what was tried, and what it cost."""

    def __init__(
        self,
        workers: Workers,
        agent: Agent,
        config: SearchConfig,
        seed: int = 0,
        checkpoint: CheckpointFile | None = None,
        listen: Callable[[Progress], Any] = lambda progress: None,
    ) -> None:
        self.workers, self.agent, self.config, self.seed = workers, agent, config, seed
        self.checkpoint, self.listen = checkpoint, listen
        self.archive = Archive()
        self.choices: list[Tensor] = []
        self.seconds = 0.0
        self.episode_stages = config.episode_stages(workers.problem.training.num_stages)

    def run(self) -> Found:
        """Run episodes in which the agent learns; then train the best candidates again from fresh starts and choose."""
        self._restore()
        config = self.config
        for episode in range(self.archive.num_episodes, config.num_episodes):
            self.archive.add(*self._timed_episode(self.agent, episode))
            self._save()
        candidates = self.archive.candidates(config.num_workers)
        for choice in range(len(self.choices), config.choice_rounds):
            self.choices.append(self._timed_episode(Replay(candidates), config.num_episodes + choice).returns)
            self._save()
        return self._choose(candidates)

    def run_episode(self, agent: Agent, episode: int) -> Episode:
        """Algorithm 2, one episode: weigh a stage, compare with the references, learn.

        Where workers run beside the host, the agent learns while the next stage trains, and nobody waits for it.
        """
        config, workers = self.config, self.workers
        num_stages = workers.problem.training.num_stages
        workers.begin(mix(self.seed, episode))
        agent.begin_episode(episode / config.num_episodes)
        tracker = StateTracker((workers.num_workers,))
        params = torch.zeros(workers.num_workers, len(config.features) + 1)
        tables, rewards = [], []
        learn: Callable[[], None] = _nothing
        for stage in range(self.episode_stages):
            state = tracker.state(stage)
            if stage == config.warmup_stages or (stage > config.warmup_stages and config.stagewise):
                params = agent.act(stage, state)
            outcome = workers.run_stage(stage, params, meanwhile=learn)
            tracker.end_stage(outcome.loss, outcome.accuracy)
            rewards.append(_unless_blown_up(reward(config, outcome, (stage + 1) / num_stages), tracker))
            tables.append(params)
            if stage >= config.warmup_stages:
                next_state = tracker.state(min(stage + 1, num_stages - 1))
                done = stage == self.episode_stages - 1
                learn = partial(agent.learn, Transition(state, params, rewards[-1], next_state, done))
                if not workers.run_beside_the_host:
                    learn()
                    learn = _nothing
            self._tell(episode, stage, outcome)
        learn()
        tables += [params] * (num_stages - len(tables))  # stages that no episode runs keep the last parameters
        scales = [reward_scale(config, (stage + 1) / num_stages) for stage in range(self.episode_stages)]
        returns = torch.stack(rewards).sum(dim=0) / sum(scales)
        agent.end_episode(returns)
        return Episode(torch.stack(tables, dim=1), returns)

    def _timed_episode(self, agent: Agent, episode: int) -> Episode:
        began = time.perf_counter()
        result = self.run_episode(agent, episode)
        self.seconds += time.perf_counter() - began
        return result

    def _choose(self, candidates: Tensor) -> Found:
        if not self.choices:
            candidates, self.choices = self.archive.last_guess()
        mean = torch.stack(self.choices).mean(dim=0).nan_to_num(nan=float("-inf"))
        best = int(mean.argmax())
        if mean[best] == float("-inf"):
            raise RunError("every training of the search blew up: lower the learning rate, or look at the data.")
        dropped = self.archive.num_dropped
        return Found(candidates[best], float(mean[best]), self.workers.network_steps, self.seconds, dropped)

    def _tell(self, episode: int, stage: int, outcome: StageOutcome) -> None:
        config = self.config
        self.listen(
            Progress(
                doing="searching" if episode < config.num_episodes else "choosing",
                done=episode * self.episode_stages + stage + 1,
                total=(config.num_episodes + config.choice_rounds) * self.episode_stages,
                episode=episode,
                stage=stage,
                reference_accuracy=float(outcome.reference_accuracy[0]),
                greedy_gain=float(outcome.accuracy[0] - outcome.reference_accuracy[0]),
                best_gain=self.archive.best_guess,
            )
        )

    def _save(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(
                {
                    "of": self._fingerprint,
                    "agent": self.agent.state_dict(),
                    "archive": self.archive.state_dict(),
                    "choices": self.choices,
                    "seconds": self.seconds,
                    "network_steps": self.workers.network_steps,
                }
            )

    @cached_property
    def _fingerprint(self) -> str:
        """What a search depends on; of the network, only the shapes of its parameters."""
        problem = self.workers.problem
        tensors = [tensor for part in (problem.train, problem.val) for tensor in (part.inputs, part.labels)]
        contents = [crc32(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes()) for tensor in tensors]
        with isolated(problem.device):
            shapes = [tuple(parameter.shape) for parameter in problem.make_model().parameters()]
        return repr((self.config, problem.training, problem.augmentation, self.seed, contents, shapes))

    def _restore(self) -> None:
        state = self.checkpoint.load() if self.checkpoint is not None else None
        if state is None:
            self._save()  # so that there is something to go on from at any moment
        else:
            require(state.get("of") == self._fingerprint, "the checkpoint is of another search: use another file.")
            self.agent.load_state_dict(state["agent"])
            self.archive.load_state_dict(state["archive"])
            self.choices, self.seconds = list(state["choices"]), state["seconds"]
            self.workers.network_steps = state["network_steps"]


def _nothing() -> None:
    """What there is left to learn where all was learned at once, and before the first weighted stage."""


def _unless_blown_up(rewards: Tensor, tracker: StateTracker) -> Tensor:
    """NaN for workers whose loss has not stayed finite: their episode is dropped."""
    return torch.where(tracker.smoothed_loss.isfinite(), rewards, torch.full_like(rewards, float("nan")))
