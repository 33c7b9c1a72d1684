"""Every method against hand-computed weights, and all of them through one conformance suite."""

import re
from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

import autoweight as aw
from autoweight.methods import METHODS, TrainingFacts, check_knobs, make_method
from autoweight.methods.method import Method, Weighted
from autoweight.methods.self_paced import self_paced_weights

from .conftest import make_blobs

WEIGHERS = [name for name, made in METHODS.items() if not (isinstance(made, type) and issubclass(made, Method))]
FACTS = TrainingFacts(torch.tensor([6, 3, 1]), torch.tensor([True, False] * 5))


@pytest.fixture
def knobs_of_method(tmp_path):
    aw.Strategy(torch.randn(4, 3), warmup_stages=1).save(tmp_path / "s")
    return {"law": {"strategy": str(tmp_path / "s")}}


def make_weigher(*wanted):
    """What a method of the registry weighs by."""
    method = make_method(*wanted)
    assert isinstance(method, Weighted)
    return method.weigher


def make_batch(count=6, classes=3, dtype=torch.float32):
    generator = torch.Generator().manual_seed(count)
    logits = torch.randn(count, classes, generator=generator, dtype=dtype).requires_grad_()
    labels = torch.arange(count) % classes
    return cross_entropy(logits, labels, reduction="none"), logits, labels


@pytest.mark.filterwarnings("ignore:weights are relative to the batch")
@pytest.mark.parametrize("name", WEIGHERS)
@pytest.mark.parametrize("progress", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("count", [1, 6])
def test_weights_have_the_shape_and_type_of_the_losses_and_no_gradient(name, progress, count, knobs_of_method):
    weigher = make_weigher(name, FACTS, knobs_of_method.get(name, {}))
    losses, logits, labels = make_batch(count)
    weights = weigher.weigh(losses, logits, labels, progress=progress, indices=torch.arange(count))
    assert weights.shape == losses.shape
    assert weights.dtype == losses.dtype
    assert not weights.requires_grad
    assert weights.isfinite().all()
    assert (weights >= 0).all()


@pytest.mark.parametrize("name", WEIGHERS)
def test_weights_follow_a_permutation(name, knobs_of_method):
    weigher, other = (make_weigher(name, FACTS, knobs_of_method.get(name, {})) for _ in range(2))
    losses, logits, labels = make_batch()
    order = torch.tensor([3, 1, 5, 0, 4, 2])
    weights = weigher.weigh(losses, logits, labels, progress=0.6, indices=torch.arange(6))
    moved = other.weigh(losses[order], logits[order], labels[order], progress=0.6, indices=torch.arange(6)[order])
    assert_close(moved, weights[order])


@pytest.mark.parametrize("name", WEIGHERS)
@pytest.mark.parametrize(
    ("losses", "labels", "sentence"),
    [
        (torch.ones(6, 1), torch.zeros(6).long(), "shapes are"),
        (torch.tensor(1.0), torch.zeros(6).long(), "reduction='none'"),
        (torch.ones(6), torch.zeros(6, 1).long(), "shapes are"),
        (torch.ones(6), torch.ones(6, dtype=torch.uint8), "torch.uint8: use .long()"),
        (torch.ones(6), torch.ones(6), "torch.float32: use .long()"),
        (torch.ones(6).long(), torch.zeros(6).long(), "losses must be real numbers"),
        (torch.ones(6), torch.tensor([0, 1, 2, 0, 1, -1]), "label -1 is out of range"),
        (torch.ones(6), torch.tensor([0, 1, 2, 0, 1, 3]), "label 3 is out of range: with 3 classes"),
    ],
)
def test_a_batch_that_torch_would_bend_is_refused(name, losses, labels, sentence, knobs_of_method):
    weigher = make_weigher(name, FACTS, knobs_of_method.get(name, {}))
    with pytest.raises(aw.UserError, match=re.escape(sentence)):
        weigher.weigh(losses, torch.zeros(6, 3), labels, progress=0.5, indices=torch.arange(6))


@pytest.mark.parametrize("name", WEIGHERS)
def test_half_precision_around_it_changes_no_weight(name, knobs_of_method):
    weigher, other = (make_weigher(name, FACTS, knobs_of_method.get(name, {})) for _ in range(2))
    losses, logits, labels = (part.detach() for part in make_batch())
    logits = logits.bfloat16()
    weights = weigher.weigh(losses, logits.float(), labels, progress=0.6, indices=torch.arange(6))
    with torch.autocast("cpu", torch.bfloat16):
        half = other.weigh(losses, logits, labels, progress=0.6, indices=torch.arange(6))
    assert torch.equal(half, weights)


@pytest.mark.parametrize("name", WEIGHERS)
def test_an_empty_batch_is_refused(name, knobs_of_method):
    weigher, nothing = make_weigher(name, FACTS, knobs_of_method.get(name, {})), torch.zeros(0)
    with pytest.raises(aw.UserError, match="the batch is empty"):
        weigher.weigh(nothing, torch.zeros(0, 3), nothing.long(), progress=0.5, indices=nothing.long())


def test_labels_have_to_lie_within_the_class_counts():
    strategy = aw.Strategy(torch.zeros(1, 2), aw.Rule(("label",)), class_counts=torch.tensor([3, 3]))
    for weigher in (strategy, aw.ClassBalanced(torch.tensor([3, 3]))):
        with pytest.raises(aw.UserError, match="with 2 classes"):
            weigher.weigh(torch.ones(3), torch.zeros(3, 3), torch.arange(3), progress=0.5)


HEEDS_PROGRESS = {
    "searched": lambda: aw.Strategy(torch.zeros(2, 2), aw.Rule(("loss",))),
    "remembers": lambda: aw.Strategy(torch.zeros(2, 3), aw.Rule(("margin",))),
    "mentornet": lambda: make_weigher("mentornet", FACTS, {}),
    "self_paced": aw.SelfPaced,
} | {name: partial(aw.load, name) for name in ("auto", "noise", "rare")}


@pytest.mark.parametrize("progress", [-1, 2.0, float("nan"), "half", None])
@pytest.mark.parametrize("name", HEEDS_PROGRESS)
def test_a_progress_that_is_no_share_is_refused_and_nothing_is_remembered_of_it(name, progress):
    weigher, batch = HEEDS_PROGRESS[name](), (torch.ones(3), torch.zeros(3, 3), torch.arange(3))
    before = {key: value.clone() for key, value in weigher.state_dict().items()}
    with pytest.raises(aw.UserError, match=f"done, from 0 to 1, but was {progress!r}"):
        weigher.weigh(*batch, progress=progress, indices=torch.tensor([0, 1, 1]))
    assert weigher.state_dict() == before
    weigher.weigh(*batch, progress=torch.tensor(0.5), indices=torch.arange(3))  # which a device alone may know


@pytest.mark.parametrize("name", WEIGHERS)
def test_methods_compile_as_one_piece(name, knobs_of_method):
    """Captured steps on a GPU compile them; here without generating code."""
    torch.compiler.reset()  # only so many are compiled in one process
    weigher, plain = (make_weigher(name, FACTS, knobs_of_method.get(name, {})) for _ in range(2))
    for one in (weigher, plain):
        one.reserve(6, 3, "cpu")
    compiled = torch.compile(type(weigher).weigh, backend="eager", fullgraph=True)
    losses, logits, labels = (part.detach() for part in make_batch())
    for progress in torch.tensor([0.0, 0.6], dtype=torch.float64):
        weights = compiled(weigher, losses, logits, labels, progress=progress, indices=torch.arange(6))
        assert_close(weights, plain.weigh(losses, logits, labels, progress=progress, indices=torch.arange(6)))


@pytest.mark.parametrize("name", WEIGHERS)
def test_a_training_improves_and_goes_on_from_its_state(name, knobs_of_method):
    def trained(stops: tuple[int, ...]) -> torch.Tensor:
        blobs = make_blobs()
        facts = TrainingFacts(blobs.class_counts, blobs.clean)
        weigher = make_weigher(name, facts, knobs_of_method.get(name, {}))
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        for step in range(20):
            if step in stops:  # as after a kill: a fresh weigher with the old one's state
                state, weigher = weigher.state_dict(), make_weigher(name, facts, knobs_of_method.get(name, {}))
                weigher.load_state_dict(state)
            logits = model(blobs.inputs)
            losses = cross_entropy(logits, blobs.labels, reduction="none")
            weights = weigher.weigh(losses, logits, blobs.labels, progress=step / 20, indices=torch.arange(60))
            optimizer.zero_grad()
            aw.weighted_mean(losses, weights).backward()
            optimizer.step()
        assert losses.mean() < 1.0
        return model.weight.detach()

    assert torch.equal(trained(()), trained((7, 13)))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_card(name):
    import inspect

    card = inspect.getdoc(inspect.getmodule(METHODS[name]))
    assert card.startswith(f"{name}: ")
    for part in ("Idea", "Told", "Knobs", "Cost"):
        assert f"\n{part}" in card


def test_uniform_is_all_ones():
    assert (aw.Uniform().weigh(*make_batch(), progress=0.5) == 1).all()


def test_oracle_drops_wrong_samples():
    weights = aw.Oracle(FACTS.clean).weigh(*make_batch(4), progress=0.0, indices=torch.tensor([0, 1, 4, 5]))
    assert weights.tolist() == [1, 0, 1, 0]
    with pytest.raises(aw.UserError, match="indices"):
        aw.Oracle(FACTS.clean).weigh(*make_batch(4), progress=0.0)
    for wrong, sentence in (([0, 1], "one index a sample"), ([0, 1, 2, -1], "from -1"), ([0, 1, 2, 99], "to 99")):
        with pytest.raises(aw.UserError, match=sentence):
            aw.Oracle(FACTS.clean).weigh(*make_batch(4), progress=0.0, indices=torch.tensor(wrong))


def test_focal_by_hand():
    logits = torch.tensor([[0.0, 0.0], [torch.log(torch.tensor(3.0)), 0.0]])
    losses, labels = torch.zeros(2), torch.tensor([0, 0])
    assert_close(aw.Focal(gamma=2.0).weigh(losses, logits, labels, progress=0.0), torch.tensor([0.25, 0.0625]))
    assert (aw.Focal(gamma=0.0).weigh(losses, logits, labels, progress=0.0) == 1).all()


def test_class_balanced_by_hand():
    beta, counts = 0.9, torch.tensor([10, 1])
    inverse = torch.tensor([(1 - beta) / (1 - beta**10), 1.0])
    expected = inverse / inverse.sum() * 2
    weights = aw.ClassBalanced(counts, beta).weigh(*make_batch(2, 2), progress=0.0)
    assert_close(weights, expected)
    assert_close(aw.ClassBalanced(counts, 0.0).class_weights, torch.ones(2))


def test_self_paced_by_hand():
    losses, age = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0]), torch.tensor(2.0)
    assert self_paced_weights(losses, age, "hard").tolist() == [1, 1, 1, 1, 0]
    assert_close(self_paced_weights(losses, age, "linear"), torch.tensor([1.0, 0.75, 0.5, 0.0, 0.0]))
    # lower age 1, zeta = 2 * 1 / (2 - 1) = 2: v(1.5) = 2 * (1 / 1.5 - 1 / 2) = 1 / 3
    mixture = self_paced_weights(torch.tensor([0.0, 1.0, 1.5, 2.0, 3.0]), age, "mixture", lower=0.5)
    assert_close(mixture, torch.tensor([1.0, 1.0, 1 / 3, 0.0, 0.0]))


@pytest.mark.parametrize("regulariser", ["hard", "linear", "mixture"])
def test_self_paced_looks_past_a_loss_that_is_no_number(regulariser):
    losses, kept = torch.tensor([0.5, torch.nan, 2.0, 1.0]), torch.tensor([True, False, True, True])
    weigher = aw.SelfPaced(regulariser)
    weights = weigher.weigh(losses, torch.zeros(4, 2), torch.zeros(4, dtype=torch.long), progress=0.5)
    others = weigher.weigh(losses[kept], torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), progress=0.5)
    assert weights[1] == 0
    assert torch.equal(weights[kept], others)


def test_self_paced_age_grows():
    losses, logits, labels = make_batch(6)
    weigher = aw.SelfPaced(start=0.5, end=1.0)
    taken = [int(weigher.weigh(losses, logits, labels, progress=progress).sum()) for progress in (0.0, 0.5, 1.0)]
    assert taken == [3, 4, 6]


def test_constant_is_one_theta_after_its_warm_up():
    losses, logits, labels = make_batch()
    constant = aw.Constant(loss=-8.0, bias=-2.0, warmup=0.1)
    assert (constant.weigh(losses, logits, labels, progress=0.09) == 1).all()
    early = constant.weigh(losses, logits, labels, progress=0.1)
    assert torch.equal(early, constant.weigh(losses, logits, labels, progress=0.95))
    assert early[losses.argmax()] < 0.01 < early[losses.argmin()]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: aw.Focal(gamma=-1), "gamma"),
        (lambda: aw.ClassBalanced(FACTS.class_counts, beta=1.0), "beta"),
        (lambda: aw.ClassBalanced(torch.tensor([3, 0])), "above 0"),
        (lambda: aw.SelfPaced(regulariser="hrad"), "did you mean 'hard'"),
        (lambda: aw.SelfPaced(start=0.9, end=0.5), "start <= end"),
        (lambda: aw.SelfPaced(lower=1.0), "lower"),
        (lambda: aw.Constant(warmup=1.5), "warmup"),
        (lambda: aw.Oracle(torch.zeros(0)), "every training sample"),
        (lambda: aw.Oracle(None), "every training sample"),
        (lambda: aw.ClassBalanced("a"), "how many samples each class has, all above 0"),
        (lambda: aw.Focal("2"), "focal's gamma takes a number, but is '2'"),
        (lambda: aw.GCE(q="a"), "gce's q takes a number"),
        (lambda: aw.SelfPaced(start="a"), "self_paced's start takes a number"),
        (lambda: aw.Constant(loss="a"), "constant's loss takes a number"),
        (lambda: aw.presets.noise(5), "a preset takes an aw.SearchConfig, but is 5"),
        (lambda: check_knobs("focal", {"gama": 2.0}), "did you mean 'gamma'"),
        (lambda: check_knobs("focal", {"gamma": "two"}), "takes a value like 2.0"),
        (lambda: check_knobs("uniform", {"gamma": 1.0}), "has no knobs"),
        (lambda: check_knobs("focall", {}), "did you mean 'focal'"),
        (lambda: make_method("law", FACTS, {}), "--strategy"),
    ],
)
def test_wrong_arguments_get_one_sentence(make, sentence):
    with pytest.raises(aw.UserError, match=sentence):
        make()
