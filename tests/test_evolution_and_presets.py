"""Presets, where agents begin, and how evolution goes on from there."""

import pytest
import torch
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import CmaesConfig, SearchConfig
from autoweight.config.presets import PRESETS
from autoweight.finding.agents import make_agent
from autoweight.finding.loop import SearchLoop
from autoweight.recipes import get_recipe
from autoweight.strategy import Rule

from .test_finding import AGENTS, ToyWorkers, tiny_search, toy_config


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


def test_the_preset_for_wrong_labels_begins_where_labels_that_are_probably_right_count():
    assert tiny_search("cmaes", preset="noise").rule.features == ("belief",)
    guess = make_agent(aw.presets.noise(SearchConfig()), 20, seed=0)
    guess.begin_episode(0.0)
    assert guess.act(5, None)[0].tolist() == [0.5, 0, 0]


def test_the_preset_without_a_memory_begins_where_small_losses_count():
    assert tiny_search("cmaes", preset="losses").rule.features == ("loss", "entropy")
    search = aw.presets.losses(aw.presets.noise(SearchConfig()))
    assert search.warmup_stages == 2  # which a memory does not need
    guess = make_agent(search, 20, seed=0)
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
