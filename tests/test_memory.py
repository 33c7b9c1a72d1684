"""The memory of samples against a plain loop in Python, and what it says of indices that cannot be right."""

import math
from statistics import fmean, pstdev

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy import Rule
from autoweight.strategy.memory import Memory
from autoweight.strategy.view import View
from autoweight.workers.base import ParamsWeigher

SAMPLES, CLASSES, RATE = 12, 4, 0.3
LABELS = torch.arange(SAMPLES) % CLASSES
BOTH = Rule(("margin", "history"), memory_rate=RATE)


def visits(count=30, classes=CLASSES, samples=SAMPLES):
    """Batches of five samples with whatever a network may say of them."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(count):
        indices = torch.randperm(samples, generator=generator)[:5]
        logits = 3 * torch.randn(5, classes, generator=generator)
        labels = indices % classes
        yield cross_entropy(logits, labels, reduction="none"), logits, labels, indices


class PlainMemory:
    """One number after the other."""

    def __init__(self):
        self.means, self.rival_class, self.loss = {}, {}, {}

    def margin(self, index, probabilities, label):
        others = [name for name in range(CLASSES) if name != label]
        strongest = max(others, key=lambda name: probabilities[name])
        now = probabilities[label] - probabilities[strongest]
        if now < 0:
            self.rival_class[index] = strongest
        self.means[index] = (1 - RATE) * self.means.get(index, 0.0) + RATE * now
        return self.means[index]

    def remember(self, index, loss):
        self.loss[index] = loss if index not in self.loss else (1 - RATE) * self.loss[index] + RATE * loss

    def history(self, index, scale):
        alike = {"set": lambda other: True, "class": lambda other: other % CLASSES == index % CLASSES}[scale]
        peers = [loss for other, loss in self.loss.items() if alike(other)]
        return (self.loss[index] - fmean(peers)) / max(pstdev(peers), 1e-3)


@pytest.mark.parametrize("scale", ["set", "class"])
def test_margin_and_history_are_those_of_a_plain_loop(scale):
    rule = Rule(("margin", "history"), memory_rate=RATE, history_scale=scale)
    memory, plain = Memory.empty(SAMPLES, CLASSES), PlainMemory()
    for losses, logits, labels, indices in visits():
        view = View(losses, logits, labels, torch.ones(5, dtype=torch.bool))
        columns = rule._remembered(torch.tensor(0.0), view, labels, memory, indices)
        rows = list(
            zip(indices.tolist(), logits.softmax(dim=-1).tolist(), labels.tolist(), losses.tolist(), strict=True)
        )
        margins = [plain.margin(index, probabilities, label) for index, probabilities, label, _ in rows]
        for index, _, _, loss in rows:
            plain.remember(index, loss)
        assert_close(columns["margin"], torch.tensor(margins), atol=1e-5, rtol=1e-5)
        history = [plain.history(index, scale) for index, *_ in rows]
        assert_close(columns["history"], torch.tensor(history), atol=2e-3, rtol=2e-3)
    assert memory.history.sums[:, 0].sum() == len(plain.loss)
    for index, rival in plain.rival_class.items():
        assert memory.columns["rival_class"][index] == rival


def test_of_two_classes_the_margin_is_that_of_the_averaged_predictions():
    memory, means = Memory.empty(SAMPLES, 2), torch.zeros(SAMPLES, 2)
    for _, logits, labels, indices in visits(classes=2):
        valid = torch.ones(5, dtype=torch.bool)
        margin = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(RATE), valid)
        means[indices] = torch.lerp(means[indices], logits.softmax(dim=-1), RATE)
        signed = means[indices, labels] - means[indices, 1 - labels]
        assert_close(margin, signed, atol=1e-5, rtol=1e-5)


def test_weights_are_made_of_the_remembered_features_and_the_rate_that_was_found():
    table = torch.tensor([[2.0, -0.5, 0.25, 1.0]])
    strategy, memory = aw.Strategy(table, BOTH), Memory.empty(SAMPLES, CLASSES)
    rate = torch.tensor(math.log(RATE / (1 - RATE)) + 1.0).sigmoid()
    for losses, logits, labels, indices in visits(6):
        valid = torch.ones(5, dtype=torch.bool)
        margin = memory.margins(memory.look(logits, labels), labels, indices, rate, valid)
        averaged = memory.history.visit(losses, labels, indices, rate, valid)
        history = memory.history.standing(averaged, labels, by_class=True)
        weights = strategy.weigh(losses, logits, labels, progress=0.5, indices=indices)
        assert_close(weights, 1 + torch.tanh(2.0 * margin - 0.5 * history + 0.25), atol=1e-5, rtol=1e-5)


def strategy_of(rule=BOTH):
    return aw.Strategy(torch.full((2, len(rule.param_names)), 0.5), rule)


def weights_of(strategy, batches):
    return [strategy.weigh(*batch[:3], progress=0.6, indices=batch[3]) for batch in batches]


@pytest.mark.parametrize("rule", [BOTH, Rule(("loss", "history"), history_scale="set"), Rule(("margin",))])
def test_a_memory_grows_with_the_indices_that_come_and_weighs_as_one_that_was_reserved(rule):
    grown, reserved = strategy_of(rule), strategy_of(rule)
    reserved.reserve(SAMPLES, CLASSES, "cpu")
    for one, two in zip(weights_of(grown, visits()), weights_of(reserved, visits()), strict=True):
        assert torch.equal(one, two)
    assert len(reserved.memory) == SAMPLES
    assert len(grown.memory) >= SAMPLES


def test_strategies_and_workers_remember_alike():
    strategy = strategy_of()
    weigher = ParamsWeigher(BOTH, torch.zeros(CLASSES), strategy.table[0], Memory.empty(SAMPLES, CLASSES))
    for one, two in zip(weights_of(strategy, visits()), weights_of(weigher, visits()), strict=True):
        assert torch.equal(one, two)


def test_a_memory_goes_on_from_a_checkpoint(tmp_path):
    batches = list(visits())
    whole, first, second = strategy_of(), strategy_of(), strategy_of()
    expected = weights_of(whole, batches)
    weights_of(first, batches[:13])
    torch.save(first.state_dict(), tmp_path / "mine")
    second.load_state_dict(torch.load(tmp_path / "mine", weights_only=True))
    for one, two in zip(weights_of(second, batches[13:]), expected[13:], strict=True):
        assert torch.equal(one, two)


def test_a_memory_that_has_grown_goes_back_to_what_it_was():
    strategy, batches = strategy_of(), list(visits(2))
    expected = weights_of(strategy, batches)
    kept = {name: one.clone() for name, one in strategy.state_dict().items()}
    weights_of(strategy, [(*batches[0][:3], batches[0][3] + SAMPLES)])
    strategy.load_state_dict(kept)
    assert all(torch.equal(one, kept[name]) for name, one in strategy.state_dict().items())
    strategy.load_state_dict({})
    assert strategy.state_dict() == {}
    assert all(map(torch.equal, weights_of(strategy, batches), expected))


def test_a_sample_whose_loss_is_no_number_is_not_remembered_and_harms_nobody():
    strategy = strategy_of()
    losses, logits, labels, indices = next(visits(1))
    bad = losses.clone()
    bad[2], logits[2] = float("nan"), float("nan")
    weights = strategy.weigh(bad, logits, labels, progress=0.6, indices=indices)
    assert weights[2] == 0
    assert weights.isfinite().all()
    columns = strategy.memory.columns
    assert columns["loss"][indices[2]] == -1
    assert columns["margin"][indices[2]] == 0
    assert columns["label"][indices[2]] == -1
    assert strategy.memory.history.sums[:, 0].sum() == 4
    assert strategy.memory.census.counts[:, 0].sum() == 4


def test_a_memory_costs_a_few_numbers_a_sample_however_many_classes():
    memory = Memory.empty(1000, 5000)
    assert sum(column[0].nbytes for column in memory.columns.tensors().values()) <= 64


BATCH = torch.rand(3), torch.randn(3, CLASSES), torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("indices", "sentence"),
    [
        (None, r"this strategy remembers samples: pass their positions, weigh\(\.\.\., indices=indices\)"),
        (torch.tensor([0, 1, -1]), "index -1 is negative"),
        (torch.tensor([0.0, 1.0, 2.0]), "indices must be whole numbers, but are torch.float32"),
        (torch.tensor([0, 1]), r"one index a sample, 3, but their shape is \(2,\)"),
        (torch.tensor([0, 1, 99]), "index 99 is out of range: the memory is of 12 samples"),
    ],
)
def test_indices_that_cannot_be_right_get_one_sentence(indices, sentence):
    strategy = strategy_of()
    strategy.reserve(SAMPLES, CLASSES, "cpu")
    with pytest.raises(aw.UserError, match=sentence):
        strategy.weigh(*BATCH, progress=0.6, indices=indices)


def test_memories_of_another_data_set_get_one_sentence():
    kept = strategy_of()
    kept.reserve(SAMPLES, CLASSES, "cpu")
    weights_of(kept, visits(3))
    other = strategy_of()
    other.reserve(SAMPLES + 1, CLASSES, "cpu")
    with pytest.raises(aw.UserError, match=r"of shape \(13,\), but was given \(12,\): that is of another data set"):
        other.load_state_dict(kept.state_dict())
    with pytest.raises(aw.UserError, match=r"that lacks arms, .* and \d+ more and has stage besides: give what"):
        strategy_of().load_state_dict({"stage": torch.tensor(3)})
    same = strategy_of()
    same.load_state_dict(kept.state_dict())
    losses, logits, labels, indices = next(visits(1))
    with pytest.raises(aw.UserError, match=r"sample \d+ has label \d, but had \d before: indices are positions"):
        same.weigh(losses, logits, (labels + 1) % CLASSES, progress=0.6, indices=indices)
    grown = strategy_of()  # one that was reserved for a training set knows its classes: other outputs are to spare
    weights_of(grown, visits(3))
    with pytest.raises(aw.UserError, match="the network answers with 7 classes, but the memory is of 4"):
        grown.weigh(losses, torch.randn(5, 7), labels, progress=0.6, indices=indices)


@pytest.mark.parametrize("make", [lambda: aw.load("auto"), strategy_of])
def test_places_in_the_batch_are_no_positions(make):
    weigher = make()
    losses, logits, labels, indices = next(visits(1))
    weigher.weigh(losses, logits, labels, progress=0.5, indices=indices)
    with pytest.raises(aw.UserError, match=r"sample \d+ has label \d, but had \d before: indices are positions"):
        weigher.weigh(losses, logits, (labels + 1) % CLASSES, progress=0.6, indices=indices)


@pytest.mark.parametrize("make", [lambda: aw.load("auto"), strategy_of])
@pytest.mark.parametrize("which", ["losses", "logits", "labels", "indices"])
def test_what_is_no_tensor_gets_one_sentence(make, which):
    batch = dict(zip(("losses", "logits", "labels", "indices"), next(visits(1)), strict=True))
    batch[which] = batch[which].numpy()
    with pytest.raises(aw.UserError, match=f"{which} must be a tensor, but came as ndarray: use torch.as_tensor"):
        make().weigh(**batch, progress=0.5)


def test_an_index_with_two_labels_in_one_batch_is_of_parts_that_were_indexed_alone():
    losses, logits, labels, _ = next(visits(1))
    two = torch.zeros(5, dtype=torch.long)
    with pytest.raises(aw.UserError, match="an index comes twice in this batch, with two labels"):
        aw.load("auto").weigh(losses, logits, labels, progress=0.5, indices=two)


def test_a_logit_that_is_no_number_spoils_its_sample_alone():
    weigher, batch = aw.load("auto"), next(visits(1))
    for bad in (math.inf, math.nan):
        losses, logits, labels, indices = (part.clone() for part in batch)
        logits[2, 1] = bad
        weights = weigher.weigh(losses, logits, labels, progress=0.5, indices=indices)
        assert weights.isfinite().all()
        assert weights.tolist().count(0) == 1 == 5 - int((weigher.memory.columns["label"] >= 0).sum())
    logits[2, 1] = -math.inf  # a class that is masked out
    assert weigher.weigh(losses, logits, labels, progress=0.5, indices=indices).min() > 0


def test_tokens_to_ignore_have_one_label():
    labels = torch.tensor([[0, 1, -1], [1, 2, -1]])
    with pytest.raises(aw.UserError, match=r"label -1 is out of range.* Tokens to ignore have the label -100"):
        aw.load("auto").weigh(
            torch.rand(2, 3), torch.randn(2, 3, CLASSES), labels, progress=0.5, indices=torch.arange(2)
        )


def test_rows_with_an_index_of_their_own_are_refused():
    with pytest.raises(aw.UserError, match="samples have an 'index' of their own: rename it"):
        aw.Indexed([{"x": 1, "index": 7}])[0]


def test_tokens_of_another_length_would_lie_in_each_others_places():
    def weigh(tokens: int, indices=(1, 2)):
        labels = torch.zeros(2, tokens, dtype=torch.long)
        shapes = torch.rand(2, tokens), torch.randn(2, tokens, CLASSES), labels
        return strategy.weigh(*shapes, progress=0.6, indices=torch.tensor(indices))

    strategy = strategy_of()
    weigh(5)
    weigh(5)
    with pytest.raises(aw.UserError, match="samples have 10 tokens, but had 5 before"):
        weigh(10)
    weigh(2, [[90, 91], [92, 93]])  # whoever tells a place for each token knows better
    strategy.load_state_dict({})
    weigh(10)


def test_a_constant_may_remember_too():
    constant = aw.Constant(loss=0.0, margin=3.0, bias=0.0, warmup=0.0)
    model, data = nn.Linear(2, 3), torch.randn(6, 2)
    labels = torch.arange(6) % 3
    logits = model(data)
    losses = cross_entropy(logits, labels, reduction="none")
    weights = constant.weigh(losses, logits, labels, progress=0.5, indices=torch.arange(6))
    assert torch.equal(weights.argsort(), constant.memory.columns["margin"].argsort())


def test_torchs_default_kind_of_number_does_not_matter():
    torch.set_default_dtype(torch.float64)
    try:
        auto, logits = aw.load("auto"), torch.randn(8, 3)
        losses, labels = torch.rand(8), torch.arange(8) % 3
        for progress in (0.0, 0.5):
            weights = auto.weigh(losses, logits, labels, progress=progress, indices=torch.arange(8))
        assert aw.find_label_issues(auto, labels).num_seen == 8
        assert aw.weighted_mean(losses, weights).isfinite()
        assert auto.judgement()[0].dtype == torch.float32
        again = aw.load("auto")
        again.load_state_dict(auto.state_dict())
    finally:
        torch.set_default_dtype(torch.float32)
