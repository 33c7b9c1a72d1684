"""Algorithm 2: learning to auto-weight, over all workers at once."""

import time
from collections.abc import Callable
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.data.mixing import mix
from autoweight.errors import RunError
from autoweight.finding.agents import Agent, Replay, Transition
from autoweight.finding.archive import Archive
from autoweight.finding.fingerprint import fingerprint
from autoweight.finding.outcomes import Episode, Found, Progress
from autoweight.finding.reward import episode_returns, reward
from autoweight.finding.state import StateTracker
from autoweight.storage.checkpoint import CheckpointFile
from autoweight.workers import Crew, StageOutcome


class _StopSearchError(Exception):
    """The listener asked to stop."""


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
        """Algorithm 2, one episode: every worker trains a network weighted by theta, beside its unweighted reference.

        Before each stage the agent gives theta (equation 4); after it, the agent is told the reward (equation 8) and
        learns (Algorithm 1). Workers on a GPU train the next stage meanwhile.
        """
        began = time.perf_counter()
        config, workers = self.config, self.workers
        num_stages, last = workers.problem.training.num_stages, self.episode_stages - 1
        workers.begin(mix(self.seed, episode))
        agent.begin_episode(episode / config.num_episodes, explore)
        tracker = StateTracker((workers.num_workers,))
        strategy_params = torch.zeros(workers.num_workers, workers.problem.num_params)
        tables, rewards = [], []
        unlearned: list[Transition] = []

        def learn() -> None:
            while unlearned:
                agent.learn(unlearned.pop())

        for stage in range(self.episode_stages):
            state = tracker.state(stage)
            if stage == config.warmup_stages or (stage > config.warmup_stages and config.stagewise):
                strategy_params = agent.act(stage, state)
            outcome = workers.run_stage(stage, strategy_params, meanwhile=learn)
            tracker.end_stage(outcome.loss, outcome.score)
            tables.append(strategy_params)
            rewards.append(_unless_blown_up(reward(config, outcome, (stage + 1) / num_stages), tracker))
            if stage >= config.warmup_stages:
                next_state = tracker.state(min(stage + 1, num_stages - 1))
                unlearned.append(Transition(state, strategy_params, rewards[-1], next_state, done=stage == last))
            if not workers.run_beside_the_host:
                learn()
            if stage < last:
                self._tell(episode, stage, outcome)
        learn()
        returns = episode_returns(config, rewards, num_stages)
        self._tell(episode, last, outcome, returns)
        agent.end_episode(returns)
        self.seconds += time.perf_counter() - began
        tables += [strategy_params] * (num_stages - len(tables))  # stages that no episode runs keep the last parameters
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
        """The agent's guess without exploration, as the paper has it, tried in one more episode."""
        tables, returns = self.run_episode(self.agent, self.config.num_episodes, explore=False)
        sound = returns[returns.isfinite()]
        # All workers try the same table, so there are only as many different returns as starts.
        return self._found(tables[0], sound[: self.workers.num_starts] if len(sound) else returns, rounds=1)

    def _found(self, table: Tensor, returns: Tensor, rounds: int, candidates: int = 1) -> Found:
        """The outcome, from the chosen table and its returns in the last `rounds` episodes."""
        gain = float(returns.mean())
        if not isfinite(gain):
            raise RunError("every training of the search blew up: lower the learning rate, or look at the data.")
        error = float(returns.std() / sqrt(len(returns))) if len(returns) > 1 else self.workers.score_error
        return Found(
            table=table,
            gain=gain,
            gain_error=error,
            repeats=len(returns),
            candidates=candidates,
            network_steps=self.workers.network_steps,
            seconds=self.seconds,
            episodes=(self.archive.num_episodes + rounds) * self.workers.num_workers,
            dropped=self.archive.num_dropped,
        )

    def _tell(self, episode: int, stage: int, outcome: StageOutcome, returns: Tensor | None = None) -> None:
        """Tell the listener how far the search is; raise where it answers that it is to stop."""
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
        if self.checkpoint is None or state is None:
            self._save()  # so that there is something to go on from at any moment
            return
        if state.get("of") != self._fingerprint:
            raise self.checkpoint.of_another("search")
        self.agent.load_state_dict(state["agent"])
        self.archive.load_state_dict(state["archive"])
        longer = self.archive.num_episodes < self.config.num_episodes
        self.choices = [] if longer else list(state["choices"])  # among fewer candidates
        self.seconds, self.workers.network_steps = state["seconds"], state["network_steps"]


def _unless_blown_up(rewards: Tensor, tracker: StateTracker) -> Tensor:
    """NaN for workers whose loss has not stayed finite: their episode is dropped."""
    return torch.where(tracker.smoothed_loss.isfinite(), rewards, torch.full_like(rewards, float("nan")))
