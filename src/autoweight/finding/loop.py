"""Algorithm 2: learning to auto-weight, over all workers at once."""

import time
from collections.abc import Callable
from functools import cached_property, partial
from math import isfinite, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.data.mixing import mix
from autoweight.errors import RunError
from autoweight.finding.agents import Agent, Replay, Transition
from autoweight.finding.archive import Archive
from autoweight.finding.fingerprint import fingerprint
from autoweight.finding.reward import reward, reward_scale
from autoweight.finding.state import StateTracker
from autoweight.storage.checkpoint import AnotherJobError, CheckpointFile
from autoweight.workers import Crew, StageOutcome


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
    reference_score: float
    """The reference's score on the validation set, such as accuracy."""
    greedy_gain: float
    """The score of the agent's best guess less its reference's, now."""
    loss_gap: float
    """Its mean training loss over the stage less its reference's."""
    best_gain: float
    """The best return of a guess so far; NaN before the first."""
    returns: tuple[float, ...] = ()
    """At an episode's last stage, what it came to, of every worker; NaN where a training blew up."""


class Found(NamedTuple):
    """The outcome of a search."""

    table: Tensor
    """The chosen strategy parameters, `[stages, P]`."""
    gain: float
    """Its mean return on the validation set."""
    gain_error: float
    """The gain's standard error."""
    repeats: int
    """Of how many returns the gain is the mean."""
    candidates: int
    """How many tables it was chosen from by these very returns; 1 where it was taken as it was."""
    network_steps: int
    seconds: float
    episodes: int
    dropped: int
    """Trainings that blew up."""


class _StopSearchError(Exception):
    """Whoever listens has seen enough."""


class SearchLoop:
    """A search under way: workers, an agent, what was tried, and what it cost."""

    def __init__(
        self,
        workers: Crew,
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
        self.choice_rounds = max(config.choice_rounds, 1)

    def run(self) -> Found:
        """Run episodes in which the agent learns; then train the best candidates again from fresh starts and choose.

        Where `listen` answers True, the running episode is dropped, and the choice made among those that are done.
        """
        self._restore()
        try:
            for episode in range(self.archive.num_episodes, self.config.num_episodes):
                self.archive.add(*self.run_episode(self.agent, episode))
                self._save()
        except _StopSearchError:
            if not self.archive.num_episodes:
                raise RunError("stopped before the first episode was done: nothing is known yet.") from None
        return self._choose() if self.config.choice_rounds else self._take_guess()

    def run_episode(self, agent: Agent, episode: int, explore: bool = True) -> Episode:
        """Algorithm 2, one episode: weigh a stage, compare with the references, learn.

        Where workers run beside the host, the agent learns while the next stage trains, and nobody waits for it.
        """
        began = time.perf_counter()
        config, workers = self.config, self.workers
        num_stages = workers.problem.training.num_stages
        workers.begin(mix(self.seed, episode))
        agent.begin_episode(episode / config.num_episodes, explore)
        tracker = StateTracker((workers.num_workers,))
        strategy_params = torch.zeros(workers.num_workers, workers.problem.num_params)
        tables, rewards = [], []
        learn: Callable[[], None] = _nothing
        for stage in range(self.episode_stages):
            state = tracker.state(stage)
            if stage == config.warmup_stages or (stage > config.warmup_stages and config.stagewise):
                strategy_params = agent.act(stage, state)
            outcome = workers.run_stage(stage, strategy_params, meanwhile=learn)
            tracker.end_stage(outcome.loss, outcome.score)
            rewards.append(_unless_blown_up(reward(config, outcome, (stage + 1) / num_stages), tracker))
            tables.append(strategy_params)
            if stage >= config.warmup_stages:
                next_state = tracker.state(min(stage + 1, num_stages - 1))
                done = stage == self.episode_stages - 1
                learn = partial(agent.learn, Transition(state, strategy_params, rewards[-1], next_state, done))
                if not workers.run_beside_the_host:
                    learn()
                    learn = _nothing
            if stage < self.episode_stages - 1:
                self._tell(episode, stage, outcome)
        learn()
        tables += [strategy_params] * (num_stages - len(tables))  # stages that no episode runs keep the last parameters
        scales = [reward_scale(config, (stage + 1) / num_stages) for stage in range(self.episode_stages)]
        returns = torch.stack(rewards).sum(dim=0) / sum(scales)
        self._tell(episode, self.episode_stages - 1, outcome, returns)
        agent.end_episode(returns)
        self.seconds += time.perf_counter() - began
        return Episode(torch.stack(tables, dim=1), returns)

    def _choose(self) -> Found:
        """Train the best candidates again, each time from a fresh start, and take the best mean."""
        candidates = self.archive.candidates(self.config.num_workers)
        try:
            for choice in range(len(self.choices), self.choice_rounds):
                episode = self.config.num_episodes + choice
                self.choices.append(self.run_episode(Replay(candidates), episode).returns)
                self._save()
        except _StopSearchError:
            if not self.choices:
                return self._found(self.archive.tables[-1][0], self.archive.returns[-1][:1], rounds=0)
        returns = torch.stack(self.choices)
        returns = returns[returns.isfinite().any(dim=1)]  # where the reference blew up, nobody can be compared
        mean = returns.mean(dim=0).nan_to_num(nan=float("-inf"))
        best = int(mean.argmax())
        return self._found(candidates[best], returns[:, best], rounds=len(self.choices), candidates=len(candidates))

    def _take_guess(self) -> Found:
        """The agent's guess without exploration, as the paper has it: one more episode, of which it learns nothing."""
        tables, returns = self.run_episode(self.agent, self.config.num_episodes, explore=False)
        sound = returns[returns.isfinite()]
        return self._found(tables[0], sound[: self.workers.num_starts] if len(sound) else returns, rounds=1)

    def _found(self, table: Tensor, returns: Tensor, rounds: int, candidates: int = 1) -> Found:
        gain = float(returns.mean())
        if not isfinite(gain):
            raise RunError("every training of the search blew up: lower the learning rate, or look at the data.")
        error = float(returns.std() / sqrt(len(returns))) if len(returns) > 1 else self.workers.score_error
        archive, workers = self.archive, self.workers
        episodes = (archive.num_episodes + rounds) * workers.num_workers
        return Found(
            table=table,
            gain=gain,
            gain_error=error,
            repeats=len(returns),
            candidates=candidates,
            network_steps=workers.network_steps,
            seconds=self.seconds,
            episodes=episodes,
            dropped=archive.num_dropped,
        )

    def _tell(self, episode: int, stage: int, outcome: StageOutcome, returns: Tensor | None = None) -> None:
        config = self.config
        progress = Progress(
            doing="searching" if episode < config.num_episodes else "choosing",
            done=episode * self.episode_stages + stage + 1,
            total=(config.num_episodes + self.choice_rounds) * self.episode_stages,
            episode=episode,
            stage=stage,
            reference_score=float(outcome.reference_score[0]),
            greedy_gain=float(outcome.score[0] - outcome.reference_score[0]),
            loss_gap=float(outcome.loss[0] - outcome.reference_loss[0]),
            best_gain=self.archive.best_guess,
            returns=() if returns is None else tuple(returns.tolist()),
        )
        if self.workers.agreed(self.listen(progress) is True):
            raise _StopSearchError

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
        return "".join(fingerprint(problem, self.config, self.seed) for problem in self.workers.problems)

    def _restore(self) -> None:
        state = self.checkpoint.load() if self.checkpoint is not None else None
        if state is None:
            self._save()  # so that there is something to go on from at any moment
            return
        if state.get("of") != self._fingerprint:
            raise AnotherJobError("the checkpoint is of another search: use another file.")
        self.agent.load_state_dict(state["agent"])
        self.archive.load_state_dict(state["archive"])
        longer = self.archive.num_episodes < self.config.num_episodes
        self.choices = [] if longer else list(state["choices"])  # among fewer candidates
        self.seconds, self.workers.network_steps = state["seconds"], state["network_steps"]


def _nothing() -> None:
    """What there is left to learn where all was learned at once, and before the first weighted stage."""


def _unless_blown_up(rewards: Tensor, tracker: StateTracker) -> Tensor:
    """NaN for workers whose loss has not stayed finite: their episode is dropped."""
    return torch.where(tracker.smoothed_loss.isfinite(), rewards, torch.full_like(rewards, float("nan")))
