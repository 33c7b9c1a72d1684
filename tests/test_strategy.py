import json
import pickle

import pytest
import safetensors.torch
import torch
from autoweight.strategy.actor import Actor, bounds_of
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy import files
from autoweight.strategy.features import batch_features
from autoweight.strategy.rule import weigh

TABLE = torch.tensor([[0.0, 0.0, 0.0], [-2.0, 1.0, -0.5], [-4.0, 0.0, 0.5], [1.0, 1.0, 1.0]])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=generator)
    labels = torch.arange(8) % 3
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none"), logits, labels


def make_actor(num_stages=4, params=3):
    return Actor(num_stages, bounds_of(("loss", "entropy"))[:params], hidden=(8, 8, 8), embedding_size=4, bounded=True)


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
    strategy = aw.Strategy(TABLE, warmup_stages=1, normalised=normalised, actor=make_actor(), actor_stages=2, info=info)
    strategy.save(tmp_path / "strategy.safetensors")
    loaded = aw.load(tmp_path / "strategy.safetensors")
    assert loaded.info == strategy.info
    assert (loaded.features, loaded.warmup_stages, loaded.num_stages) == (("loss", "entropy"), 1, 4)
    for progress in (0.0, 0.3, 0.6, 0.99):
        assert torch.equal(loaded.weigh(*batch, progress=progress), strategy.weigh(*batch, progress=progress))
    state = torch.tensor([2.0, 0.5, 0.7])
    assert torch.equal(loaded.actor(state), strategy.actor(state))
    assert loaded.actor_stages == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "strategy.safetensors"]
    assert aw.load(tmp_path).info == info  # a run's folder will do
    assert type(aw.Constant.load(tmp_path)) is aw.Strategy


def test_label_feature_needs_class_counts(tmp_path, batch):
    strategy = aw.Strategy(torch.tensor([[-2.0, 0.0]]), features=("label",))
    with pytest.raises(aw.UserError, match="class counts"):
        strategy.weigh(*batch, progress=0.5)
    strategy.save(tmp_path / "s")
    weights = aw.load(tmp_path / "s", class_counts=torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5)
    rare, frequent = weights[batch[2] == 2], weights[batch[2] == 0]
    assert rare.min() > frequent.max()
    assert torch.equal(strategy.with_class_counts(torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5), weights)


def test_normalised_weights_stay_so_in_copies(batch):
    strategy = aw.Strategy(torch.tensor([[-2.0, -1.0]]), features=("label",), normalised=True)
    weights = strategy.with_class_counts(torch.tensor([100, 10, 1])).weigh(*batch, progress=0.5)
    assert float(weights.mean()) == pytest.approx(1)
    assert "normalised" in repr(strategy)


def test_live_strategy_asks_the_actor_at_every_stage(batch):
    actor = make_actor()
    live = aw.Strategy(TABLE, warmup_stages=1, actor=actor).live()
    losses = batch[0]
    live.weigh(*batch, progress=0.0)
    live.observe_accuracy(0.5)
    weights = live.weigh(*batch, progress=0.25)
    params = actor(torch.tensor([1.0, losses.mean(), 0.5])).detach()
    assert_close(weights, weigh(batch_features(*batch, ("loss", "entropy")), params))
    fresh = aw.Strategy(TABLE, warmup_stages=1, actor=actor).live()
    fresh.load_state_dict(live.state_dict())
    assert torch.equal(fresh.weigh(*batch, progress=0.3), live.weigh(*batch, progress=0.3))
    assert torch.equal(fresh.weigh(*batch, progress=0.8), live.weigh(*batch, progress=0.8))


def test_a_live_actor_answers_late_stages_as_the_last_that_it_learned(batch):
    actor = make_actor()
    live = aw.Strategy(TABLE, actor=actor, actor_stages=2).live()
    live.weigh(*batch, progress=0.0)
    live.observe_accuracy(0.5)
    params = actor(torch.tensor([1.0, batch[0].mean(), 0.5])).detach()
    assert_close(live.weigh(*batch, progress=0.9), weigh(batch_features(*batch, ("loss", "entropy")), params))


@pytest.mark.parametrize("classes", [2, 7, 100])
def test_a_strategy_moves_to_any_number_of_classes_and_batch_size(classes):
    logits = torch.randn(3 * classes, classes, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(3 * classes) % classes
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    table = torch.tensor([[-2.0, 1.0, 0.5, 1.0, -0.5]])
    strategy = aw.Strategy(table, ("loss", "entropy", "density", "label"), class_counts=torch.arange(1, classes + 1))
    weights = strategy.weigh(losses, logits, labels, progress=0.5)
    assert weights.isfinite().all()
    assert weights.std() > 0.1


def test_a_live_strategy_stays_live_for_other_class_counts(batch):
    live = aw.Strategy(TABLE, actor=make_actor()).live().with_class_counts(torch.tensor([5, 5, 5]))
    live.weigh(*batch, progress=0.0)
    live.observe_accuracy(0.5)
    assert live.state_dict()
    with pytest.raises(aw.UserError, match="progress as a number"):
        live.weigh(*batch, progress=torch.tensor(0.5))


def test_a_live_strategy_asks_for_the_accuracy(batch):
    live = aw.Strategy(TABLE, actor=make_actor()).live()
    live.weigh(*batch, progress=0.0)
    with pytest.raises(aw.UserError, match="call observe_accuracy"):
        live.weigh(*batch, progress=0.25)


def test_an_autocast_around_a_live_strategy_changes_no_bit(batch):
    plain, inside = (aw.Strategy(TABLE, actor=make_actor()).live() for _ in range(2))
    inside.actor.load_state_dict(plain.actor.state_dict())
    with torch.autocast("cpu", torch.bfloat16):
        weights = inside.weigh(*batch, progress=0.0)
    assert torch.equal(weights, plain.weigh(*batch, progress=0.0))


def test_a_live_strategy_that_begins_late_waits_for_a_whole_stage(batch):
    live = aw.Strategy(TABLE, actor=make_actor()).live()
    assert torch.equal(live.weigh(*batch, progress=0.5), live.weigh(*batch, progress=0.6))
    live.observe_accuracy(0.5)
    live.weigh(*batch, progress=0.75)
    assert live.state_dict()["stages_seen"] == 1


def test_live_needs_an_actor():
    with pytest.raises(aw.UserError, match="no actor"):
        aw.Strategy(TABLE).live()


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        (torch.zeros(4, 2), {}, "columns"),
        (torch.full((4, 3), float("nan")), {}, "finite"),
        (TABLE, {"warmup_stages": 5}, "warmup_stages"),
        (TABLE, {"features": ("loss", "entropi")}, "did you mean 'entropy'"),
        (TABLE, {"label_feature": "rw"}, "did you mean 'raw'"),
        (TABLE, {"class_counts": [[3, 4]]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [3.0, float("nan")]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [3, -1]}, "how many training samples each class has"),
        (TABLE, {"class_counts": [0, 0]}, "how many training samples each class has"),
    ],
)
def test_wrong_strategies_are_refused(table, options, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        aw.Strategy(table, **options)


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


def test_a_file_that_cannot_be_reached_gets_its_sentence():
    with pytest.raises(aw.UserError, match=r"cannot read the strategy file x+: File name too long"):
        aw.load("x" * 300)


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
ACTOR = {"num_stages": 4, "hidden": [8], "embedding_size": 4, "bounded": True}


@pytest.mark.parametrize(
    "header",
    [
        "{",
        "[" * 100_000,
        "[]",
        json.dumps({"features": ["loss"]}),
        *(
            json.dumps(HEADER | wrong)
            for wrong in (
                {"normalised": "false"},
                {"warmup_stages": "1"},
                {"features": "loss"},
                {"info": "none"},
                {"actor_stages": -5},
                {"actor_stages": 99},
                {"actor_stages": "x"},
                {"actor": 3},
                {"actor": ACTOR | {"hidden": [40_000, 40_000]}},
            )
        ),
    ],
)
def test_damaged_headers_are_refused(tmp_path, header):
    path = tmp_path / "x"
    metadata = {"format": files.FORMAT, "version": "1", "header": header}
    path.write_bytes(safetensors.torch.save({"table": TABLE, "actor.bounds": torch.ones(3)}, metadata))
    with pytest.raises(aw.UserError, match=r"damaged header|not a valid strategy"):
        aw.load(path)


def test_parameters_that_are_not_finite_or_do_not_fit_are_refused(tmp_path):
    def load(**changed):
        actor = Actor(bounds=bounds_of(("loss", "entropy")), **ACTOR)
        tensors = {f"actor.{name}": value for name, value in actor.state_dict().items()} | {"table": TABLE} | changed
        files.write(tmp_path / "x", tensors, HEADER | {"actor": ACTOR})
        return aw.load(tmp_path / "x")

    assert load().live()
    for changed in (
        {"table": torch.full((4, 3), 1e300, dtype=torch.float64)},
        {"actor.layers.0.bias": torch.full((8,), float("nan"))},
        {
            "actor.bounds": torch.ones(4),
            "actor.layers.2.weight": torch.ones(4, 8),
            "actor.layers.2.bias": torch.ones(4),
        },
    ):
        with pytest.raises(aw.UserError, match=r"finite|does not fit"):
            load(**changed)
