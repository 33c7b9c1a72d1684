"""Sparing: which contradicted labels auto leaves in, by hand-made counts, and when it does so at all."""

import pytest
import torch
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy.belief import belief
from autoweight.strategy.census import Census, Evidence
from autoweight.strategy.memory import Memory
from autoweight.strategy.sparing import Sparing

YES, OPENED = torch.tensor([True]), torch.tensor(True)


def filled(on_trial, others, visits=3000.0):
    """Shares contradicted in the two arms."""
    sparing = Sparing.empty(3)
    sparing.arms.copy_(torch.tensor([[visits, 15 * visits], [visits * on_trial, 15 * visits * others]]))
    return sparing


def test_a_label_is_as_often_right_as_wrong_at_twice_its_odds_among_samples_of_the_same_look():
    sparing = Sparing.empty(3)
    sparing.pairs.copy_(torch.tensor([[800, 98, 100], [0, 50, 0], [0, 0, 50]]))
    believed, labels = torch.tensor([0, 0, 0, 0]), torch.tensor([1, 1, 1, 0])
    share = 98.5 / 999.5  # half a sample more in each place
    odds = 2 * share / (1 - share)
    even = odds / (1 + odds)
    right = sparing.probability_right(torch.tensor([even, 2 * even, even / 2, 0.01]), believed, labels)
    assert_close(right, torch.tensor([1 / 2, 8 / 9, 1 / 9, 1.0]))  # to the power of three; who is believed in is right


@pytest.mark.parametrize(
    ("on_trial", "others", "visits", "safe"),
    [
        (0.4, 0.4, 3000.0, 1.0),
        (0.4, 0.2, 3000.0, 0.0),  # what others lack was memorised
        (0.4, 0.4, 100.0, 0.0),  # too few to tell
        (0.0, 0.0, 3000.0, 0.0),  # nothing is contradicted
    ],
)
def test_nobody_is_spared_where_samples_are_memorised_or_may_be(on_trial, others, visits, safe):
    sparing = filled(on_trial, others, visits)
    assert sparing.safe(OPENED).item() == pytest.approx(safe, abs=1e-4)
    assert sparing.safe(~OPENED).item() == 0


def test_between_the_limits_the_standard_error_counts_five_times():
    error = (0.6 / 0.4 / 3000) ** 0.5
    expected = (0.3 - (1 - 0.34 / 0.4) - 5 * error) / 0.1
    assert filled(0.4, 0.34).safe(OPENED).item() == pytest.approx(expected, abs=1e-4)


def test_single_samples_are_spared_in_the_first_half():
    for number in (float, lambda done: torch.tensor(done, dtype=torch.float64)):
        sparing = Sparing.empty(3)
        early = [sparing.clock(number(done), OPENED)[0].item() for done in (0.1, 0.4, 0.45, 0.5, 0.9)]
        assert early == pytest.approx([1, 1, 0.5, 0, 0], abs=1e-4)


def test_where_evidence_comes_late_they_are_for_a_fifth_of_the_training():
    sparing = Sparing.empty(3)
    sparing.clock(0.6, ~OPENED)
    early = [sparing.clock(progress, OPENED)[0].item() for progress in (0.7, 0.8, 0.85, 0.9, 0.95)]
    assert early == pytest.approx([1, 1, 0.5, 0, 0], abs=1e-4)


def test_whether_a_problem_is_hard_is_settled_by_evidence_in_the_middle_or_later():
    sparing = Sparing.empty(3)
    assert [bool(sparing.clock(done, opened)[1]) for done in (0.4, 0.5, 0.9) for opened in (OPENED, ~OPENED)] == [
        *(False, False),
        *(True, False),
        *(True, False),
    ]


def test_a_problem_is_hard_where_two_fifths_of_what_is_contradicted_are_probable_and_may_be_right():
    sparing, contradicted = Sparing.empty(3), torch.tensor([True] * 4 + [False])
    right, own = torch.tensor([0.9, 0.8, 0.9, 0.0, 1.0]), torch.tensor([0.3, 0.2, 0.05, 0.3, 0.9])
    everyone = torch.tensor([True] * 5)
    sparing.doubt(contradicted, right, own, everyone, torch.tensor(5))
    assert_close(sparing.doubts, torch.tensor([4.0, 1.7]))  # the third is improbable, the fourth rather wrong
    assert sparing.hard().item() == pytest.approx((1.7 / 4 - 0.35) / 0.1, abs=1e-4)
    sparing.doubt(contradicted, right, own, ~everyone, torch.tensor(5))
    assert_close(sparing.doubts, torch.tensor([4.0, 1.7]))


def test_the_arms_are_followed_over_an_epoch():
    sparing, on_trial = Sparing.empty(3), torch.tensor([True, False, False, False])
    contradicted, valid = torch.tensor([True, True, False, True]), torch.tensor([True, True, True, False])
    for _ in range(2):
        sparing.follow(contradicted, on_trial, valid, torch.tensor(12))
    assert_close(sparing.arms, 1.75 * torch.tensor([[1.0, 2.0], [1.0, 1.0]]))  # three of twelve samples go each time


def test_pairs_are_those_of_all_samples_as_they_were_last_seen():
    memory, generator = Memory.empty(2000, 4), torch.Generator().manual_seed(0)
    for _ in range(80):
        indices = torch.randperm(60, generator=generator)[:9]
        labels, valid = indices % 4, torch.rand(9, generator=generator) < 0.8
        logits = torch.randn(9, 4, generator=generator)
        margins = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(0.2), valid)
        taken = memory.relative(margins, labels, indices, valid)
        memory.spared(torch.ones(9), taken, labels, indices, valid, 0.1)
    assert (memory.columns["label"][:60] >= 0).all()
    counted = torch.zeros(4, 4, dtype=torch.int32)
    for taken_for, label in zip(memory.columns["taken_for"][:60], memory.columns["label"][:60], strict=True):
        counted[taken_for, label] += 1
    assert torch.equal(memory.sparing.pairs, counted)
    assert (counted.diagonal() < counted.sum(dim=1)).any()


def visit(memory, probability, index, progress, right=0.0):
    """A sample of class 0 that the network takes for class 1, leaving its label this probability."""
    logits = torch.tensor([[probability, 1 - probability - 0.01, 0.01]]).log()
    labels, indices = torch.tensor([0]), torch.tensor([index])
    margins = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(0.2), YES)
    taken = memory.relative(margins, labels, indices, YES)
    return memory.spared(torch.tensor([right]), taken, labels, indices, YES, progress).item()


def ready(opened=True):
    """A memory large enough, in which nothing is memorised; 2 % of what is taken for class 1 have label 0."""
    memory = Memory.empty(4000, 3)
    memory.census.counts[:, 0] = 1300
    memory.census.opened.fill_(opened)
    memory.sparing.arms.copy_(filled(0.4, 0.4).arms)
    memory.sparing.pairs.copy_(torch.tensor([[1000, 0, 0], [20, 960, 20], [0, 0, 1000]]))
    return memory


def on_trial(index):
    """Whether a sample is, in such a memory."""
    return ready().census.sizes(torch.tensor(0)).on_trial(torch.tensor(index))


def hard(share=1.0):
    """A training past its middle in which this share of what is contradicted would have been spared."""
    memory = ready()
    memory.sparing.began.fill_(0.1)
    memory.sparing.doubts.copy_(torch.tensor([1000.0, 1000 * share]))
    return memory


def test_a_half_hearted_contradiction_is_spared_early_and_a_firm_one_is_not():
    index = next(i for i in range(100) if not on_trial(i))
    assert visit(ready(), 0.2, index, 0.1) > 0.95
    assert visit(ready(), 0.005, index, 0.1) < 0.05
    assert visit(hard(0.0), 0.2, index, 0.45) == pytest.approx(visit(ready(), 0.2, index, 0.1) / 2, abs=1e-3)
    assert visit(hard(0.0), 0.2, index, 0.6) == 0
    assert visit(ready(opened=False), 0.2, index, 0.1) == 0  # without evidence there is nothing to be spared from
    assert visit(ready(), 0.005, index, 0.1, right=0.7) == pytest.approx(0.7)  # sparing takes no weight away


@pytest.mark.parametrize(("share", "weight"), [(0.3, 0.0), (0.4, 0.5), (0.5, 1.0)])
def test_where_problems_are_hard_everybody_is_spared_late_however_improbable(share, weight):
    index = next(i for i in range(100) if not on_trial(i))
    assert visit(hard(share), 0.005, index, 0.6) == pytest.approx(weight, abs=1e-4)
    assert visit(hard(share), 0.005, index, 0.2) < 0.05  # not before


def test_nothing_is_counted_late():
    memory = hard()
    before = memory.sparing.arms.clone(), memory.sparing.doubts.clone()
    visit(memory, 0.2, 0, 0.6)
    assert torch.equal(memory.sparing.arms, before[0])
    assert torch.equal(memory.sparing.doubts, before[1])


@pytest.mark.parametrize("progress", [0.1, 0.6])
def test_samples_on_trial_are_never_spared(progress):
    index = next(i for i in range(100) if on_trial(i))
    assert visit(hard(), 0.2, index, progress) == 0


def test_the_label_s_probability_is_remembered_over_half_of_all_visits():
    memory = Memory.empty(2000, 3)
    memory.census.num_visits.fill_(38)
    for probability in (0.2, 0.4):
        visit(memory, probability, 0, 0.1)
    rate = 2 / (2 + 40)  # one sample, and its fortieth visit
    assert memory.columns["own"][0].item() == pytest.approx(0.2 + rate * 0.2, abs=1e-6)


def test_small_sets_are_left_as_they_are_and_count_nothing():
    memory = Memory.empty(1999, 3)
    memory.census.opened.fill_(True)
    memory.sparing.arms.copy_(filled(0.4, 0.4).arms)
    assert visit(memory, 0.2, 0, 0.1, right=0.25) == 0.25
    assert not memory.sparing.pairs.any()


def test_of_more_than_a_thousand_classes_no_pairs_are_counted():
    auto, labels = aw.load("auto"), torch.arange(30)
    auto.reserve(2000, 1500, "cpu")
    for _ in range(3):
        weights = auto.weigh(torch.ones(30), torch.randn(30, 1500), labels, progress=0.1, indices=labels)
    assert auto.memory.sparing.pairs.numel() == 0
    assert torch.isfinite(weights).all()


def test_strategies_that_go_by_belief_spare_whom_auto_spares(monkeypatch):
    """Where progress is known, as it is to strategies in use; a search's workers are not told."""
    full = Evidence(torch.ones(()), torch.ones(()), torch.full((3,), 0.3), torch.ones(()))
    monkeypatch.setattr(Census, "evidence", lambda *_: full)
    index = next(i for i in range(100) if not on_trial(i))

    def belief_in(probability, progress):
        memory = ready()
        logits = torch.tensor([[probability, 1 - probability - 0.01, 0.01]]).log()
        labels, indices = torch.tensor([0]), torch.tensor([index])
        margins = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(1.0), YES)
        return belief(memory, margins, labels, indices, YES, progress).item()

    assert belief_in(0.2, None) < -5
    assert belief_in(0.2, 0.1) > 3
    assert belief_in(0.005, 0.1) < -5


def test_labels_that_are_outnumbered_are_in_neither_arm():
    """Half of a rare class is taken for the common one, so never on trial: others would look more contradicted."""
    memory, indices = Memory.empty(4000, 2), torch.arange(4000)
    labels = (indices % 10 == 0).long()
    taken_for = torch.where(indices % 20 == 0, 0, labels)
    logits = 4.0 * torch.nn.functional.one_hot(taken_for, 2)
    everyone = torch.ones(4000, dtype=torch.bool)
    for _ in range(4):
        margins = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(0.2), everyone)
        taken = memory.relative(margins, labels, indices, everyone)
        memory.spared(torch.ones(4000), taken, labels, indices, everyone, 0.3)
    assert memory.sparing.arms[1].max() < 1  # of 200, in the first epoch, before classes are counted


def test_a_memory_that_spares_goes_on_from_its_state_to_the_same_weights():
    labels, auto, other = torch.arange(2400) % 5, aw.load("auto"), aw.load("auto")
    wrong = torch.rand(2400, generator=torch.Generator().manual_seed(0)) < 0.3
    looks = 3.0 * torch.nn.functional.one_hot((labels + wrong.long()) % 5, 5)

    def weights(weigher, step):
        generator = torch.Generator().manual_seed(step)
        indices = torch.randperm(2400, generator=generator)[:600]
        logits = looks[indices] + torch.randn(600, 5, generator=generator)
        return weigher.weigh(torch.ones(600), logits, labels[indices], progress=step / 40, indices=indices)

    for step in range(25):
        weights(auto, step)
    other.load_state_dict(auto.state_dict())
    assert other.memory.census.opened
    assert (other.memory.sparing.doubts > 0).all()
    for step in range(25, 40):
        assert torch.equal(weights(auto, step), weights(other, step))
