"""Algorithm 2 step by step: what an agent is told, and when it learns."""

import pytest
import torch
from torch.testing import assert_close

from autoweight.finding.agents import make_agent
from autoweight.finding.agents.agent import Agent
from autoweight.finding.loop import SearchLoop
from autoweight.workers import StageOutcome

from .test_finding import ToyWorkers, toy_config


class Scribe(Agent):
    """Proposes a theta of its own for every stage, and writes down all that it is told."""

    def __init__(self, num_workers=2):
        self.num_workers, self.progress, self.transitions, self.returns = num_workers, [], [], []

    def begin_episode(self, progress, explore=True):
        self.progress.append((progress, explore))

    def act(self, stage, state):
        return torch.full((self.num_workers, 2), float(stage))

    def learn(self, transition):
        self.transitions.append(transition)

    def end_episode(self, returns):
        self.returns.append(returns)


class ScriptedWorkers(ToyWorkers):
    """Losses 4, 2, 1 and accuracies 0.2, 0.4, 0.8 of both workers, of which the second blows up at the last stage."""

    def __init__(self):
        super().__init__(num_workers=2, num_stages=4)
        self.seeds = []

    def begin(self, seed):
        self.seeds.append(seed)

    def run_stage(self, stage, params, meanwhile):
        meanwhile()
        loss = torch.tensor([[4.0, 4.0], [2.0, 2.0], [1.0, float("nan")]])[stage]
        accuracy = torch.tensor([0.2, 0.4, 0.8])[stage].expand(2)
        return StageOutcome(loss, accuracy, torch.full((2,), 0.1), torch.full((2,), 5.0))


def test_the_agent_is_told_what_algorithm_2_says():
    workers, agent = ScriptedWorkers(), Scribe()
    config = toy_config("constant", num_episodes=2, episode_share=0.75, choice_rounds=0, reward_gain=1.0)
    found = SearchLoop(workers, agent, config, seed=3).run()
    first, last = agent.transitions[:2]  # of stages 1 and 2: stage 0 is the warm-up
    assert_close(first.state, torch.tensor([[1.0, 4.0, 0.2]]).expand(2, 3))
    assert_close(first.strategy_params, torch.full((2, 2), 1.0))
    assert_close(first.reward, torch.full((2,), 0.3))
    assert_close(first.next_state, torch.tensor([[2.0, 3.0, 0.3]]).expand(2, 3))
    assert_close(last.state, first.next_state)
    assert_close(last.next_state[0], torch.tensor([3.0, 2.0, 0.55]))
    assert_close(last.reward[0], torch.tensor(0.7))
    assert last.reward[1].isnan()
    assert [transition.done for transition in agent.transitions] == [False, True] * 3
    assert_close(agent.returns[0], torch.tensor([(0.1 + 0.3 + 0.7) / 3, float("nan")]), equal_nan=True)
    assert agent.progress == [(0.0, True), (0.5, True), (1.0, False)]  # without a choice, the last one is the guess
    assert len(set(workers.seeds)) == 3  # every episode from another start
    assert found.table[:, 0].tolist() == [0, 1, 2, 2]
    assert found.dropped == 2


class Recorder(ToyWorkers):
    """Writes down in which order stages and updates come."""

    def __init__(self, beside):
        super().__init__()
        self.events, self.run_beside_the_host = [], beside

    def run_stage(self, stage, params, meanwhile):
        self.events.append(f"stage {stage}")
        return super().run_stage(stage, params, meanwhile)


@pytest.mark.parametrize("beside", [False, True])
def test_an_agent_learns_from_a_stage_at_its_end_or_while_the_next_one_trains_beside_it(beside):
    workers, config = Recorder(beside), toy_config("actor-critic", num_episodes=1, choice_rounds=0)
    search = SearchLoop(workers, make_agent(config, 8, seed=0), config)
    learn = search.agent.learn
    search.agent.learn = lambda transition: (
        workers.events.append(f"learn {int(transition.state[0, 0])}"),
        learn(transition),
    )
    search.run()
    if beside:
        assert workers.events[:6] == ["stage 0", "stage 1", "stage 2", "learn 1", "stage 3", "learn 2"]
        assert workers.events[-3:] == ["stage 7", "learn 6", "learn 7"]
    else:
        assert workers.events[:5] == ["stage 0", "stage 1", "learn 1", "stage 2", "learn 2"]
        assert workers.events[-2:] == ["stage 7", "learn 7"]
