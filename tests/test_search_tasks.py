"""A search over several tasks: gains that compare between them, and all that a search of one task can do."""

import json
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import autoweight as aw
from autoweight.config import SearchConfig, TrainingConfig
from autoweight.data.corruptions import uniform_noise
from autoweight.data.mixing import mix
from autoweight.strategy import Rule
from autoweight.workers import Problem, SequentialWorkers, SeveralWorkers, make_crew
from autoweight.workers.several import OracleRule, comparable_gain, oracle_of

from .conftest import make_blobs
from .typed import autoweight

TRAINING = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,))
CONFIG = SearchConfig(
    features=("loss",), num_episodes=2, num_workers=6, num_starts=2, choice_rounds=1, warmup_stages=1, episode_share=1.0
)


def task(num_classes=3, noise=0.0, seed=0, **changes):
    clean = make_blobs(48, num_classes, seed)
    train = uniform_noise(clean, noise, seed)
    val = make_blobs(60, num_classes, seed + 9)
    own = {"make_model": lambda: nn.Linear(2, num_classes), "train_data": train, "val_data": val}
    return aw.SearchTask(**own | changes)


def search(tasks, config=CONFIG, **options):
    return aw.search(tasks, config=config, **{"training": TRAINING, "seed": 3} | options)


@pytest.mark.parametrize(
    ("gain", "gap", "worth"),
    [
        (0.1, 0.2, 0.5),  # the share of the gap
        (-0.1, 0.2, -0.5),
        (0.03, 0.03, 0.6),  # a gap too small to divide by
        (0.01, 0.0, 0.2),  # nothing to win
        (-0.01, 0.0, -0.4),  # and a loss there
        (-0.01, -0.3, -0.4),
        (-0.9, 0.0, -4.0),  # a collapse
    ],
)
def test_what_a_gain_is_worth(gain, gap, worth):
    assert_close(comparable_gain(torch.tensor(gain), torch.tensor(gap)), torch.tensor(worth))


def problem_of(train, rule=None):
    rule = rule or Rule(("loss",))
    return Problem(lambda: nn.Linear(2, 3), train, make_blobs(60, seed=9), TRAINING, rule)


def test_an_oracle_leaves_wrong_labels_out_and_is_its_references_twin():
    noisy = problem_of(uniform_noise(make_blobs(48), 0.5, seed=1))
    rule = oracle_of(noisy).rule
    assert torch.equal(rule.clean.bool(), noisy.train.clean)
    assert 0.4 < rule.clean.mean() < 0.9
    assert oracle_of(problem_of(make_blobs(48))) is None
    # One that is told that all labels are right trains as the reference does, to the bit.
    told = replace(noisy, rule=OracleRule(("loss",), clean=torch.ones(48)))
    scores = []
    for problem in (noisy, told, oracle_of(noisy)):
        workers = SequentialWorkers(problem, 2, 2)
        workers.begin(seed=4)
        scores.append(workers.run_stage(0, torch.zeros(2, problem.num_params)))
    assert torch.equal(scores[0].loss, scores[1].loss)
    assert not torch.equal(scores[0].loss, scores[2].loss)


def test_several_tasks_answer_with_the_mean_of_what_each_came_to():
    problems = problem_of(uniform_noise(make_blobs(48), 0.5, seed=1)), problem_of(make_blobs(48, seed=2))
    crew = make_crew(problems, 4, 2)
    assert isinstance(crew, SeveralWorkers)
    params = torch.tensor([[-4.0, -1.0], [-8.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    crew.begin(seed=5)
    outcome = crew.run_stage(0, params)

    apart = []
    for place, problem in enumerate((*problems, oracle_of(problems[0]))):
        count = 4 if place < 2 else 2
        workers = SequentialWorkers(problem, count, 2)
        workers.begin(mix(5, place % 2))
        apart.append(workers.run_stage(0, params if place < 2 else torch.zeros(2, 2)))
    noisy, clean, oracle = apart
    gap = oracle.score[torch.tensor([0, 1, 0, 1])] - noisy.reference_score
    gains = comparable_gain(noisy.score - noisy.reference_score, gap)
    gains += comparable_gain(clean.score - clean.reference_score, torch.zeros(4))
    assert_close(outcome.score - outcome.reference_score, gains / 2)
    assert_close(outcome.loss, (noisy.loss + clean.loss) / 2)
    assert_close(outcome.reference_score, (noisy.reference_score + clean.reference_score) / 2)
    assert crew.network_steps == 3 * (6 + 6 + 2)


def test_a_search_over_tasks_finds_one_strategy_for_all_of_them():
    # Different numbers of classes, with features that know classes and samples.
    config = replace(CONFIG, features=("label", "margin"), within_class=True)
    other = replace(TRAINING, epochs=6, batch_size=12)
    strategy = search([task(noise=0.4), task(4, training=other)], config)
    assert strategy.rule == Rule.of(config)
    assert strategy.info["num_tasks"] == 2
    assert strategy.regime.epochs is None
    assert strategy.regime.optimizer == "sgd"
    batch = torch.ones(4), torch.zeros(4, 4), torch.arange(4)
    with pytest.raises(aw.UserError, match="class counts"):  # those of no task are everybody's
        strategy.weigh(*batch, progress=0.5, indices=torch.arange(4))
    told = strategy.with_class_counts(torch.tensor([9, 5, 3, 1]))
    assert told.weigh(*batch, progress=0.5, indices=torch.arange(4)).shape == (4,)


def test_one_task_in_a_list_is_the_search_of_that_task():
    alone = task(noise=0.4)
    listed = search([alone])
    parts = aw.search(*alone[:3], CONFIG, training=TRAINING, seed=3)
    assert torch.equal(listed.table, parts.table)
    assert listed.info["validation_gain"] == parts.info["validation_gain"]


class KilledError(Exception):
    pass


@pytest.mark.parametrize("agent", ["actor-critic", "cmaes", "trust-region"])
def test_a_killed_search_over_tasks_goes_on_to_the_same_strategy(tmp_path, agent):
    config = replace(CONFIG, agent=agent)
    tasks = [task(noise=0.4), task(4, seed=1)]
    whole = search(tasks, config)

    def kill(progress):
        if (progress.episode, progress.stage) == (1, 2):
            raise KilledError

    with pytest.raises(KilledError):
        search(tasks, config, checkpoint=tmp_path / "search", listen=kill)
    other = [tasks[0], task(4, seed=2)]
    with pytest.raises(aw.UserError, match="of another search"):
        search(other, config, checkpoint=tmp_path / "search")
    resumed = search(tasks, config, checkpoint=tmp_path / "search")
    assert torch.equal(resumed.table, whole.table)
    assert resumed.info["network_steps"] == whole.info["network_steps"]


def test_true_labels_make_an_oracle_and_a_task_without_headroom_is_named_once():
    clean = make_blobs(48)
    flipped = clean.labels.clone()
    flipped[0] = 1  # one wrong label, which nobody memorises in four epochs
    noisy = task(train_data=(clean.inputs, flipped), true_labels=clean.labels.numpy())
    with pytest.warns(UserWarning, match="task 2 leaves nothing to win") as caught:
        search([task(noise=0.0), noisy])
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="the task leaves nothing to win: .* better. Train it longer.$") as caught:
        alone = search([noisy])
    assert len(caught) == 1
    with warnings.catch_warnings():  # without known mistakes, a task is there to guard against harm
        warnings.simplefilter("error")
        search([task(), task(4)])
        untold = search([noisy._replace(true_labels=None)])
    assert torch.equal(alone.table, untold.table)
    assert alone.info["network_steps"] == untold.info["network_steps"] + 2 * 2 * 12  # two starts, 12 steps each


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search([]), "the list of tasks is empty"),
        (lambda: search([task(), make_blobs()]), "holds aw.SearchTask alone, but also Samples"),
        (lambda: aw.search([task()], CONFIG), r"pass settings by name, aw\.search\(tasks, config=config\)"),
        (
            lambda: search([task(), task(4)], replace(CONFIG, features=("label",), label_feature="raw")),
            "need one number of classes, but have 3 and 4: the raw label means nothing then, so choose log_frequency",
        ),
        (
            lambda: search(
                [
                    task(),
                    task(
                        make_model=lambda: nn.Linear(2, 1),
                        train_data=(torch.randn(48, 2), torch.randn(48)),
                        val_data=(torch.randn(60, 2), torch.randn(60)),
                        training=replace(TRAINING, task="regression"),
                    ),
                ]
            ),
            "need one kind of task, but have classification and regression: search those of each kind apart",
        ),
        (
            lambda: search([task(), task(training=replace(TRAINING, num_stages=5))]),
            "need one num_stages, but have 4 and 5",
        ),
        (lambda: search([task(), task(4)], replace(CONFIG, reward="plain")), "plain search.reward cannot be compared"),
        (lambda: search([task(true_labels=[0, 1]), task()]), r"one a training label, \(48,\), but their shape is \(2,"),
        (lambda: search([task(true_labels="abc")]), "true_labels are numbers, .* but these are no numbers: str"),
        (lambda: search([task(true_labels=[7] * 48)]), "true_labels cannot be used: label 7 is out of range: with 3"),
        (lambda: search([task(true_labels=[torch.nan] * 48)]), "true_labels cannot be used: labels must be whole numb"),
        (lambda: search([task(val_data=None)]), "val_data is missing: pass tensors .* to choose strategies by"),
    ],
)
def test_mistakes_get_one_sentence(call, message):
    with pytest.raises(aw.UserError, match=message):
        call()


def test_a_recipe_with_several_tasks_from_the_command_line(tmp_path):
    words = ["search", "digits-many", "--out", "run", "--search.proxy-epochs", "3", "--search.num-episodes", "1"]
    words += ["--search.num-workers", "5", "--search.choice-rounds", "1", "--search.episode-share", "0.2"]

    shown = autoweight(*words, cwd=tmp_path).stdout
    assert "Over 5 tasks" in shown
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["search"]["network_steps"] > 0
    assert (tmp_path / "run" / "config.yaml").read_text().count("noise_rate") == 5
    assert autoweight("search", "--out", "run", "--resume", cwd=tmp_path).stdout == shown
