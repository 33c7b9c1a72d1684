import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import ActorCriticConfig, CmaesConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import PRESETS
from autoweight.finding.agents import make_agent
from autoweight.finding.agents.agent import Agent
from autoweight.finding.agents.random_constant import RandomConstant
from autoweight.finding.archive import Archive
from autoweight.finding.loop import SearchLoop
from autoweight.finding.reward import reward, reward_scale
from autoweight.finding.smooth import interpolate
from autoweight.recipes import get_recipe
from autoweight.strategy import Rule
from autoweight.workers import StageOutcome

from .conftest import make_blobs

AGENTS = ["actor-critic", "cmaes", "constant"]
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


@pytest.mark.parametrize("agent", ["actor-critic", "cmaes"])
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
        with pytest.raises(aw.UserError, match="of another search"):
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
    agent = RandomConstant(SearchConfig(num_workers=3), Rule(("loss",)), 4, seed=0)
    agent.begin_episode(0.0)
    best = agent.strategy_params[1].clone()
    for returns in ([0.0, 2.0, 1.0], [1.9, 1.0, 0.0], [1.9, float("nan"), 1.5]):
        agent.end_episode(torch.tensor(returns))
        assert torch.equal(agent.best, best)
        agent.begin_episode(0.5)
        assert torch.equal(agent.strategy_params[0], best)


@pytest.mark.parametrize(("preset", "workers"), [("paper", 8), ("authors", 1)])
def test_presets_run(preset, workers):
    strategy = tiny_search("actor-critic", preset=preset, choice_rounds=0, num_workers=workers, num_starts=workers)
    assert strategy.num_stages == 4
    assert strategy.rule.normalised == (preset == "authors")


def test_the_preset_for_rare_classes_searches_normalised_weights_around_a_low_bias():
    strategy = tiny_search("cmaes", preset="rare")
    assert strategy.rule.normalised
    assert strategy.rule.features == ("loss", "entropy", "label")
    tried = make_agent(aw.presets.rare(SearchConfig()), 20, seed=0)
    tried.begin_episode(0.0)
    assert tried.act(5, None)[:, -1].max() < -2


@pytest.mark.parametrize("recipe", ["digits-noise", "digits-longtail", "digits-many"])
@pytest.mark.parametrize("preset", ["noise", "rare", "paper", "authors"])
def test_presets_leave_nothing_of_another_place_to_begin(recipe, preset):
    search, fresh = PRESETS[preset].search(get_recipe(recipe).search), PRESETS[preset].search(SearchConfig())
    Rule.of(search)
    assert search.normalise == fresh.normalise
    assert search.start == fresh.start


def test_the_preset_for_wrong_labels_begins_where_small_losses_count():
    assert tiny_search("cmaes", preset="noise").rule.features == ("loss", "entropy")
    guess = make_agent(aw.presets.noise(SearchConfig()), 20, seed=0)
    guess.begin_episode(0.0)
    loss, entropy, bias = guess.act(5, None)[0]
    assert loss < 0
    assert (entropy, bias < 0) == (0, True)


def test_the_only_worker_of_a_preset_explores():
    config = PRESETS["authors"].search(SearchConfig())
    agent = make_agent(config, 20, seed=0)
    agent.begin_episode(0.0)
    state = torch.tensor([[5.0, 1.0, 0.5]])
    tried = {tuple(agent.act(5, state).flatten().tolist()) for _ in range(20)}
    assert len(tried) > 1


def test_all_knots_reach_the_stages_that_episodes_run():
    config = SearchConfig(num_workers=5, cmaes=CmaesConfig(coarse_share=0))
    agent = make_agent(config, 20, seed=0)
    assert agent.episode_stages == 14
    agent.begin_episode(0.0)
    last_knots = torch.as_tensor(agent.points[0], dtype=torch.float32).view(4, -1)[-1] * agent.bounds
    assert_close(agent.act(13, None)[1], last_knots)


@pytest.mark.parametrize("agent", AGENTS)
def test_trainings_that_blow_up_are_dropped_and_counted(agent):
    workers, config = ToyWorkers(), toy_config(agent)
    run_stage = workers.run_stage

    def poisoned(stage, params, meanwhile):
        outcome = run_stage(stage, params, meanwhile)
        if stage == 3:
            outcome.loss[5] = float("nan")
        return outcome

    workers.run_stage = poisoned
    found = SearchLoop(workers, make_agent(config, 8, seed=0), config).run()
    assert found.dropped == config.num_episodes
    assert found.table.isfinite().all()


def test_to_evolution_a_training_that_blew_up_is_the_worst():
    agent = make_agent(toy_config("cmaes"), 8, seed=0)
    agent.begin_episode(0.0)
    agent.end_episode(torch.tensor([9.0, float("nan"), 2.0, *[3.0] * 13]))
    assert agent.told == [[2.0, 2.0, *[3.0] * 13]]


def test_a_search_in_which_everything_blows_up_says_so():
    workers, config = ToyWorkers(), toy_config("constant")
    run_stage = workers.run_stage
    nothing = torch.full((16,), float("nan"))
    workers.run_stage = lambda *stage, meanwhile: run_stage(*stage, meanwhile)._replace(loss=nothing)
    with pytest.raises(aw.RunError, match="blew up"):
        SearchLoop(workers, make_agent(config, 8, seed=0), config).run()


def test_search_and_training_must_fit():
    with pytest.raises(aw.UserError, match="warm-up"):
        tiny_search("cmaes", warmup_stages=4)
    with pytest.raises(aw.UserError, match="up to 1"):
        tiny_search("cmaes", episode_share=1.5)
    with pytest.raises(aw.UserError, match="at least 5 workers"):
        tiny_search("cmaes", num_workers=4)
    with pytest.raises(aw.UserError, match="did you mean 'entropy'"):
        tiny_search("cmaes", features=("entropi",))
    with pytest.raises(aw.UserError, match=r"bias goes from -5\.0 to 5.0, but is -6.0"):
        tiny_search("cmaes", start={"bias": -6.0}, normalise=True)
    with pytest.raises(aw.UserError, match="with a bias alone is for normalised weights"):
        tiny_search("cmaes", start={"bias": -4.0})
    with pytest.raises(aw.UserError, match=r"loss goes from -10\.0 to 10.0, but is -11.0"):
        tiny_search("cmaes", start={"loss": -11.0})
    with pytest.raises(aw.UserError, match=r"names loss, which is not among search\.features"):
        tiny_search("cmaes", start={"loss": -5.0}, features=("entropy",))
    with pytest.raises(aw.UserError, match=r"unknown parameter in search\.start 'los': did you mean 'loss'"):
        tiny_search("cmaes", start={"los": -5.0})


@pytest.mark.parametrize("coarse_share", [0.0, 0.5])
def test_evolution_begins_where_it_is_told(coarse_share):
    config = SearchConfig(
        num_workers=9, start={"loss": -6.0, "bias": -4.0}, cmaes=CmaesConfig(sigma=0.01, coarse_share=coarse_share)
    )
    agent = make_agent(config, 20, seed=0)
    agent.begin_episode(0.0)
    assert_close(agent.act(5, None)[0], torch.tensor([-6.0, 0.0, -4.0]))
    assert_close(agent.act(5, None)[1:], torch.tensor([[-6.0, 0.0, -4.0]]).expand(8, -1), atol=0.4, rtol=0)


def test_evolution_finds_a_constant_first_and_stages_part_from_there():
    config = SearchConfig(num_workers=9, num_episodes=4, cmaes=CmaesConfig(coarse_share=0.5))
    agent = make_agent(config, 20, seed=0)
    constant = []
    for _ in range(4):
        agent.begin_episode(0.0)
        weighted = agent.tables[:, config.warmup_stages :]
        constant.append(torch.equal(weighted, weighted[:, :1].expand_as(weighted)))
        guess = weighted[0]
        if len(constant) == 3:  # the guess of the first fine episode is the constant that was found
            assert torch.equal(guess, guess[:1].expand_as(guess))
            assert guess.any()
        agent.end_episode(-weighted[:, 0].norm(dim=-1))
    assert constant == [True, True, False, False]


def test_evolution_halves_its_steps_when_stages_part():
    config = SearchConfig(num_workers=401, num_episodes=2, cmaes=CmaesConfig(coarse_share=0.5, sigma=0.1))
    agent = make_agent(config, 20, seed=0)
    deviations = []
    for _ in range(2):
        agent.begin_episode(0.0)
        shares = agent.tables[1:, config.warmup_stages] / torch.tensor([10.0, 5.0, 5.0])
        deviations.append(shares.std(dim=0).mean())
        agent.end_episode(torch.zeros(401))
    assert_close(torch.stack(deviations), torch.tensor([0.1, 0.05]), rtol=0.1, atol=0)


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
