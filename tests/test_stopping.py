"""Searches that stop early, go on longer than they were begun, heed their proxy, and say how sure they are."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import nn

import autoweight as aw
from autoweight.config import AgentName, SearchConfig, TrainingConfig
from autoweight.config.presets import PRESETS
from autoweight.finding import prepare_search
from autoweight.finding.loop import SearchLoop
from autoweight.recipes import RECIPES, get_recipe
from autoweight.strategy.regime import Regime

from .conftest import make_blobs

TRAINING = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,))
CONFIG = SearchConfig(num_episodes=4, num_workers=5, choice_rounds=2, warmup_stages=1, episode_share=1.0)


def linear():
    return nn.Linear(2, 3)


def search(config=CONFIG, training=TRAINING, **options):
    return aw.search(linear, make_blobs(48), make_blobs(60, seed=9), config, training=training, seed=5, **options)


def stop_at(doing, episode, stage):
    return lambda progress: (progress.doing, progress.episode, progress.stage) == (doing, episode, stage)


def test_a_search_that_is_told_to_stop_keeps_the_best_so_far(tmp_path):
    stopped = search(listen=stop_at("searching", 2, 1), checkpoint=tmp_path / "search")
    shorter = search(replace(CONFIG, num_episodes=2, cmaes=replace(CONFIG.cmaes, coarse_share=0.7)))
    assert stopped.info["episodes"] == (2 + CONFIG.choice_rounds) * 5
    assert stopped.num_stages == shorter.num_stages == 4
    assert stopped.info["network_steps"] < search().info["network_steps"]


def test_a_choice_that_is_told_to_stop_takes_what_it_has():
    seen = []

    def listen(progress):
        seen.append(progress.doing)
        return progress.doing == "choosing"

    strategy = search(listen=listen)
    assert seen.count("choosing") == 1
    assert math.isfinite(strategy.info["validation_gain"])


def test_a_search_stopped_before_its_first_episode_says_so():
    with pytest.raises(aw.RunError, match="stopped before the first episode was done"):
        search(listen=lambda progress: True)


def test_only_true_stops_a_search():
    assert search(listen=lambda progress: 1).info["episodes"] == (4 + 2) * 5


@pytest.mark.parametrize("agent", get_args(AgentName))
def test_a_finished_search_goes_on_with_more_episodes(tmp_path, agent):
    short, long = (replace(CONFIG, agent=agent, num_episodes=count) for count in (2, 4))
    search(short, checkpoint=tmp_path / "search")
    seen = []
    longer = search(long, checkpoint=tmp_path / "search", listen=lambda progress: seen.append(progress.episode))
    assert sorted(set(seen)) == [2, 3, 4, 5]  # two more, and the choice anew
    assert longer.info["episodes"] == (4 + 2) * 5
    again = search(long, checkpoint=tmp_path / "search", listen=lambda progress: pytest.fail("nothing is left to do"))
    assert torch.equal(again.table, longer.table)


def test_a_stopped_search_goes_on_where_it_was(tmp_path):
    search(listen=stop_at("searching", 2, 1), checkpoint=tmp_path / "search")
    resumed = search(checkpoint=tmp_path / "search")
    assert torch.equal(resumed.table, search().table)


def test_a_gain_comes_with_its_standard_error(monkeypatch):
    returns = []
    run_episode = SearchLoop.run_episode

    def noted(loop, agent, episode, explore=True):
        result = run_episode(loop, agent, episode, explore)
        if episode >= loop.config.num_episodes:
            returns.append(result.returns)
        return result

    monkeypatch.setattr(SearchLoop, "run_episode", noted)
    config = replace(CONFIG, choice_rounds=3)
    info = search(config).info
    rounds = torch.stack(returns)
    best = int(rounds.mean(dim=0).argmax())
    assert info["validation_gain"] == pytest.approx(float(rounds[:, best].mean()))
    assert info["validation_gain_error"] == pytest.approx(float(rounds[:, best].std() / math.sqrt(3)))
    assert (info["validation_repeats"], info["candidates"]) == (3, 5)


def test_of_one_round_the_error_is_that_of_two_shares():
    assert search(replace(CONFIG, choice_rounds=1)).info["validation_gain_error"] == pytest.approx(math.sqrt(0.5 / 60))


def test_a_round_whose_reference_blew_up_is_left_out_of_the_choice(monkeypatch):
    nan = float("nan")
    rounds = torch.tensor([[0.1, 0.3, 0.9, 0.2, 0.0], [nan] * 5, [0.1, 0.5, nan, 0.2, 0.0]])  # the third fails alone
    run_episode = SearchLoop.run_episode

    def with_luck(loop, agent, episode, explore=True):
        result = run_episode(loop, agent, episode, explore)
        choice = episode - loop.config.num_episodes
        return result if choice < 0 else result._replace(returns=rounds[choice])

    monkeypatch.setattr(SearchLoop, "run_episode", with_luck)
    info = search(replace(CONFIG, choice_rounds=3)).info
    assert info["validation_gain"] == pytest.approx(0.4)
    assert info["validation_gain_error"] == pytest.approx(0.1)
    assert info["validation_repeats"] == 2
    rounds[:] = nan
    with pytest.raises(aw.RunError, match="every training of the search blew up"):
        search(replace(CONFIG, choice_rounds=3))


def test_a_search_heeds_its_proxy():
    data = make_blobs(48), make_blobs(60, seed=9)
    config = replace(CONFIG, proxy_epochs=6, proxy_network="mlp")
    job = prepare_search(linear, *data, config, training=TRAINING)
    assert job.problems[0].training.epochs == 6
    assert sum(isinstance(layer, nn.Linear) for layer in job.problems[0].make_model().modules()) > 1
    plain = search(replace(CONFIG, proxy_epochs=8), listen=stop_at("searching", 1, 0))
    usual = search(listen=stop_at("searching", 1, 0))
    assert plain.info["network_steps"] > 1.9 * usual.info["network_steps"]
    with pytest.raises(aw.UserError, match="did you mean"):
        search(replace(CONFIG, proxy_network="mpl"))


def test_a_strategy_tells_the_training_that_its_proxies_stand_for():
    training = replace(TRAINING, optimizer="adamw", learning_rate=0.01, schedule=lambda progress: 1.0)
    strategy = search(replace(CONFIG, proxy_epochs=2 * 4), training, listen=stop_at("searching", 1, 0))
    assert strategy.regime == Regime(4, 12, 16, "adamw", 0.0, "own")


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_papers_preset_is_the_papers_whatever_the_recipe(recipe):
    preset, own = PRESETS["paper"], get_recipe(recipe)
    training = preset.training(own.training)
    config = replace(own, search=preset.search(own.search), data=preset.data(own.data), training=training)
    assert (config.training.schedule, config.training.nesterov, config.search.warmup_stages) == ("stages", False, 2)
    assert config.search.features == ("loss", "entropy", "density", "label")
    assert config.search.label_feature == "raw"
    assert (config.search.proxy_network, config.search.proxy_epochs, config.search.head_start) == ("", 0, 0)
    assert (config.search.num_workers, config.search.num_starts, config.search.choice_rounds) == (8, 8, 0)
    if config.data.dataset.startswith("cifar"):
        assert (config.data.train_size, config.data.val_size) == (20_000, 5_000)


def test_the_papers_preset_takes_the_actor_as_it_ends(monkeypatch):
    asked = []
    run_episode = SearchLoop.run_episode

    def noted(loop, agent, episode, explore=True):
        asked.append((episode, explore))
        result = run_episode(loop, agent, episode, explore)
        if not explore:
            asked.append(result.tables[0])
        return result

    monkeypatch.setattr(SearchLoop, "run_episode", noted)
    paper = replace(PRESETS["paper"].search(SearchConfig()), num_episodes=2, warmup_stages=1)
    strategy = search(paper)
    table = asked.pop()
    assert asked == [(0, True), (1, True), (2, False)]
    assert torch.equal(strategy.table, table)
    assert (strategy.info["validation_repeats"], strategy.info["candidates"]) == (8, 1)  # starts; nobody chose
