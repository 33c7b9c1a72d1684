import math
from dataclasses import replace
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import ActorCriticConfig, AgentName, SearchConfig, TrainingConfig
from autoweight.config.presets import PRESETS
from autoweight.finding.agents import make_agent
from autoweight.finding.agents.random_constant import RandomConstant
from autoweight.finding.archive import Archive
from autoweight.finding.loop import SearchLoop
from autoweight.finding.reward import reward, reward_scale
from autoweight.finding.smooth import interpolate
from autoweight.strategy import Rule
from autoweight.workers import StageOutcome

from .conftest import make_blobs

AGENTS = get_args(AgentName)
BOUNDS = Rule(("loss",)).bounds


def test_reward_by_hand():
    config = SearchConfig(reward_growth=2.0, reward_gain=0.5)
    assert reward_scale(config, 0.25) == pytest.approx(math.exp(0.5) * 0.5)
    outcome = StageOutcome(torch.zeros(2), torch.tensor([0.7, 0.6]), torch.tensor([0.5, 0.6]), torch.zeros(2))
    assert_close(reward(config, outcome, 0.25), torch.tensor([0.2 * math.exp(0.5) * 0.5, 0.0]))
    plain = SearchConfig(reward="plain", reward_growth=0.0, reward_gain=1.0)
    assert_close(reward(plain, outcome, 0.25), outcome.score)


def test_interpolate_runs_linearly_through_the_knots():
    table = interpolate(torch.tensor([[[0.0], [4.0], [0.0]]]), num_stages=7, warmup_stages=2)
    assert table.flatten().tolist() == [0, 0, 0, 2, 4, 2, 0]
    assert interpolate(torch.tensor([[[3.0]]]), 3, 1).flatten().tolist() == [0, 3, 3]


class ToyWorkers:
    """A problem with a known best theta for every stage: accuracy falls with the squared distance from it."""

    run_beside_the_host = False

    def __init__(self, num_workers=16, num_stages=8, harmful=False):
        self.num_workers = num_workers
        self.problem = SimpleNamespace(training=TrainingConfig(num_stages=num_stages), num_params=2)
        self.num_starts, self.score_error = 1, 0.07
        self.best = torch.stack([torch.linspace(-9, 9, num_stages), torch.linspace(4, -4, num_stages)], dim=1)
        self.harmful = harmful
        self.network_steps = 0

    def begin(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def agreed(self, stop):
        return stop

    def run_stage(self, stage, params, meanwhile):
        meanwhile()
        distance = ((params - self.best[stage]) / BOUNDS).square().mean(dim=1)
        if self.harmful:
            distance = params.square().sum(dim=1)
        noise = 0.02 * torch.randn(self.num_workers, generator=self.generator)
        accuracy = 0.9 - 0.4 * distance + noise
        reference = torch.full_like(accuracy, 0.9 if self.harmful else 0.5)
        self.network_steps += self.num_workers
        loss = torch.full_like(accuracy, 1.0 - stage / 10)
        return StageOutcome(loss, accuracy, reference, loss)


def toy_config(agent, num_episodes=12, episode_share=1.0, **options):
    return SearchConfig(
        agent=agent,
        features=("loss",),
        warmup_stages=1,
        num_workers=16,
        num_episodes=num_episodes,
        episode_share=episode_share,
        reward_growth=0.0,
        **options,
    )


@pytest.mark.parametrize("agent", ["actor-critic", "cmaes", "trust-region"])
def test_an_agent_finds_the_known_best_theta_of_every_stage(agent):
    # A stage's accuracy depends on its own parameters alone here, so that later rewards say nothing about them.
    immediate = ActorCriticConfig(discount=0.0, stage_noise=1.0)
    workers, config = ToyWorkers(), toy_config(agent, 16, reward_gain=1.0, actor_critic=immediate)
    found = SearchLoop(workers, make_agent(config, 8, seed=0), config).run()
    error = ((found.table - workers.best)[1:] / BOUNDS).abs().mean()
    assert error < 0.15
    assert found.gain > 0.35
    assert found.table[0].tolist() == [0, 0]  # the warm-up


def test_a_stage_wise_strategy_beats_every_constant_on_the_toy():
    gains = {}
    for agent in ("cmaes", "constant"):
        config = toy_config(agent, reward_gain=1.0)
        gains[agent] = SearchLoop(ToyWorkers(), make_agent(config, 8, seed=0), config).run().gain
    assert gains["cmaes"] > gains["constant"] + 0.03


def test_without_stages_the_strategy_is_constant():
    for agent in AGENTS:
        config = toy_config(agent, stagewise=False)
        table = SearchLoop(ToyWorkers(), make_agent(config, 8, seed=0), config).run().table
        assert (table[1:] == table[1]).all()


@pytest.mark.parametrize("agent", AGENTS)
def test_where_weighting_does_harm_nothing_is_weighted(agent):
    config = toy_config(agent)
    found = SearchLoop(ToyWorkers(harmful=True), make_agent(config, 8, seed=0), config).run()
    assert found.table.abs().max() == 0 or found.gain > 0


def test_late_stages_that_no_episode_runs_keep_the_last_parameters():
    config = toy_config("cmaes", episode_share=0.6)
    table = SearchLoop(ToyWorkers(), make_agent(config, 8, seed=0), config).run().table
    assert len(table) == 8
    assert (table[5:] == table[4]).all()


def test_candidates_are_no_weighting_late_guesses_and_the_best_tries():
    archive = Archive()
    for episode in range(4):
        tables = 100 * episode + torch.arange(5.0)[:, None, None].expand(5, 2, 1) + 1
        archive.add(tables, torch.tensor([0.0, 0.1, 0.2, float("nan"), 0.3]) + episode)
    names = archive.candidates(5)[:, 0, 0].tolist()
    assert names == [301, 305, 303, 302, 0]
    assert len(archive.candidates(50)) == 50
    assert archive.num_dropped == 4
    assert archive.best_guess == 3.0


def tiny_search(
    agent,
    checkpoint=None,
    listen=lambda progress: None,
    preset="default",
    make_model=lambda: nn.Linear(2, 3),
    train=None,
    **options,
):
    config = PRESETS[preset].search(SearchConfig(agent=agent))
    config = SearchConfig(
        **{
            **vars(config),
            "num_episodes": 3,
            "num_workers": 6,
            "num_starts": 2,
            "choice_rounds": 1,
            "warmup_stages": 1,
            "episode_share": 1.0,
        }
        | options
    )
    return aw.search(
        make_model,
        train or make_blobs(48),
        make_blobs(30, seed=9),
        config,
        training=TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,)),
        seed=5,
        checkpoint=checkpoint,
        listen=listen,
    )


class KilledError(Exception):
    pass


def test_a_checkpoint_of_another_search_is_refused(tmp_path):
    checkpoint = tmp_path / "search"
    tiny_search("cmaes", checkpoint)
    data = make_blobs(48)
    for other in (
        {"agent": "constant"},
        {"features": ("loss",)},
        {"make_model": lambda: nn.Linear(2, 4)},
        {"train": replace(data, inputs=3 * data.inputs)},
    ):
        with pytest.raises(aw.UserError, match=r"of another search: .* delete \S+search and search\.previous"):
            tiny_search(**{"agent": "cmaes", "checkpoint": checkpoint} | other)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("episode", "stage"), [(0, 1), (1, 3), (2, 0), (3, 2)])
def test_a_killed_search_goes_on_to_the_same_strategy(tmp_path, agent, episode, stage):
    whole = tiny_search(agent)
    checkpoint = tmp_path / "search"

    def kill(progress):
        if (progress.episode, progress.stage) == (episode, stage):
            raise KilledError

    with pytest.raises(KilledError):
        tiny_search(agent, checkpoint, kill)
    assert checkpoint.exists()
    resumed = tiny_search(agent, checkpoint)
    assert tiny_search(agent, checkpoint).info["seconds"] == resumed.info["seconds"]  # no work, no time
    assert torch.equal(resumed.table, whole.table)
    assert resumed.info["network_steps"] == whole.info["network_steps"]
    assert resumed.info["validation_gain"] == whole.info["validation_gain"]


def test_a_search_leaves_the_global_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    tiny_search("cmaes")
    assert torch.rand(1) == expected


def test_search_reports_progress_and_how_it_was_found():
    seen = []
    strategy = tiny_search("actor-critic", listen=seen.append)
    assert [progress.done for progress in seen] == list(range(1, 17))
    assert seen[-1].total == 16
    assert {progress.doing for progress in seen} == {"searching", "choosing"}
    assert strategy.info["agent"] == "actor-critic"
    assert strategy.info["episodes"] == 24


def test_a_strategy_knows_the_classes_that_it_was_found_with():
    strategy = tiny_search("actor-critic", features=("label",), episode_share=0.5)
    losses, labels = torch.ones(6), torch.tensor([0, 1, 2] * 2)
    assert strategy.weigh(losses, torch.zeros(6, 3), labels, progress=0.9).isfinite().all()


def test_a_strategy_tells_how_many_trainings_blew_up(monkeypatch):
    run = SearchLoop.run
    monkeypatch.setattr(SearchLoop, "run", lambda search: run(search)._replace(dropped=3))
    assert tiny_search("constant").info["dropped_trainings"] == 3


def test_the_random_constant_keeps_the_best_it_has_tried():
    agent = RandomConstant(SearchConfig(agent="constant", num_workers=3), Rule(("loss",)), 4, seed=0)
    agent.begin_episode(0.0)
    best = agent.strategy_params[1].clone()
    for returns in ([0.0, 2.0, 1.0], [1.9, 1.0, 0.0], [1.9, float("nan"), 1.5]):
        agent.end_episode(torch.tensor(returns))
        assert torch.equal(agent.best, best)
        agent.begin_episode(0.5)
        assert torch.equal(agent.strategy_params[0], best)
