"""The control group: by hand-made counts, what is seen of memorising, and what auto makes of it."""

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot
from torch.testing import assert_close

import autoweight as aw
from autoweight.strategy.census import Census, Margins, Told
from autoweight.strategy.control import Control
from autoweight.strategy.counting import lacking

NOBODY = torch.tensor(0)


def sizes(samples, visits=4):
    """Of a set of ten classes that was gone through so often."""
    census = Census.empty(10)
    census.counts[:, 0] = samples // 10
    census.num_visits[...] = samples * visits
    return census.sizes(NOBODY)


@pytest.mark.parametrize(("samples", "expected"), [(6000, 375), (50_000, 500)])
def test_it_is_of_five_hundred_samples_a_sixteenth_at_most_and_not_on_trial(samples, expected):
    own, everyone = sizes(samples), torch.arange(samples)
    control = own.control(everyone)
    assert control.sum() == pytest.approx(expected, rel=0.02)
    assert not (control & own.on_trial(everyone)).any()


def test_both_arms_are_followed_over_an_epoch():
    control, group = Control.empty(), torch.tensor([True, False, False, False])
    contradicted, valid = torch.tensor([True, True, False, True]), torch.tensor([True, True, True, False])
    for _ in range(2):
        control.follow(contradicted, group, valid, torch.tensor(12))
    assert_close(
        control.control_arms, 1.75 * torch.tensor([[1.0, 2.0], [1.0, 1.0]])
    )  # three of twelve samples go each time


def test_what_is_hard_is_probable_and_rather_right():
    control, everyone = Control.empty(), torch.ones(4, dtype=torch.bool)
    contradicted, right = torch.tensor([True, True, True, False]), torch.tensor([0.9, 0.8, 0.0, 0.9])
    control.doubt(contradicted, right, torch.tensor([0.3, 0.05, 0.3, 0.9]), everyone, sizes(6000))
    assert_close(control.plausible, torch.tensor([3.0, 0.9]))  # of ten classes, 0.05 is improbable


def seen(others, hard, visits=500.0, group=0.6):
    """Shares contradicted of the others and of the group, and of the latter what is hard."""
    control = Control.empty()
    control.control_arms.copy_(torch.tensor([[visits, 14 * visits], [visits * group, 14 * visits * others]]))
    control.plausible.copy_(torch.tensor([300.0, 300 * hard]))
    return control


def told(others, hard):
    return seen(others, hard).tell(torch.tensor(4.0), torch.tensor(0.1))


def test_memorising_is_what_others_lack_beyond_a_standard_error():
    arms, error = seen(others=0.56, hard=0.2).control_arms, (0.4 / 0.6 / 500) ** 0.5
    assert lacking(arms, 2.0).item() == pytest.approx(1 - 0.56 / 0.6 + 2 * error)
    assert told(others=0.56, hard=0.2).memorising.item() == pytest.approx((1 - 0.56 / 0.6 - error) / 0.05, abs=1e-5)
    assert told(others=0.5, hard=0.2).memorising == 1
    assert told(others=0.6, hard=0.2).memorising == 0
    assert told(others=0.5, hard=0.28).memorising.item() == pytest.approx(0.5, abs=1e-5)
    assert told(others=0.5, hard=0.4).memorising == 0  # hard, and not wrong


def test_contradicted_labels_that_are_half_plausible_are_hard():
    assert [told(0.5, hard).hard.item() for hard in (0.4, 0.505, 0.6)] == pytest.approx([0, 0.5, 1], abs=1e-5)
    nothing = Control.empty().tell(torch.tensor(4.0), torch.tensor(0.1))
    assert (nothing.memorising, nothing.hard, nothing.left_out) == (0, 0, 1)


@pytest.mark.parametrize(("memorising", "hard", "strength"), [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)])
def test_one_group_of_margins_is_evidence_if_samples_are_memorised_and_none_is_if_they_are_hard(
    memorising, hard, strength
):
    census = Census.empty(10)
    census.counts[:, 0], census.num_visits[...] = 1000, 10**6
    census.margins = lambda: Margins(*torch.tensor([0.6, 1 / 3, 1.0, 0.9, 0.3]))
    evidence = census.evidence(census.sizes(NOBODY), Told(memorising, hard, 0.5))
    assert evidence.others.item() == strength
    assert evidence.control.item() == max(strength, 0.5)


def test_it_is_left_out_over_the_first_visits_in_the_first_half():
    def left_out(visits, progress):
        return Control.left_out(Control.empty(), torch.tensor(visits), torch.tensor(progress)).item()

    assert left_out(3.0, 0.1) == left_out(12.0, 0.4) == 1
    assert left_out(14.0, 0.1) == pytest.approx(0.5)
    assert left_out(3.0, 0.45) == pytest.approx(0.5)
    assert left_out(16.0, 0.1) == 0
    assert left_out(3.0, 0.5) == pytest.approx(0, abs=1e-6)


SAMPLES, CLASSES = 6000, 10
TRUE = torch.arange(SAMPLES) % CLASSES
WRONG = torch.rand(SAMPLES, generator=torch.Generator().manual_seed(0)) < 0.4
GIVEN = torch.where(WRONG, (TRUE + 1 + torch.arange(SAMPLES) // CLASSES % (CLASSES - 1)) % CLASSES, TRUE)


def memorised(epochs, firmness):
    """auto and its last weights, of a network that knows six samples of ten, and memorises all labels bit by bit."""
    auto, generator = aw.load("auto"), torch.Generator().manual_seed(1)
    weights, taught = torch.ones(SAMPLES), torch.zeros(SAMPLES, 1)
    known = torch.rand(SAMPLES, generator=generator) < 0.6
    look = torch.where(known, TRUE, torch.randint(CLASSES, (SAMPLES,), generator=generator))
    guesses = firmness * torch.rand(SAMPLES, 1, generator=generator) * one_hot(look, CLASSES)
    for epoch in range(epochs):
        for indices in torch.randperm(SAMPLES, generator=generator).split(200):
            labels = GIVEN[indices]
            logits = guesses[indices] + 0.4 * taught[indices] * one_hot(labels, CLASSES)
            logits += 0.5 * torch.randn(len(indices), CLASSES, generator=generator)
            losses = cross_entropy(logits, labels, reduction="none")
            weights[indices] = auto.weigh(losses, logits, labels, progress=epoch / 40, indices=indices)
            taught[indices, 0] += weights[indices]  # what is left out is not memorised
    return auto, weights


def test_where_others_are_memorised_wrong_labels_lose_their_weight_before_there_are_two_groups(monkeypatch):
    auto, weights = memorised(epochs=4, firmness=4.0)
    assert auto.memory.census.opened
    assert weights[WRONG].mean() < 0.5 * weights[~WRONG].mean()
    monkeypatch.setattr(Control, "tell", lambda self, visits, progress: Told(left_out=self.left_out(visits, progress)))
    assert not memorised(epochs=4, firmness=4.0)[0].memory.census.opened


def test_before_that_only_the_group_s_contradicted_labels_are_left_out():
    auto, weights = memorised(epochs=2, firmness=3.0)
    own, everyone = auto.memory.census.sizes(NOBODY), torch.arange(SAMPLES)
    control, on_trial = own.control(everyone), own.on_trial(everyone)
    assert weights[control & WRONG].mean() < 0.5
    assert weights[~control & ~on_trial].min() > 0.9
