import json
import pickle

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy import Rule, files
from autoweight.strategy.regime import Regime
from autoweight.strategy.rule import weigh

from .conftest import batch_features

TABLE = torch.tensor([[0.0, 0.0, 0.0], [-2.0, 1.0, -0.5], [-4.0, 0.0, 0.5], [1.0, 1.0, 1.0]])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=generator)
    labels = torch.arange(8) % 3
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none"), logits, labels


def test_weights_come_from_the_row_of_the_stage(batch):
    strategy = aw.Strategy(TABLE, warmup_stages=1)
    features = batch_features(*batch, ("loss", "entropy"))
    for stage in (1, 2, 3):
        weights = strategy.weigh(*batch, progress=stage / 4 + 0.1)
        assert torch.equal(weights, weigh(features, TABLE[stage]))


def test_warm_up_weighs_everything_by_exactly_1(batch):
    strategy = aw.Strategy(TABLE + 1, warmup_stages=2)
    assert (strategy.weigh(*batch, progress=0.49) == 1).all()
    assert (strategy.weigh(*batch, progress=0.5) != 1).any()


@pytest.mark.parametrize("normalised", [False, True])
def test_save_and_load_give_the_same_weights(tmp_path, batch, normalised):
    info = {"agent": "test", "seconds": 1.5}
    strategy = aw.Strategy(TABLE, Rule(normalised=normalised), warmup_stages=1, info=info)
    strategy.save(tmp_path / "strategy.safetensors")
    loaded = aw.load(tmp_path / "strategy.safetensors")
    assert loaded.info == strategy.info
    assert (loaded.rule, loaded.warmup_stages, loaded.num_stages) == (strategy.rule, 1, 4)
    for progress in (0.0, 0.3, 0.6, 0.99):
        assert torch.equal(loaded.weigh(*batch, progress=progress), strategy.weigh(*batch, progress=progress))
    assert list(tmp_path.iterdir()) == [tmp_path / "strategy.safetensors"]
    assert aw.load(tmp_path).info == info  # a run's folder will do
    assert type(aw.Constant.load(tmp_path)) is aw.Strategy


def test_label_feature_needs_class_counts(tmp_path, batch):
    strategy = aw.Strategy(torch.tensor([[-2.0, 0.0]]), Rule(("label",)))
    with pytest.raises(aw.UserError, match="class counts"):
        strategy.weigh(*batch, progress=0.5)
    strategy.save(tmp_path / "s")
    weights = aw.load(tmp_path / "s", class_counts=torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5)
    rare, frequent = weights[batch[2] == 2], weights[batch[2] == 0]
    assert rare.min() > frequent.max()
    assert torch.equal(strategy.with_class_counts(torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5), weights)


def test_normalised_weights_stay_so_in_copies(batch):
    strategy = aw.Strategy(torch.tensor([[-2.0, -1.0]]), Rule(("label",), normalised=True))
    weights = strategy.with_class_counts(torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5)
    assert float(weights.mean()) == pytest.approx(1)
    assert "normalised" in repr(strategy)


@pytest.mark.parametrize("classes", [2, 7, 100])
def test_a_strategy_moves_to_any_number_of_classes_and_batch_size(classes):
    logits = torch.randn(3 * classes, classes, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(3 * classes) % classes
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    table = torch.tensor([[-2.0, 1.0, 0.5, 1.0, -0.5]])
    rule = Rule(("loss", "entropy", "density", "label"))
    strategy = aw.Strategy(table, rule, class_counts=torch.arange(1, classes + 1))
    weights = strategy.weigh(losses, logits, labels, progress=0.5)
    assert weights.isfinite().all()
    assert weights.std() > 0.1


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        (torch.zeros(4, 2), {}, "columns"),
        (torch.full((4, 3), float("nan")), {}, "finite"),
        (TABLE, {"warmup_stages": 5}, "warmup_stages"),
        (TABLE, {"class_counts": [[3, 4]]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [3.0, float("nan")]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [3, -1]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [0, 0]}, "how many training samples each class has"),
    ],
)
def test_wrong_strategies_are_refused(table, options, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        aw.Strategy(table, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"features": ("loss", "entropi")}, "did you mean 'entropy'"),
        ({"features": ()}, "choose at least one feature"),
        ({"label_feature": "rw"}, "did you mean 'raw'"),
        ({"margin_scale": "bach"}, "did you mean 'batch'"),
        ({"history_scale": "sett"}, "did you mean 'set'"),
        ({"memory_rate": 1.0}, "between 0 and 1, but is 1.0"),
    ],
)
def test_wrong_rules_are_refused(options, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        Rule(**options)


def saved(tmp_path):
    path = tmp_path / "strategy.safetensors"
    aw.Strategy(TABLE).save(path)
    return path


@pytest.mark.parametrize("keep", [0, 1, 7, 40, -1])
def test_truncated_file(tmp_path, keep):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(aw.UserError, match="truncated or not a strategy"):
        aw.load(path)


@pytest.mark.parametrize("write", [lambda f: pickle.dump({"table": [1]}, f), lambda f: torch.save({"t": TABLE}, f)])
def test_pickle_is_never_loaded(tmp_path, write):
    path = tmp_path / "strategy.safetensors"
    with path.open("wb") as file:
        write(file)
    with pytest.raises(aw.UserError, match="pickle"):
        aw.load(path)


def test_a_header_of_any_length_is_no_pickle(tmp_path):
    path, starts = tmp_path / "strategy.safetensors", set()
    for length in range(300):
        aw.Strategy(TABLE, info={"recipe": "x" * length}).save(path)
        starts.add(path.read_bytes()[0])
        assert aw.load(path).info["recipe"] == "x" * length
    assert 0x80 in starts  # as a pickle begins


def test_a_file_that_cannot_be_reached_gets_its_sentence(tmp_path):
    with pytest.raises(aw.UserError, match=r"cannot read the strategy file .*x+: File name too long"):
        aw.load(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["x" * 300, "autp", ""])
def test_a_name_that_is_not_shipped_gets_one_sentence(name):
    with pytest.raises(aw.UserError, match=f"unknown strategy '{name}'.*auto"):
        aw.load(name)


def test_other_safetensors_and_versions_are_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(safetensors.torch.save({"table": TABLE}))
    with pytest.raises(aw.UserError, match="not an autoweight strategy"):
        aw.load(path)
    metadata = {"format": files.FORMAT, "version": "99", "header": "{}"}
    path.write_bytes(safetensors.torch.save({"table": TABLE}, metadata))
    with pytest.raises(aw.UserError, match="version 99"):
        aw.load(path)
    with pytest.raises(aw.UserError, match="no strategy file"):
        aw.load(tmp_path / "missing")


HEADER = {
    "features": ["loss", "entropy"],
    "warmup_stages": 1,
    "label_feature": "log_frequency",
    "normalised": False,
    "info": {},
}


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("{", "damaged header: copy"),
        ("[" * 100_000, "damaged header: copy"),
        ("[]", "damaged header, list instead of names and values: copy"),
        (json.dumps({"features": []}), "its header lacks warmup_stages, label_feature, normalised, info; copy or"),
        *(
            (json.dumps(HEADER | wrong), "not a valid strategy file")
            for wrong in (
                {"normalised": "false"},
                {"warmup_stages": "1"},
                {"features": "loss"},
                {"info": "none"},
                {"margin_scale": 3},
                {"memory_rate": "x"},
                {"memory_rate": 2.0},
            )
        ),
    ],
)
def test_damaged_headers_are_refused(tmp_path, header, sentence):
    path = tmp_path / "x"
    metadata = {"format": files.FORMAT, "version": "1", "header": header}
    path.write_bytes(safetensors.torch.save({"table": TABLE}, metadata))
    with pytest.raises(aw.UserError, match=sentence):
        aw.load(path)


@pytest.mark.parametrize(("tensors", "sentence"), [({"table": 1e300 * TABLE.double()}, "finite"), ({}, "the table")])
def test_parameters_that_are_not_finite_or_lack_are_refused(tmp_path, tensors, sentence):
    files.write(tmp_path / "x", tensors, HEADER)
    with pytest.raises(aw.UserError, match=sentence):
        aw.load(tmp_path / "x")


def test_files_with_an_actor_still_load_as_tables(tmp_path, batch):
    actor = {"num_stages": 4, "hidden": [8], "embedding_size": 4, "bounded": True}
    tensors = {"table": TABLE, "actor.bounds": torch.ones(3), "actor.layers.0.weight": torch.ones(8, 6)}
    metadata = {
        "format": files.FORMAT,
        "version": "1",
        "header": json.dumps(HEADER | {"actor": actor, "actor_stages": 2}),
    }
    (tmp_path / "x").write_bytes(safetensors.torch.save(tensors, metadata))
    loaded = aw.load(tmp_path / "x")
    expected = aw.Strategy(TABLE, warmup_stages=1)
    assert torch.equal(loaded.weigh(*batch, progress=0.6), expected.weigh(*batch, progress=0.6))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_gets_0_and_the_others_what_they_had_without_it(batch, normalised, bad):
    losses, logits, labels = (part.clone() for part in batch)
    losses[3], logits[3] = bad, float("nan")
    strategy = aw.Strategy(TABLE, Rule(normalised=normalised))
    weights = strategy.weigh(losses, logits, labels, progress=0.3)
    kept = torch.arange(8) != 3
    assert weights[3] == 0
    assert_close(weights[kept], strategy.weigh(losses[kept], logits[kept], labels[kept], progress=0.3))


@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_too_small_to_compare_in_is_said_once(batch, count):
    strategy = aw.Strategy(TABLE)
    small = [part[:count] for part in batch]
    with pytest.warns(UserWarning, match=f"in one of {count} there is little to compare: drop such a batch") as said:
        strategy.weigh(*small, progress=0.3)
    assert len(said) == 1
    strategy.weigh(*small, progress=0.6)  # not a word more of that
    own_scale = aw.Strategy(torch.zeros(1, 3), Rule(("margin",)))
    own_scale.weigh(*small, progress=0.3, indices=torch.arange(count))  # compares with nobody


FOUND_IN = {"epochs": 60, "steps": 900, "batch_size": 64, "optimizer": "sgd", "weight_decay": 0.0, "schedule": "stages"}


def test_a_strategy_records_the_training_that_it_was_found_in(tmp_path):
    aw.Strategy(TABLE, info={"found_in": FOUND_IN}).save(tmp_path / "s")
    assert aw.load(tmp_path / "s").regime == Regime(**FOUND_IN)
    assert aw.Strategy(TABLE).regime is None


@pytest.mark.parametrize(
    ("use", "differences"),
    [
        ({}, []),
        ({"epochs": 200, "steps": 3000, "batch_size": 128, "weight_decay": 2e-5}, []),
        ({"epochs": 600}, ["epochs 60, here 600"]),
        ({"epochs": None, "steps": 100}, ["steps 900, here 100"]),
        ({"weight_decay": 5e-4}, ["weight_decay 0.0, here 0.0005"]),
        ({"optimizer": "adam", "schedule": "cosine"}, ["optimizer sgd, here adam", "schedule stages, here cosine"]),
    ],
)
def test_what_is_far_from_it_is_named(use, differences):
    assert Regime(**FOUND_IN).differences(Regime(**FOUND_IN | use)) == differences


def loop_of(steps, batch):
    """A user's loop, which only tells its progress and its batches."""
    strategy = aw.Strategy(TABLE, info={"found_in": FOUND_IN})
    large = [part.repeat(8, *[1] * (part.dim() - 1)) for part in batch]
    for step in range(20):
        strategy.weigh(*large, progress=step / steps)
    strategy.weigh(*batch, progress=20 / steps)  # the last of an epoch is a short one
    return strategy


def test_a_loop_that_is_far_from_it_hears_so_once(batch):
    with pytest.warns(UserWarning, match=r"another training \(with steps 900, here 20\) and may do harm") as said:
        loop_of(20, batch)
    assert len(said) == 1
    loop_of(1000, batch)  # near: not a word
