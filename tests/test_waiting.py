"""Visits that wait: what is remembered of large sets some thousands at a time is what is remembered at once."""

from fractions import Fraction

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy import memory, waiting
from autoweight.strategy.memory import Memory
from autoweight.strategy.visits import Look
from autoweight.strategy.waiting import Verdict

SAMPLES, CLASSES, BATCH = 800, 4, 20
LABELS = torch.arange(SAMPLES) % CLASSES
WRONG = torch.rand(SAMPLES, generator=torch.Generator().manual_seed(1)) < 0.3
BELIEVED = torch.where(WRONG, (LABELS + 1) % CLASSES, LABELS)


@pytest.fixture(autouse=True)
def _small_sets_are_large(monkeypatch):
    monkeypatch.setattr(waiting, "_LARGE", 100)


def batches(epochs, believed=BELIEVED, shuffled=False, size=BATCH):
    """What a network says of samples, epoch after epoch."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        order = torch.randperm(SAMPLES, generator=generator) if shuffled else torch.arange(SAMPLES)
        for indices in order.split(size):
            logits = 4 * one_hot(believed[indices], CLASSES) + torch.randn(len(indices), CLASSES, generator=generator)
            losses = cross_entropy(logits, LABELS[indices], reduction="none")
            yield (losses, logits, LABELS[indices]), indices


def train(auto, *given, progress=0.5, **named):
    """Each sample's last weight."""
    weights = torch.full((SAMPLES,), torch.nan)
    for batch, indices in batches(*given, **named):
        weights[indices] = auto.weigh(*batch, progress=progress, indices=indices)
    return weights


def at_once(monkeypatch):
    monkeypatch.setattr(waiting, "_LARGE", SAMPLES + 1)
    return aw.load("auto")


def reserved(name="auto"):
    auto = aw.load(name)
    auto.reserve(SAMPLES, CLASSES, "cpu")
    return auto


def same(one, other, but=()):
    """The tensors of two weighers are, but for these."""
    own, others = one.tensors(), other.tensors()
    assert own.keys() == others.keys()
    for name in own.keys() - set(but):
        assert torch.equal(own[name], others[name]), name


OWN = ("waiting", "num_waiting", "waiting_progress")
"""What is kept for visits that wait."""


def test_a_batch_that_is_due_at_once_is_remembered_as_one_that_does_not_wait(monkeypatch):
    monkeypatch.setattr(waiting, "_PARTS", SAMPLES)
    auto = reserved()
    train(auto, 5, shuffled=True)
    assert auto.memory.waiting.number == 0
    plain = at_once(monkeypatch)
    plain.reserve(SAMPLES, CLASSES, "cpu")
    train(plain, 5, shuffled=True)
    assert plain.memory.census.opened
    same(auto, plain, OWN)


def test_many_batches_at_a_time_leave_the_same_margins_and_counts(monkeypatch):
    auto, plain = reserved(), at_once(monkeypatch)
    plain.reserve(SAMPLES, CLASSES, "cpu")
    train(plain, 3, LABELS)
    monkeypatch.setattr(waiting, "_LARGE", 100)
    train(auto, 3, LABELS)
    auto.settle()
    for name in ("label", "margin", "lowest", "rival_class", "counts", "num_visits", "testimony", "visits"):
        assert torch.equal(auto.tensors()[name], plain.tensors()[name]), name


def test_labels_that_are_contradicted_lose_their_weight():
    weights = train(aw.load("auto"), 10, shuffled=True)
    assert weights[WRONG].mean() < 0.1
    assert weights[~WRONG].mean() == pytest.approx(1 / 0.7, abs=0.1)


def test_a_set_that_is_learned_keeps_weights_of_one():
    assert_close(train(aw.load("auto"), 8, LABELS, shuffled=True), torch.ones(SAMPLES), atol=1e-3, rtol=0)
    assert torch.equal(train(aw.load("auto"), 1), torch.ones(SAMPLES))


def test_a_weight_is_that_of_the_visit_before_moved_by_what_its_margin_has_moved_since():
    auto = reserved()
    memory = auto.memory
    memory.columns["margin"][7] = -0.2
    verdict = Verdict(*(torch.tensor([one]) for one in (-1 + 2.0 * 0.2, 2.0, 0.0, 1.5)))
    memory.waiting.judge(torch.tensor([7]), verdict)
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    weight = auto.weigh(torch.ones(1), logits, LABELS[7:8], progress=0.5, indices=torch.tensor([7]))
    moved = 0.2 * ((0.4 - 0.3) - -0.2)  # sample 7 has the last class
    assert weight.item() == pytest.approx(1.5 * torch.tensor(-1 + 10 * moved).sigmoid().item())
    assert memory.columns["margin"][7] == -0.2  # it waits


def test_who_was_spared_stays_spared_whatever_the_network_makes_of_it_now():
    auto = reserved()
    auto.memory.waiting.judge(torch.arange(2), Verdict(*(torch.tensor([one, one]) for one in (-4.0, 32.0, 0.7, 1.5))))
    auto.memory.columns["margin"][:2] = -0.4
    logits = torch.tensor(
        [[0.05, 0.9, 0.03, 0.02], [0.05, 0.9, 0.03, 0.02]]
    ).log()  # a label contradicted, one confirmed
    weights = auto.weigh(torch.ones(2), logits, LABELS[:2], progress=0.4, indices=torch.arange(2))
    assert weights[0] == pytest.approx(1.5 * 0.7)
    assert weights[1] > 1.4  # what the margin says is more


def test_of_a_sample_that_waits_already_the_later_visit_counts():
    memory, places = Memory.empty(SAMPLES, CLASSES), torch.tensor([3, 5])
    everyone = torch.tensor([True, True])
    for own in (0.1, 0.2):
        look = Look(torch.tensor([own, own]), torch.tensor([0.5, 0.6]), torch.tensor([1, 2]))
        memory.waiting.put(look, LABELS[places], places, everyone, 0.5)
    assert memory.waiting.number == 4
    taken, look, labels = memory.waiting.take()
    assert torch.equal(taken, places)
    assert_close(look.own, torch.tensor([0.2, 0.2]))
    assert look.strongest_class.tolist() == [1, 2]
    assert torch.equal(labels, LABELS[places])
    assert len(memory.waiting.take()[0]) == 0


def test_a_sample_whose_loss_is_no_number_is_not_remembered():
    auto = reserved()
    weights = auto.weigh(
        torch.tensor([torch.nan, 1.0]), torch.zeros(2, CLASSES), LABELS[:2], progress=0.1, indices=torch.arange(2)
    )
    assert weights.tolist() == [0, 1]
    auto.settle()
    assert auto.memory.columns["label"][:3].tolist() == [-1, 1, -1]


def test_it_goes_on_from_its_state_to_the_same_weights_while_visits_wait():
    auto, other = reserved(), reserved()
    seen = list(batches(6, shuffled=True))
    middle = 5 * len(seen) // 6 + 2
    for batch, indices in seen[:middle]:
        auto.weigh(*batch, progress=0.5, indices=indices)
    assert auto.memory.waiting.number > 0
    other.load_state_dict({name: one.clone() for name, one in auto.state_dict().items()})
    for batch, indices in seen[middle:]:
        weights = (one.weigh(*batch, progress=0.5, indices=indices) for one in (auto, other))
        assert torch.equal(*weights)
    same(auto, other)


def test_an_audit_heeds_what_waits(monkeypatch):
    auto, plain = reserved(), at_once(monkeypatch)
    train(plain, 1)
    monkeypatch.setattr(waiting, "_LARGE", 100)
    monkeypatch.setattr(waiting, "_PARTS", 0.5)  # all of it waits
    train(auto, 1)
    assert auto.memory.waiting.number == SAMPLES
    assert (auto.memory.columns["label"] < 0).all()
    found, expected = (aw.find_label_issues(one, LABELS) for one in (auto, plain))
    assert found.num_seen == SAMPLES
    assert_close(found["label_score"], expected["label_score"])


@pytest.mark.parametrize("name", ["auto", "noise", "rare"])
def test_large_batches_and_captured_steps_do_not_wait(name):
    auto = reserved(name)
    train(auto, 1, size=BATCH)
    auto.memory.waiting.known = 1  # as if something did
    auto.memory.waiting.rows[0, :4] = torch.tensor([0.9, 0.05, 1.0, 0.0])
    visits = auto.testimony.visits[0].item()
    train(auto, 1, size=SAMPLES // 8)
    assert auto.memory.waiting.number == 0
    assert auto.testimony.visits[0] == visits + 2
    train(auto, 1, progress=torch.tensor(0.5))
    assert auto.memory.waiting.number == 0
    assert (auto.memory.waiting.rows[:, 0] == -1).all()


def test_what_a_smaller_batch_left_is_remembered_after_the_next_replay():
    """As a stream's batch that lacks samples may be small enough to wait."""
    auto = reserved()
    auto.driven = True
    for size in (SAMPLES // 16, SAMPLES // 16 + 1):
        batch, indices = next(batches(1, size=size))
        auto.weigh(*batch, progress=torch.tensor(0.1), indices=indices)
        assert auto.memory.waiting.number == SAMPLES // 16
        auto.after_replay(size)
    assert auto.memory.waiting.number == 0
    assert auto.testimony.visits.sum() == SAMPLES // 8 + 1


def test_a_visit_that_is_no_number_leaves_the_one_that_waits():
    memory, place = Memory.empty(SAMPLES, CLASSES), torch.tensor([3])
    for own, valid in ((0.1, True), (0.9, False)):
        look = Look(torch.tensor([own]), torch.tensor([0.5]), torch.tensor([1]))
        memory.waiting.put(look, LABELS[place], place, torch.tensor([valid]), 0.5)
    assert_close(memory.waiting.take()[1].own, torch.tensor([0.1]))


def test_a_label_that_changes_while_its_visit_waits_is_refused():
    auto, batch = aw.load("auto"), (torch.ones(1), torch.zeros(1, CLASSES))
    train(auto, 1)  # so that there is a set to wait in
    auto.load_state_dict({})
    auto.weigh(torch.ones(1), torch.zeros(1, CLASSES), LABELS[-1:], progress=0.0, indices=torch.tensor([SAMPLES - 1]))
    auto.weigh(*batch, LABELS[4:5], progress=0.0, indices=torch.tensor([4]))
    assert auto.memory.columns["label"][4] == -1  # it waits
    with pytest.raises(aw.UserError, match="label"):
        auto.weigh(*batch, LABELS[5:6], progress=0.0, indices=torch.tensor([4]))


def test_an_audit_in_the_middle_changes_no_weight_after_it():
    asked, other = reserved(), reserved()
    seen = list(batches(4, shuffled=True))
    for number, (batch, indices) in enumerate(seen):
        weights = [one.weigh(*batch, progress=number / len(seen), indices=indices) for one in (asked, other)]
        assert torch.equal(*weights)
        aw.find_label_issues(asked, LABELS)
    same(asked, other)


def test_what_is_made_of_samples_is_made_of_all_of_them_once_some_are_remembered():
    """By what the last visit showed of the whole set, as a visit at once does; nobody is visited twice for that."""
    auto = reserved()
    train(auto, 9)
    before = {name: one.clone() for name, one in auto.tensors().items()}
    places = torch.arange(SAMPLES)
    census = auto.memory.census
    evidence = census.evidence(census.sizes(torch.tensor(0)))
    verdict = auto._verdict(auto.memory, places, evidence, torch.tensor(0.5))
    for name, one in before.items():
        assert torch.equal(auto.tensors()[name], one), name
    kept = auto.memory.waiting.rows[:, 4:]
    assert_close(torch.stack(torch.broadcast_tensors(*verdict), dim=-1), kept)  # nothing waits: 800 are eight parts
    weights = verdict.weights(auto.memory.columns["margin"])  # as if they had not moved
    assert (weights[~WRONG] > 0.5).all()
    assert (weights[WRONG] < 0.5).all()


def test_a_huge_set_is_gone_through_in_parts(monkeypatch):
    whole, parts = reserved(), reserved()
    train(whole, 3)
    monkeypatch.setattr(memory, "_AT_ONCE", 70)
    train(parts, 3)
    assert [len(part) for part in parts.memory.known()] == [70] * 11 + [30]
    same(whole, parts)


def test_visits_wait_in_single_precision_whatever_torchs_default():
    torch.set_default_dtype(torch.float64)
    try:
        auto = reserved()
        train(auto, 2)
    finally:
        torch.set_default_dtype(torch.float32)
    assert auto.memory.waiting.rows.dtype == torch.float32
    assert auto.memory.census.num_visits == 2 * SAMPLES


@pytest.mark.parametrize("progress", [Fraction(1, 4), torch.tensor(0.25, dtype=torch.float64), 0.25])
def test_progress_is_any_number(progress):
    auto = reserved()
    auto.driven = True
    train(auto, 1, progress=progress)
    assert auto.memory.waiting.progress == 0.25


def test_an_eighth_of_a_huge_set_is_remembered_some_at_a_time(monkeypatch):
    """Once a part of it waits, and no sooner: what comes of it is made of all samples."""
    monkeypatch.setattr(waiting, "_MOST", 30)
    auto, visited = reserved(), []
    visit = auto._visit
    monkeypatch.setattr(
        auto, "_visit", lambda memory, places, *given: visited.append(places) or visit(memory, places, *given)
    )
    train(auto, 1)
    assert [len(places) for places in visited] == 8 * [25, 25, 25, 25]
    assert torch.cat(visited).sort().values.tolist() == list(range(SAMPLES))
    assert visited[1].tolist() == list(range(1, 100, 4))  # of all labels, where these lie in order


def test_visits_are_remembered_at_the_progress_of_the_last_also_from_a_state(monkeypatch):
    monkeypatch.setattr(waiting, "_PARTS", 0.5)
    auto, other = reserved(), reserved()
    train(auto, 1, progress=0.25)
    other.load_state_dict(auto.state_dict())
    at = []
    monkeypatch.setattr(type(other), "_rarity", lambda _, census, sizes, progress: at.append(progress) or torch.ones(4))
    other.settle()
    assert set(map(float, at)) == {0.25}


@pytest.mark.parametrize("wait", [True, False])
def test_what_waits_depends_on_the_samples_that_came_not_on_the_room_that_is_there(monkeypatch, wait):
    monkeypatch.setattr(waiting, "_LARGE", SAMPLES if wait else SAMPLES + 1)
    auto = aw.load("auto")
    for highest in (SAMPLES // 2, SAMPLES - 10, SAMPLES - 1):
        auto.weigh(torch.ones(1), torch.zeros(1, CLASSES), LABELS[:1], progress=0.0, indices=torch.tensor([highest]))
    assert len(auto.memory) > SAMPLES
    assert auto.memory.num_samples == SAMPLES
    assert (auto.memory.waiting.count == 1) is wait
    other = aw.load("auto")
    other.load_state_dict(auto.state_dict())
    assert other.memory.num_samples == SAMPLES
