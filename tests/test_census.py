"""The counts that auto goes by."""

import pytest
import torch
from torch.testing import assert_close

from autoweight.strategy.census import Census
from autoweight.strategy.counting import FIXED_POINT, counted
from autoweight.strategy.memory import Memory

CLASSES = 4
NOBODY = torch.tensor(0)


def test_a_large_set_has_a_sixteenth_on_trial():
    census = Census.empty(2)
    census.counts[:, 0] = 25_000
    assert census.sizes(NOBODY).on_trial(torch.arange(50_000)).sum() == pytest.approx(3125, abs=5)


def test_with_evidence_samples_go_back_to_their_lowest_margins_once():
    """Margins of tanh(1 / 2), one way or the other, of two classes; by hand."""
    memory, one = Memory.empty(1, 2), torch.tensor([0])
    yes, rate, firm = torch.tensor([True]), torch.tensor(0.5), torch.tensor(0.5).tanh().item()

    def visit(right):
        logits = torch.tensor([[1.0, 0.0] if right else [0.0, 1.0]])
        return memory.margins(memory.look(logits, one), one, one, rate, yes).item()

    assert visit(False) == pytest.approx(-firm / 2)
    low = -3 * firm / 4
    assert visit(False) == pytest.approx(low)
    assert visit(True) == pytest.approx((low + firm) / 2)
    assert visit(True) == pytest.approx((low + 3 * firm) / 4)
    memory.census.opened.fill_(True)
    forgiven = low + 0.05  # it was at its lowest at the visit before the last
    assert visit(True) == pytest.approx((forgiven + firm) / 2)
    assert memory.columns["lowest"].item() == 2
    assert visit(True) == pytest.approx((forgiven + 3 * firm) / 4)


def test_what_is_counted_of_margins_is_what_they_are():
    census = Census.empty(2)
    margins = torch.tensor([0.5] * 300 + [-0.25] * 100)
    yes, no = torch.ones(400, dtype=torch.bool), torch.zeros(400, dtype=torch.bool)
    first_class = torch.zeros(400, dtype=torch.long)  # all are taken for it; the last hundred are labelled otherwise
    rows = counted(margins, margins).repeat(2, 1, 1)
    census.move(rows, first_class.repeat(2, 1), no, yes)
    lie = census.margins()
    assert lie.contradicted.tolist() == pytest.approx(
        [0.25, 0.25]
    )  # a class that nobody is taken for has what all have
    assert lie.bimodality == pytest.approx(1, abs=1e-4)
    assert lie.contradiction == pytest.approx(25 / 106 / 0.5, abs=1e-4)
    assert lie.agreement == pytest.approx(1 - 0.25 / 0.5)
    assert lie.lasting == 0  # nothing was contradicted before
    census.counts[0, 0] = 400
    on_trial = census.sizes(NOBODY).on_trial(torch.arange(400))
    assert on_trial.sum() == pytest.approx(400 * 0.25, abs=5)  # at most a quarter
    census.follow(margins < 0, margins, census.sizes(yes.sum()))
    assert census.taken_back.tolist() == pytest.approx([1.0, 0])  # 100 of the 100 that are on trial in 400
    assert census.margins().lasting == pytest.approx(1 - 0.01 / 1.01, abs=1e-4)
    census.follow(margins < 0, margins.abs(), census.sizes(yes.sum()))
    assert census.taken_back.tolist() == pytest.approx([1.0, 1.0])
    assert census.margins().lasting == 0
    census.move(rows, torch.stack([first_class, 1 - first_class]), yes, yes)  # now they are taken for the other class
    assert census.believed[:, 0].tolist() == [0, 400 * FIXED_POINT]
    census.move(rows, 1 - first_class.repeat(2, 1), yes, no)  # nobody is on trial any more
    assert not census.believed.any()
    flat, second, is_second = torch.linspace(-1, 1, 2001), torch.ones(2001).long(), torch.ones(2001).bool()
    census.move(counted(flat, flat).repeat(2, 1, 1), second.repeat(2, 1), ~is_second, is_second)
    assert census.margins().bimodality == pytest.approx(5 / 9, abs=1e-3)


def test_counts_are_those_of_the_remembered_margins_by_the_class_believed_in():
    memory, generator = Memory.empty(200, CLASSES), torch.Generator().manual_seed(3)
    for _ in range(120):
        indices = torch.randperm(200, generator=generator)[:7]
        logits, labels = torch.randn(7, CLASSES, generator=generator), indices % CLASSES
        valid = torch.rand(7, generator=generator) < 0.9
        margins = memory.margins(memory.look(logits, labels), labels, indices, torch.tensor(0.2), valid)
        memory.relative(margins, labels, indices, valid)
    columns, census = memory.columns, memory.census
    counted = columns["relative"] > -2
    assert counted.any()
    assert census.sizes(NOBODY).on_trial(counted.nonzero().flatten()).all()
    relative, rivals, labels, raw = (columns[name][counted] for name in ("relative", "rival_class", "label", "margin"))
    believed = torch.where(relative < 0, rivals, labels)
    assert len(believed.unique()) == CLASSES
    for number in range(CLASSES):
        own = relative[believed == number].double()
        powers = [(own**power).sum() for power in (1, 2, 3, 4)]
        against = (own < 0).sum(), (raw[believed == number] < 0).sum()
        sums = [len(own), *against, own.clamp(max=0).sum(), *powers]
        assert_close(census.believed[number] / FIXED_POINT, torch.tensor(sums).float(), atol=1e-4, rtol=0)
    assert census.counts[:, 0].sum() == (columns["label"] >= 0).sum()


def test_weights_are_taken_relative_to_a_mean_halfway_between_their_class_s_and_that_of_all():
    census = Census.empty(3)
    labels = torch.tensor([0] * 400 + [1] * 400)  # of the third class nobody was seen
    census.visit(labels, torch.zeros(2, 800), torch.ones(800, dtype=torch.bool), labels >= 0)
    weights = torch.where(labels == 0, 0.04, 0.64)
    census.follow_weights(weights, labels, labels >= 0)
    scaled = weights / census.halfway_class_means().gather(0, labels)
    overall = (401 * 0.04 + 401 * 0.64 + 1.0) / 803  # one more is counted in each class
    assert_close(census.class_weights, torch.tensor([0.04, 0.64, 1.0]))
    assert_close(scaled[[0, -1]], torch.tensor([0.04 / (0.04 * overall) ** 0.5, 0.64 / (0.64 * overall) ** 0.5]))


@pytest.mark.parametrize("means", [Census.class_means, Census.halfway_class_means])
def test_weights_of_one_stay_one_and_none_is_multiplied_by_more_than_twenty(means):
    census = Census.empty(2)
    labels, valid = torch.tensor([0, 1] * 500), torch.ones(1000, dtype=torch.bool)
    census.follow_weights(torch.ones(1000), labels, valid)
    assert means(census).tolist() == [1.0, 1.0]
    census.follow_weights(torch.full((1000,), 1e-4), labels, valid)
    assert means(census).tolist() == pytest.approx([1 / 20, 1 / 20])


def test_mean_weights_of_classes_do_not_depend_on_the_order_in_which_samples_come():
    generator = torch.Generator().manual_seed(0)
    weights, labels = torch.rand(500, generator=generator) ** 4, torch.arange(500) % 3
    valid, order = torch.rand(500, generator=generator) < 0.9, torch.randperm(500, generator=generator)
    one, two = Census.empty(4), Census.empty(4)
    one.within_class(weights, labels, valid)
    two.within_class(weights[order], labels[order], valid[order])
    assert torch.equal(one.class_weights, two.class_weights)
    means = [weights[valid & (labels == label)].mean() for label in range(3)]
    assert_close(one.class_weights, torch.stack([*means, torch.tensor(1.0)]), atol=1e-3, rtol=0)  # of 150 visits each
