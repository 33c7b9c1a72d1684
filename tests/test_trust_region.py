"""The trust-region agent: its Gaussian process, its region, and what it finds."""

import io

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import SearchConfig, TrustRegionConfig
from autoweight.finding.agents import make_agent
from autoweight.finding.gaussian import GaussianProcess

BEST = torch.tensor([0.3, -0.2, 0.6])


def config(**options):
    defaults = {"num_workers": 11, "num_episodes": 6, "warmup_stages": 0, "start": {"loss": -1.0}}
    return SearchConfig(**{"agent": "trust-region", **defaults, **options})


def drawn(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)).double()


def value(points):
    """What tables `[n, knots, P]` come to, in units of their box: a quadratic."""
    return -((points - BEST).square() * torch.tensor([1.0, 0.5, 0.2])).sum(dim=-1).mean(dim=-1)


def run_episode(agent, generator, luck=0.05, explore=True):
    """An episode whose tries have luck of their own, and some that they share; what it tried."""
    agent.begin_episode(0.0, explore)
    tables = torch.stack([agent.act(stage, None) for stage in range(3)], dim=1)
    shares = tables.double() / agent.bounds
    shared, own = torch.randn(1, generator=generator), torch.randn(len(shares), generator=generator)
    agent.end_episode((value(shares) + luck * (shared + own)).float())
    return shares


def test_the_process_is_that_of_scikit_learn():
    points, others = 2 * drawn(30, 1, 3) - 1, 2 * drawn(7, 1, 3, seed=1) - 1
    values = value(points) + 0.05 * drawn(30, seed=2)
    process = GaussianProcess(points, values, torch.arange(30))
    signal, own, shared = process.settings[-3:].square().tolist()
    kernel = ConstantKernel(signal) * Matern(process.lengths[0].numpy(), nu=2.5)
    theirs = GaussianProcessRegressor(kernel, alpha=own + shared + 1e-6, optimizer=None)
    theirs.fit(points[:, 0].numpy(), process.values.numpy())
    mean, covariance = theirs.predict(others[:, 0].numpy(), return_cov=True)
    ours = process.posterior(others)
    assert_close(ours[0], torch.as_tensor(mean), rtol=0, atol=1e-8)
    assert_close(ours[1], torch.as_tensor(covariance), rtol=0, atol=1e-8)


def test_levels_and_differences_between_knots_have_lengths_of_their_own():
    points = 2 * drawn(80, 4, 1) - 1
    points = points - points.mean(dim=1, keepdim=True) + (2 * drawn(80, 1, 1, seed=1) - 1) / 2
    level, differences = GaussianProcess(points, points.mean(dim=(1, 2)), torch.arange(80)).lengths.flatten()
    assert differences > 2 * level  # the values follow the levels alone


def test_an_episode_that_was_lucky_as_a_whole_is_not_taken_for_better():
    points = 2 * drawn(40, 1, 3) - 1
    luck = torch.arange(40) // 20
    process = GaussianProcess(points, value(points) + 2.0 * luck, luck)
    blind = GaussianProcess(points, value(points) + 2.0 * luck, torch.arange(40))
    truth = value(points)
    agreement = [
        float(torch.corrcoef(torch.stack([one.posterior(points)[0], truth]))[0, 1]) for one in (process, blind)
    ]
    assert agreement[0] > 0.95
    assert agreement[1] < 0.9  # one that knows nothing of shared luck


def missed(agent, seed):
    """What the guess after six episodes lacks to the best."""
    agent = make_agent(config(agent=agent, stagewise=False), 4, seed)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(6):
        run_episode(agent, generator)
    return -float(value(run_episode(agent, generator, explore=False)[0]))


def test_among_luck_it_comes_nearer_to_the_best_than_random_proposals():
    ours, random = ([missed(agent, seed) for seed in range(5)] for agent in ("trust-region", "constant"))
    assert sum(ours) < sum(random) / 3
    assert sum(ours) / 5 < 0.02


def test_it_begins_where_it_is_told_and_finds_one_theta_first():
    agent = make_agent(config(start={"loss": -4.0, "bias": 2.0}), 8, seed=0)
    generator = torch.Generator().manual_seed(0)
    constant = []
    for _ in range(4):
        shares = run_episode(agent, generator)
        constant.append(torch.equal(shares, shares[:, :1].expand_as(shares)))
        if len(constant) == 1:
            assert_close(shares[0, 0], torch.tensor([-0.4, 0.0, 0.4]).double())
            assert (shares - shares[:1]).abs().max() <= 0.4 + 1e-6  # the region
    assert constant == [True, True, False, False]


def test_the_region_grows_where_it_was_left_for_better_and_shrinks_otherwise():
    agent = make_agent(config(trust_region=TrustRegionConfig(radius=0.2, growth=2.0, shrinkage=0.5)), 4, seed=0)
    for expected in (0.4, 0.8, 1.0):  # up to the whole box
        agent.begin_episode(0.0)
        agent.end_episode(agent.proposed[:, :, 1].mean(dim=1).float())  # ever further along one parameter
        assert agent.radius == expected
    agent = make_agent(config(trust_region=TrustRegionConfig(radius=0.2, growth=2.0, shrinkage=0.5)), 4, seed=0)
    for expected in (0.1, 0.05):
        agent.begin_episode(0.0)
        agent.end_episode(-(agent.proposed - agent.centre).square().mean(dim=(1, 2)).float())
        assert agent.radius == expected


def test_after_many_episodes_there_is_still_room_for_stages_to_part():
    agent, generator = make_agent(config(num_episodes=30), 4, seed=0), torch.Generator().manual_seed(0)
    best = torch.linspace(-0.5, 0.5, 3).double()  # of the loss's theta, stage by stage

    def returns():
        tables = torch.stack([agent.act(stage, None) for stage in range(3)], dim=1).double() / agent.bounds
        return -(tables[..., 0] - best).square().mean(dim=1)

    for _ in range(30):
        agent.begin_episode(0.0)
        agent.end_episode((returns() + 0.05 * torch.randn(11, generator=generator)).float())
    agent.begin_episode(0.0, explore=False)
    assert -returns()[0] < 0.02  # one theta for all is 0.17 off


def test_a_state_that_was_saved_goes_on_to_the_same_proposals():
    agent, generator = make_agent(config(num_starts=11), 4, seed=3), torch.Generator().manual_seed(1)
    other = make_agent(config(num_starts=11), 4, seed=8)
    for episode in range(4):
        run_episode(agent, generator)
        file = io.BytesIO()
        torch.save(agent.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
        random = generator.get_state()
        ours = run_episode(agent, generator), agent.radius
        generator.set_state(random)
        theirs = run_episode(other, generator), other.radius
        assert torch.equal(ours[0], theirs[0]), episode
        assert ours[1] == theirs[1]


def test_trainings_that_blew_up_are_the_worst_and_an_episode_of_them_tells_nothing():
    agent = make_agent(config(trust_region=TrustRegionConfig(newest=15)), 4, seed=0)
    agent.begin_episode(0.0)
    agent.end_episode(torch.full((11,), float("nan")))
    assert (len(agent.returns), agent.episode) == (0, 1)
    agent.begin_episode(0.0)
    agent.end_episode(torch.tensor([9.0, float("nan"), 2.0, *[3.0] * 8]))
    assert agent.returns.tolist() == [9, 2, 2, *[3] * 8]
    run_episode(agent, torch.Generator().manual_seed(0))
    assert len(agent.points) == len(agent.luck) == 15  # the newest alone


def test_returns_that_are_all_alike_and_more_workers_than_candidates_are_no_trouble():
    agent = make_agent(config(trust_region=TrustRegionConfig(candidates=1)), 4, seed=0)
    for _ in range(3):
        agent.begin_episode(0.0)
        assert agent.tables.shape == (11, 3, 3)
        agent.end_episode(torch.zeros(11))
    assert agent.tables.isfinite().all()


def test_one_worker_is_too_few():
    with pytest.raises(aw.UserError, match="trust-region agent needs at least 2 workers"):
        make_agent(config(num_workers=1, choice_rounds=0), 4, seed=0)
