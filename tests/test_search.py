import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.checkpoint import CheckpointFile
from autoweight.config import ActorCriticConfig, SearchConfig, TrainingConfig
from autoweight.presets import PRESETS
from autoweight.search.agent import Transition
from autoweight.search.archive import Archive
from autoweight.search.buffer import Buffer, TransitionBatch
from autoweight.search.critic import Critics
from autoweight.search.loop import Search
from autoweight.search.reward import reward, reward_scale
from autoweight.search.search import make_agent
from autoweight.search.smooth import interpolate
from autoweight.search.update import Learner
from autoweight.strategy.actor import Actor, bounds_of
from autoweight.workers import StageOutcome

from .conftest import make_blobs

AGENTS = ["actor-critic", "cmaes", "constant"]


def test_reward_by_hand():
    config = SearchConfig(reward_growth=2.0, reward_gain=0.5)
    assert reward_scale(config, 0.25) == pytest.approx(math.exp(0.5) * 0.5)
    outcome = StageOutcome(torch.zeros(2), torch.tensor([0.7, 0.6]), torch.tensor([0.5, 0.6]))
    assert_close(reward(config, outcome, 0.25), torch.tensor([0.2 * math.exp(0.5) * 0.5, 0.0]))
    plain = SearchConfig(reward="plain", reward_growth=0.0, reward_gain=1.0)
    assert_close(reward(plain, outcome, 0.25), outcome.accuracy)


def filled_buffer(rows=7, workers=3, capacity=0):
    buffer = Buffer(capacity)
    for row in range(rows):
        number = torch.arange(workers) + 10.0 * row  # tells every transition from every other
        state = number[:, None].expand(-1, 3)
        buffer.add(Transition(state, state[:, :2], number, state + 10, done=row == rows - 1))
    return buffer


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
def test_full_data_update_visits_every_transition_exactly_once_an_epoch(batch_size):
    buffer = filled_buffer()
    batches = list(buffer.epoch(batch_size, torch.Generator().manual_seed(0)))
    seen = torch.cat([batch.reward for batch in batches])
    assert sorted(seen.tolist()) == sorted(worker + 10.0 * row for row in range(7) for worker in range(3))
    assert len(batches) == math.ceil(7 / batch_size)
    for batch in batches:  # as many of every worker, so that the mean is the mean over workers
        assert len({(batch.reward % 10 == worker).sum().item() for worker in range(3)}) == 1


def test_buffer_shuffles_forgets_and_leaves_out_what_blew_up():
    buffer = filled_buffer(capacity=4)
    assert buffer.rows == 4
    generator = torch.Generator().manual_seed(0)
    orders = {tuple(torch.cat([b.reward for b in buffer.epoch(2, generator)]).tolist()) for _ in range(5)}
    assert len(orders) == 5
    broken = torch.tensor([1.0, float("nan"), 1.0])
    state = torch.zeros(3, 3)
    buffer.add(Transition(state, state[:, :2], broken, state, done=True))
    assert torch.cat([b.reward for b in buffer.epoch(2, generator)]).isfinite().all()
    assert buffer.sample(50, generator).reward.isfinite().all()


def test_the_rest_of_an_episode_by_hand():
    buffer = filled_buffer(rows=3, workers=1)
    buffer.close_episode(stages=2, discount=0.5)
    assert buffer.data.rest[0].isnan()
    assert buffer.data.rest[1:].flatten().tolist() == [10 + 0.5 * 20, 20]


def make_learner(**options):
    config = ActorCriticConfig(hidden=(8, 8, 8), embedding_size=4, **options)
    bounds = bounds_of(("loss",))
    torch.manual_seed(0)
    actor = Actor(4, bounds, config.hidden, config.embedding_size, config.bounded)
    critics = Critics(4, bounds, config.hidden, config.embedding_size, config.num_critics)
    return Learner(config, actor, critics)


def make_transitions(rest=float("nan"), done=0.0):
    state = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.8, 0.6]])
    following = torch.tensor([[1.0, 0.8, 0.6], [2.0, 0.7, 0.7]])
    params = torch.tensor([[-1.0, 0.5], [2.0, 0.0]])
    return TransitionBatch(
        state, params, torch.tensor([0.1, 0.2]), following, torch.tensor([0.0, done]), torch.full((2,), rest)
    )


def test_actor_and_critics_are_four_layer_networks():
    learner = make_learner(num_critics=2)
    assert sum(isinstance(layer, nn.Linear) for layer in learner.actor.layers) == 4
    assert len(learner.critics.weights) == 4
    assert learner.critics(*make_transitions()[:2]).shape == (2, 2)


def test_critic_targets_and_losses_by_hand():
    learner, batch = make_learner(target="bootstrap", discount=0.9, num_critics=2), make_transitions(done=1.0)
    with torch.no_grad():
        value = learner.lagged_critics(batch.next_state, learner.lagged_actor(batch.next_state)).min(dim=0).values
        expected = torch.stack([0.1 + 0.9 * value[0], torch.tensor(0.2)])
        assert_close(learner.targets(batch), expected)
        errors = learner.critics(batch.state, batch.strategy_params) - expected
        assert_close(learner.critic_loss(batch), (errors**2).mean(dim=1).sum())
        actor_value = learner.critics(batch.state, learner.actor(batch.state)).min(dim=0).values.mean()
        assert_close(learner.actor_loss(batch), -actor_value)


def test_critics_learn_the_return_once_it_is_known():
    learner = make_learner(target="return")
    assert learner.targets(make_transitions(rest=3.0)).tolist() == [3.0, 3.0]
    assert learner.targets(make_transitions()).isfinite().all()


def test_an_update_moves_critic_actor_and_lagged_copies():
    learner, buffer = make_learner(lag=0.1), Buffer()
    batch = make_transitions()
    buffer.add(Transition(batch.state, batch.strategy_params, batch.reward, batch.next_state, done=True))
    before = {name: [p.clone() for p in getattr(learner, name).parameters()] for name in ("actor", "critics")}
    learner.update(buffer, torch.Generator().manual_seed(0))
    for name, old in before.items():
        for start, now, lagged in zip(
            old, getattr(learner, name).parameters(), getattr(learner, f"lagged_{name}").parameters(), strict=True
        ):
            assert (now - start).abs().sum() >= (lagged - start).abs().sum()
        moved = zip(old, getattr(learner, f"lagged_{name}").parameters(), strict=True)
        assert any(not torch.equal(start, lagged) for start, lagged in moved)
        assert any(not torch.equal(a, b) for a, b in zip(old, getattr(learner, name).parameters(), strict=True))


def test_gradients_of_one_big_batch_are_the_workers_average():
    learner, batch = make_learner(target="return"), make_transitions(rest=1.0)
    params = list(learner.critics.parameters())
    whole = torch.autograd.grad(learner.critic_loss(batch), params)
    halves = [
        torch.autograd.grad(learner.critic_loss(TransitionBatch(*(x[n : n + 1] for x in batch))), params)
        for n in (0, 1)
    ]
    for both, first, second in zip(whole, *halves, strict=True):
        assert_close(both, (first + second) / 2)


def test_bounded_actors_stay_in_the_box():
    actor = Actor(4, bounds_of(("loss", "label")), (8, 8, 8), 4, bounded=True)
    params = actor(torch.tensor([[1.0, 1e6, -1e6]]))
    assert (params.abs() <= bounds_of(("loss", "label"))).all()


def test_interpolate_runs_linearly_through_the_knots():
    table = interpolate(torch.tensor([[[0.0], [4.0], [0.0]]]), num_stages=7, warmup_stages=2)
    assert table.flatten().tolist() == [0, 0, 0, 2, 4, 2, 0]
    assert interpolate(torch.tensor([[[3.0]]]), 3, 1).flatten().tolist() == [0, 3, 3]


class ToyWorkers:
    """A problem with a known best theta for every stage: accuracy falls with the squared distance from it."""

    run_beside_the_host = False

    def __init__(self, num_workers=16, num_stages=8, harmful=False):
        self.num_workers = num_workers
        self.problem = SimpleNamespace(training=TrainingConfig(num_stages=num_stages))
        self.best = torch.stack([torch.linspace(-9, 9, num_stages), torch.linspace(4, -4, num_stages)], dim=1)
        self.harmful = harmful
        self.network_steps = 0

    def begin(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def run_stage(self, stage, params, meanwhile):
        meanwhile()
        distance = ((params - self.best[stage]) / bounds_of(("loss",))).square().mean(dim=1)
        if self.harmful:
            distance = params.square().sum(dim=1)
        noise = 0.02 * torch.randn(self.num_workers, generator=self.generator)
        accuracy = 0.9 - 0.4 * distance + noise
        reference = torch.full_like(accuracy, 0.9 if self.harmful else 0.5)
        self.network_steps += self.num_workers
        return StageOutcome(torch.full_like(accuracy, 1.0 - stage / 10), accuracy, reference)


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
    found = Search(workers, make_agent(config, 8, seed=0), config).run()
    error = ((found.table - workers.best)[1:] / bounds_of(("loss",))).abs().mean()
    assert error < 0.15
    assert found.gain > 0.35
    assert found.table[0].tolist() == [0, 0]  # the warm-up


def test_a_stage_wise_strategy_beats_every_constant_on_the_toy():
    gains = {}
    for agent in ("cmaes", "constant"):
        config = toy_config(agent, reward_gain=1.0)
        gains[agent] = Search(ToyWorkers(), make_agent(config, 8, seed=0), config).run().gain
    assert gains["cmaes"] > gains["constant"] + 0.03


def test_without_stages_the_strategy_is_constant():
    for agent in AGENTS:
        config = toy_config(agent, stagewise=False)
        table = Search(ToyWorkers(), make_agent(config, 8, seed=0), config).run().table
        assert (table[1:] == table[1]).all()


@pytest.mark.parametrize("agent", AGENTS)
def test_where_weighting_does_harm_nothing_is_weighted(agent):
    config = toy_config(agent)
    found = Search(ToyWorkers(harmful=True), make_agent(config, 8, seed=0), config).run()
    assert found.table.abs().max() == 0 or found.gain > 0


def test_late_stages_that_no_episode_runs_keep_the_last_parameters():
    config = toy_config("cmaes", episode_share=0.6)
    table = Search(ToyWorkers(), make_agent(config, 8, seed=0), config).run().table
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


def tiny_search(agent, checkpoint=None, listen=lambda progress: None, preset="default", **options):
    config = PRESETS[preset](SearchConfig(agent=agent))
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
        lambda: nn.Linear(2, 3),
        make_blobs(48),
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
    checkpoint = CheckpointFile(tmp_path / "search")
    tiny_search("cmaes", checkpoint)
    with pytest.raises(aw.UserError, match="of another search"):
        tiny_search("cmaes", checkpoint, features=("loss",))
    with pytest.raises(aw.UserError, match="of another search"):
        tiny_search("constant", checkpoint)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("episode", "stage"), [(0, 1), (1, 3), (2, 0), (3, 2)])
def test_a_killed_search_goes_on_to_the_same_strategy(tmp_path, agent, episode, stage):
    whole = tiny_search(agent)
    checkpoint = CheckpointFile(tmp_path / "search")

    def kill(progress):
        if (progress.episode, progress.stage) == (episode, stage):
            raise KilledError

    with pytest.raises(KilledError):
        tiny_search(agent, checkpoint, kill)
    resumed = tiny_search(agent, checkpoint)
    assert torch.equal(resumed.table, whole.table)
    assert resumed.info["network_steps"] == whole.info["network_steps"]
    assert resumed.info["validation_gain"] == whole.info["validation_gain"]
    if whole.actor is not None:
        for one, two in zip(whole.actor.parameters(), resumed.actor.parameters(), strict=True):
            assert torch.equal(one, two)


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
    assert strategy.actor is not None
    assert strategy.live()


@pytest.mark.parametrize(("preset", "workers"), [("paper", 8), ("authors", 1)])
def test_presets_run(preset, workers):
    strategy = tiny_search("actor-critic", preset=preset, choice_rounds=0, num_workers=workers, num_starts=workers)
    assert strategy.num_stages == 4
    assert strategy.normalised == (preset == "authors")


def test_the_preset_for_rare_classes_searches_normalised_weights_around_a_low_bias():
    strategy = tiny_search("cmaes", preset="rare")
    assert strategy.normalised
    assert strategy.features == ("loss", "entropy", "label")
    tried = make_agent(aw.presets.rare(SearchConfig()), 20, seed=0)
    tried.begin_episode(0.0)
    assert tried.act(5, None)[:, -1].max() < -2


def test_the_only_worker_of_a_preset_explores():
    config = PRESETS["authors"](SearchConfig())
    agent = make_agent(config, 20, seed=0)
    agent.begin_episode(0.0)
    state = torch.tensor([[5.0, 1.0, 0.5]])
    tried = {tuple(agent.act(5, state).flatten().tolist()) for _ in range(20)}
    assert len(tried) > 1


def test_without_a_choice_the_newest_sound_guess_is_taken():
    archive = Archive()
    for episode, value in enumerate((0.1, 0.2, float("nan"))):
        archive.add(torch.full((2, 3, 1), float(episode)), torch.tensor([value, 0.5]))
    tables, (returns,) = archive.last_guess()
    assert tables.flatten().tolist() == [1, 1, 1]
    assert returns.tolist() == pytest.approx([0.2])


def test_all_knots_reach_the_stages_that_episodes_run():
    config = SearchConfig(num_workers=5, coarse_share=0)
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
    found = Search(workers, make_agent(config, 8, seed=0), config).run()
    assert found.dropped == config.num_episodes
    assert found.table.isfinite().all()


def test_a_search_in_which_everything_blows_up_says_so():
    workers, config = ToyWorkers(), toy_config("constant")
    run_stage = workers.run_stage
    nothing = torch.full((16,), float("nan"))
    workers.run_stage = lambda *stage, meanwhile: run_stage(*stage, meanwhile)._replace(loss=nothing)
    with pytest.raises(aw.RunError, match="blew up"):
        Search(workers, make_agent(config, 8, seed=0), config).run()


def test_search_and_training_must_fit():
    with pytest.raises(aw.UserError, match="warm-up"):
        tiny_search("cmaes", warmup_stages=4)
    with pytest.raises(aw.UserError, match="up to 1"):
        tiny_search("cmaes", episode_share=1.5)
    with pytest.raises(aw.UserError, match="at least 5 workers"):
        tiny_search("cmaes", num_workers=4)
    with pytest.raises(aw.UserError, match="did you mean 'entropy'"):
        tiny_search("cmaes", features=("entropi",))
    with pytest.raises(aw.UserError, match=r"start_bias goes from -5.0 to 5.0, but is -6.0"):
        tiny_search("cmaes", start_bias=-6.0, normalise=True)
    with pytest.raises(aw.UserError, match="start_bias is for normalised weights"):
        tiny_search("cmaes", start_bias=-4.0)


@pytest.mark.parametrize("coarse_share", [0.0, 0.5])
def test_evolution_begins_around_a_bias(coarse_share):
    config = SearchConfig(num_workers=9, start_bias=-4.0, sigma=0.01, coarse_share=coarse_share)
    agent = make_agent(config, 20, seed=0)
    agent.begin_episode(0.0)
    assert_close(agent.act(5, None)[0], torch.tensor([0.0, 0.0, -4.0]))
    assert_close(agent.act(5, None)[1:, 2], torch.full((8,), -4.0), atol=0.3, rtol=0)


def test_evolution_finds_a_constant_first_and_stages_part_from_there():
    config = SearchConfig(num_workers=9, num_episodes=4, coarse_share=0.5)
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
    search = Search(workers, make_agent(config, 8, seed=0), config)
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
