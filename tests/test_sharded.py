"""A memory that lies on several processes weighs as one that is whole; in half precision nearly so."""

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

import autoweight as aw
from autoweight.sharded import Sharded
from autoweight.strategy import Rule, Strategy, waiting
from autoweight.strategy.counting import FIXED_POINT

SAMPLES, CLASSES, BATCH, EPOCHS = 2200, 5, 128, 5
REMEMBERING = {
    "auto": lambda: aw.load("auto"),
    "noise": lambda: aw.load("noise"),
    "belief and history": lambda: Strategy(torch.tensor([[1.0, -0.5, 0.2, 0.3]]), Rule(("belief", "history"))),
}


def batches():
    """Batches of a training that learns, two labels of five redrawn."""
    draw = torch.Generator().manual_seed(0)
    true = torch.arange(SAMPLES) % CLASSES
    given = true.where(torch.rand(SAMPLES, generator=draw) > 0.4, torch.randint(CLASSES, (SAMPLES,), generator=draw))
    for epoch in range(EPOCHS):
        for number, indices in enumerate(torch.randperm(SAMPLES, generator=draw).split(BATCH)):
            noise = torch.randn(len(indices), CLASSES, generator=draw)
            logits = noise + (1 + epoch) * one_hot(true[indices], CLASSES)
            losses = cross_entropy(logits, given[indices], reduction="none")
            yield losses, logits, given[indices], (epoch + number * BATCH / SAMPLES) / EPOCHS, indices


def weights_of(sharded):
    """Of each batch."""
    return (sharded.weigh(*one) for one in batches())


@pytest.mark.parametrize("name", REMEMBERING)
def test_one_process_weighs_as_with_a_whole_memory(name):
    whole, sharded = REMEMBERING[name](), Sharded(REMEMBERING[name](), SAMPLES, CLASSES)
    for one in batches():
        weights = sharded.weigh(*one)
        assert torch.equal(weights, whole.weigh(*one))
    assert not torch.equal(weights, torch.ones_like(weights))
    state = whole.state_dict()  # of a memory that has grown beyond its samples
    for key, value in sharded.whole().state_dict().items():
        assert torch.equal(value, state[key][: len(value)] if value.dim() else state[key]), key


def test_of_a_large_set_every_batch_is_remembered_at_once(monkeypatch):
    expected = list(weights_of(Sharded(aw.load("auto"), SAMPLES, CLASSES)))
    monkeypatch.setattr(waiting, "_LARGE", 100)
    for weights, own in zip(weights_of(Sharded(aw.load("auto"), SAMPLES, CLASSES)), expected, strict=True):
        assert torch.equal(weights, own)


def test_half_precision_takes_half_the_room_and_counts_what_it_keeps():
    full, half = (Sharded(aw.load("auto"), SAMPLES, CLASSES, half=own) for own in (False, True))
    for one in batches():
        torch.testing.assert_close(half.weigh(*one), full.weigh(*one), rtol=0, atol=0.02)
    size = [sum(column.element_size() for column in own._columns.values()) for own in (full, half)]
    assert size == [40, 20]
    memory = half.whole().memory
    for kind in range(CLASSES):
        margins = memory.columns["margin"][memory.columns["label"] == kind].double()
        count, total = memory.census.counts[kind].tolist()
        assert (count, total) == (len(margins), (margins * FIXED_POINT).round().sum())
    issues = [aw.find_label_issues(own.whole(), memory.columns["label"].numpy()) for own in (full, half)]
    assert issues[0].num_issues == pytest.approx(issues[1].num_issues, abs=5)
    assert issues[0].num_issues > 500


def test_a_state_goes_back_to_the_same_weights():
    one, other = (Sharded(aw.load("auto"), SAMPLES, CLASSES, half=True) for _ in range(2))
    given = list(batches())
    for batch in given[:50]:
        one.weigh(*batch)
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    for batch in given[50:]:
        assert torch.equal(other.weigh(*batch), one.weigh(*batch))


def test_samples_that_come_twice_count_once_and_tokens_have_places():
    losses, logits, labels, progress, indices = next(batches())
    sharded, twice = Sharded(aw.load("auto"), SAMPLES, CLASSES), torch.cat([indices, indices[:3]])
    again = [torch.cat([one, one[:3]]) for one in (losses, logits, labels)]
    weights = sharded.weigh(*again, progress, twice)
    assert torch.equal(weights[:3], weights[-3:])
    assert sharded.whole().memory.columns["label"].ge(0).sum() == len(indices)
    tokens, rows = Sharded(aw.load("auto"), 12, CLASSES), torch.arange(2)
    shaped = losses[:8].view(2, 4), logits[:8].view(2, 4, CLASSES), labels[:8].view(2, 4)
    assert tokens.weigh(*shaped, progress, rows).shape == (2, 4)
    assert torch.equal(tokens.whole().memory.columns["label"][:8], labels[:8].int())


def test_what_was_put_together_is_a_weigher_of_its_own():
    """It stays as it was while the training goes on, and goes on by itself; samples that come twice count once."""
    one, other, *_ = batches()
    sharded = Sharded(aw.load("auto"), SAMPLES, CLASSES)
    sharded.weigh(*one)
    whole = sharded.whole()
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    sharded.weigh(*other)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, before[name]), name
    after = {name: value.clone() for name, value in sharded.state_dict().items()}
    losses, logits, labels, progress, indices = other
    twice = [torch.cat([part, part[:3]]) for part in (losses, logits, labels)]
    whole.weigh(*twice, progress, torch.cat([indices, indices[:3]]))
    assert whole.memory.census.num_visits == 2 * BATCH
    for name, value in sharded.state_dict().items():
        assert torch.equal(value, after[name]), name
    whole.load_state_dict(before)
    assert whole.memory.census.num_visits == BATCH


def test_samples_with_another_number_of_tokens_are_refused():
    losses, logits, labels, progress, _ = next(batches())
    four = losses[:8].view(2, 4), logits[:8].view(2, 4, CLASSES), labels[:8].view(2, 4)
    sharded, other = (Sharded(aw.load("auto"), 40, CLASSES) for _ in range(2))
    sharded.weigh(*four, progress, torch.arange(2))
    before = {name: value.clone() for name, value in sharded.state_dict().items()}
    three = [one[:, :3] for one in four]
    with pytest.raises(aw.UserError, match="samples have 3 tokens, but had 4 before"):
        sharded.weigh(*three, progress, torch.arange(2, 4))
    for name, value in sharded.state_dict().items():
        assert torch.equal(value, before[name]), name
    other.weigh(*three, progress, torch.arange(2))
    other.load_state_dict(before)
    other.weigh(*four, progress, torch.arange(2))


def test_mistakes_get_a_sentence():
    losses, logits, labels, progress, indices = next(batches())
    begun = aw.load("auto")
    begun.weigh(losses, logits, labels, progress, indices)
    for wrong in (begun, aw.Focal()):
        with pytest.raises(aw.UserError, match="has no memory to share out, or has begun one"):
            Sharded(wrong, SAMPLES, CLASSES)
    sharded = Sharded(aw.load("auto"), 100, CLASSES)
    with pytest.raises(aw.UserError, match=r"index \d+ is out of range: the memory is of 100 samples"):
        sharded.weigh(losses, logits, labels, progress, indices)
    with pytest.raises(aw.UserError, match="index -5 is negative"):
        sharded.weigh(losses, logits, labels, progress, torch.arange(len(losses)) - 5)
    with pytest.raises(aw.UserError, match="this strategy remembers samples"):
        sharded.weigh(losses, logits, labels, progress)
    sharded.weigh(losses[:1], logits[:1], labels[:1], progress, torch.tensor([7]))
    with pytest.raises(aw.UserError, match=r"sample 7 has label \d, but had \d before"):
        sharded.weigh(losses[:1], logits[:1], (labels[:1] + 1) % CLASSES, progress, torch.tensor([7]))
    with pytest.raises(aw.UserError, match="the memory lies on cpu, but the batch on meta"):
        sharded.weigh(losses.to("meta"), logits, labels, progress, indices)
    state = sharded.state_dict() | {"keeper": torch.tensor([1, 2])}
    with pytest.raises(aw.UserError, match="this is what process 1 of 2 kept, not process 0 of 1"):
        sharded.load_state_dict(state)
