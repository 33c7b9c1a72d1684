"""The actor-critic agent's parts: buffer and full-data updates, critics and their targets, actor."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from autoweight.config import ActorCriticConfig, SearchConfig
from autoweight.finding.actor import Actor
from autoweight.finding.agents.actor_critic import ActorCritic
from autoweight.finding.agents.agent import Transition
from autoweight.finding.buffer import Buffer, TransitionBatch
from autoweight.finding.critic import Critics
from autoweight.finding.update import Learner
from autoweight.strategy import Rule


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
    following = torch.tensor([[0.0, float("nan"), 0.0], [0.0] * 3, [0.0] * 3])
    buffer.add(Transition(state, state[:, :2], torch.ones(3), following, done=True))
    assert torch.cat([b.next_state for b in buffer.epoch(2, generator)]).isfinite().all()


def test_the_rest_of_an_episode_by_hand():
    buffer = filled_buffer(rows=3, workers=1)
    buffer.close_episode(stages=2, discount=0.5)
    assert buffer.data.rest[0].isnan()
    assert buffer.data.rest[1:].flatten().tolist() == [10 + 0.5 * 20, 20]


def make_learner(**options):
    config = ActorCriticConfig(hidden=(8, 8, 8), embedding_size=4, **options)
    bounds = Rule(("loss",)).bounds
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
    learner = make_learner(target="bootstrap", discount=0.9, num_critics=2, action_penalty=0.5)
    batch = make_transitions(done=1.0)
    with torch.no_grad():
        value = learner.lagged_critics(batch.next_state, learner.lagged_actor(batch.next_state)).min(dim=0).values
        expected = torch.stack([0.1 + 0.9 * value[0], torch.tensor(0.2)])
        assert_close(learner.targets(batch), expected)
        errors = learner.critics(batch.state, batch.strategy_params) - expected
        assert_close(learner.critic_loss(batch), (errors**2).mean(dim=1).sum())
        params = learner.actor(batch.state)
        actor_value = learner.critics(batch.state, params).min(dim=0).values.mean()
        assert_close(learner.actor_loss(batch), -actor_value + 0.5 * (params**2).sum(dim=1).sqrt().mean())


def test_critics_learn_the_return_once_it_is_known():
    learner = make_learner(target="return")
    assert learner.targets(make_transitions(rest=3.0)).tolist() == [3.0, 3.0]
    assert learner.targets(make_transitions()).isfinite().all()


def buffer_of(rows):
    buffer, batch = Buffer(), make_transitions()
    for _ in range(rows):
        buffer.add(Transition(batch.state, batch.strategy_params, batch.reward, batch.next_state, done=True))
    return buffer


def test_an_update_moves_critic_and_actor_and_lagged_copies_follow_by_their_share():
    learner = make_learner(lag=0.1, update_epochs=1)
    before = {name: [p.clone() for p in getattr(learner, name).parameters()] for name in ("actor", "critics")}
    learner.update(buffer_of(rows=1), torch.Generator().manual_seed(0))
    for name, old in before.items():
        now = [parameter.detach() for parameter in getattr(learner, name).parameters()]
        assert any(not torch.equal(a, b) for a, b in zip(old, now, strict=True))
        for start, end, lagged in zip(old, now, getattr(learner, f"lagged_{name}").parameters(), strict=True):
            assert_close(lagged.detach(), 0.9 * start + 0.1 * end)


@pytest.mark.parametrize(("update", "steps"), [("full", 3 * 4), ("sampled", 1)])
def test_an_update_takes_the_whole_buffer_every_epoch_or_one_sample(update, steps):
    learner = make_learner(update=update, update_epochs=3, update_batch_size=2)
    learner.update(buffer_of(rows=7), torch.Generator().manual_seed(0))
    for optimizer in (learner.actor_optimizer, learner.critic_optimizer):
        assert {int(state["step"]) for state in optimizer.state.values()} == {steps}


def test_gradients_are_clipped_on_request():
    norms = {}
    for clip in (0.0, 1e-3):
        learner = make_learner(gradient_clip=clip)
        learner.update(buffer_of(rows=1), torch.Generator().manual_seed(0))
        norms[clip] = [
            torch.cat([parameter.grad.flatten() for parameter in module.parameters()]).norm()
            for module in (learner.actor, learner.critics)
        ]
    assert min(norms[0.0]) > 1e-3
    assert_close(torch.stack(norms[1e-3]), torch.full((2,), 1e-3), rtol=1e-2, atol=0)


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


def make_agent(exploration="episode", num_workers=1000):
    own = ActorCriticConfig(exploration=exploration)
    config = SearchConfig(features=("loss",), num_workers=num_workers, actor_critic=own)
    return ActorCritic(config, Rule(("loss",)), 4, seed=0)


def test_exploration_narrows_along_the_search_and_stays_in_the_box():
    agent, at_the_edge = make_agent(), []
    for progress in (0.0, 1.0):
        agent.begin_episode(progress)
        tried = agent.act(3, torch.zeros(1000, 3)).abs()
        assert (tried <= agent.bounds).all()
        at_the_edge.append(int((tried == agent.bounds).sum()))
    assert at_the_edge[0] > 50 > at_the_edge[1]  # two deviations away, and four


def test_the_authors_exploration_leaves_seven_of_ten_workers_alone():
    agent = make_agent("ornstein_uhlenbeck")
    agent.begin_episode(0.0)
    params = agent.learner.actor(torch.zeros(1000, 3))
    moved = (agent.act(3, torch.zeros(1000, 3)) != params).any(dim=1)
    assert not moved[0]  # the best guess
    assert 0.25 < moved.float().mean() < 0.35


def test_bounded_actors_stay_in_the_box():
    actor = Actor(4, Rule(("loss", "label")).bounds, (8, 8, 8), 4, bounded=True)
    params = actor(torch.tensor([[1.0, 1e6, -1e6]]))
    assert (params.abs() <= Rule(("loss", "label")).bounds).all()


@pytest.mark.parametrize("bounded", [True, False])
def test_an_actor_answers_about_its_place_to_begin_first(bounded):
    agent = ActorCriticConfig(bounded=bounded)
    config = SearchConfig(features=("margin",), start={"margin": 4.0, "bias": -5.0}, actor_critic=agent, num_workers=3)
    learner = ActorCritic(config, Rule.of(config), 20, seed=0).learner
    states = torch.tensor([[0.0, 2.3, 0.1], [7.0, 1.0, 0.8], [19.0, 0.1, 0.95]])
    answers = learner.actor(states)
    # To within a share of the box: the bias begins at a wall, a little inside of which there is slope to leave by.
    assert_close(answers / Rule.of(config).bounds, torch.tensor([[0.4, -1.0, 0.0]]).expand(3, -1), atol=0.06, rtol=0)
    answers[:, 1].sum().backward()
    assert learner.actor.layers[-1].bias.grad[1].abs() > 0.01
