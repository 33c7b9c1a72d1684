"""What cannot be a memory, or a place in one: each gets one sentence, and changes nothing."""

from collections import UserDict
from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, TensorDataset

import autoweight as aw
from autoweight.sharded import Sharded
from autoweight.strategy import remembering

SAMPLES, CLASSES = 96, 3


def batch(count=SAMPLES, classes=CLASSES):
    labels, logits = torch.arange(count) % classes, torch.randn(count, classes)
    return cross_entropy(logits, labels, reduction="none"), logits, labels


def used(count=SAMPLES, classes=CLASSES, name="auto"):
    """A weigher that has seen so many samples."""
    weigher = aw.load(name)
    weigher.weigh(*batch(count, classes), progress=0.1, indices=torch.arange(count))
    return weigher


def kept(weigher):
    return {name: value.clone() for name, value in weigher.state_dict().items()}


def same(state, other):
    return state.keys() == other.keys() and all(torch.equal(state[name], other[name]) for name in state)


STATES = {
    "another shape": (
        lambda state: state | {"margin": torch.zeros(3)},
        r"keeps margin of shape \(96,\), but was given \(3,\): that is of another data set",
    ),
    "no shape": (lambda state: state | {"loss_sums": torch.tensor(1)}, r"loss_sums of shape \(\d, 3\), but was given"),
    "a name lacks": (
        lambda state: {name: value for name, value in state.items() if name != "label"},
        "Auto was given a state that lacks label: give what",
    ),
    "names besides": (lambda state: state | {"a": 1, "b": 2}, "a state that has a, b besides: give what"),
    "a word": (lambda state: state | {"arms": "x"}, "was given arms as str, not as a tensor"),
    "nothing": (lambda state: None, r"takes the dict that state_dict\(\) gave, but was given NoneType"),
    "a list": (list, r"takes the dict that state_dict\(\) gave, but was given list"),
}


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_a_state_that_is_refused_changes_nothing(name, reserved):
    spoil, sentence = STATES[name]
    weigher = aw.load("auto")
    if reserved:
        weigher.reserve(SAMPLES, CLASSES, "cpu")
    weigher.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES))
    before = kept(weigher)
    with pytest.raises(aw.UserError, match=sentence):
        weigher.load_state_dict(spoil(before))
    assert same(weigher.state_dict(), before)
    weigher.load_state_dict(before)


def test_a_strategy_for_other_class_counts_has_a_memory_of_its_own():
    strategy = aw.Strategy(torch.zeros(2, 4), aw.Rule(("label", "margin")), class_counts=torch.ones(CLASSES))
    strategy.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES))
    before, other = kept(strategy), strategy.with_class_counts(torch.ones(5))
    other.weigh(*batch(classes=5), progress=0.1, indices=torch.arange(SAMPLES))
    assert same(strategy.state_dict(), before)


@pytest.mark.parametrize("other", [{"count": 30}, {"count": 2 * SAMPLES}, {"classes": 4}])
def test_a_memory_is_not_replaced_by_one_of_another_training(other):
    weigher, state = used(), kept(used(**other))
    before = kept(weigher)
    with pytest.raises(aw.UserError, match=r"but has one of 96 and 3: load it into a fresh strategy, or have this one"):
        weigher.load_state_dict(state)
    assert same(weigher.state_dict(), before)
    fresh = aw.load("auto")
    for one in (fresh, weigher):
        one.load_state_dict({})
        one.load_state_dict(state)
        assert same(one.state_dict(), state)


@pytest.mark.parametrize("lowest", [25 * 10**7, 10**12, 2**63 - SAMPLES])
@pytest.mark.parametrize("begun", [False, True])
def test_ids_are_no_positions(lowest, begun):
    weigher = used() if begun else aw.load("auto")
    before = kept(weigher)
    with pytest.raises(
        aw.UserError, match=r"index \d+ is out of range: .* aw.Indexed.*; if it is as large, call weigher.r"
    ):
        weigher.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES) + lowest)
    assert same(weigher.state_dict(), before)


def test_a_memory_that_takes_much_room_is_said_once_and_one_that_cannot_be_had_in_a_sentence(monkeypatch):
    monkeypatch.setattr(remembering, "_MUCH", remembering._BYTES * 500)
    weigher = used()
    with pytest.warns(
        UserWarning, match=r"indices reach 695, so the memory takes 0\.0 GB: if the training set"
    ) as said:
        weigher.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES) + 600)
    assert len(said) == 1
    assert said[0].filename == __file__
    weigher.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES) + 6000)
    before = kept(weigher)
    with pytest.raises(aw.UserError, match=r"no room for a memory of 10{15} samples, 72000000\.0 GB: indices"):
        weigher.reserve(10**15, CLASSES, "cpu")
    assert same(weigher.state_dict(), before)
    weigher.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES) + 60000)  # which still grows


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_a_mask_is_no_position(kind):
    with pytest.raises(aw.UserError, match=f"indices must be whole numbers, but are {kind}: pass positions in the"):
        aw.load("auto").weigh(*batch(), progress=0.1, indices=(torch.arange(SAMPLES) > 9).to(kind))


def test_an_indexed_set_reads_what_its_data_set_reads():
    rows = aw.Indexed(TensorDataset(torch.arange(9) * 10))
    batches = DataLoader(rows, sampler=BatchSampler(range(9), 4, drop_last=False), batch_size=None)
    assert [[values.tolist() for values in batch] for batch in batches][2] == [[80], [8]]
    assert rows[[0, -1]][1].tolist() == [0, 8]
    with pytest.raises(aw.UserError, match="an index, or a list of them, but not a slice"):
        rows[0:3]
    assert aw.Indexed([UserDict(x=1)])[0] == {"x": 1, "index": 0}


def test_an_indexed_set_counts_from_the_end_as_lists_do():
    rows = aw.Indexed([("a", 0), ("b", 1)])
    assert rows[-1] == rows[1] == ("b", 1, 1)
    for beyond in (2, -3):
        with pytest.raises(IndexError, match=f"index {beyond} is out of range: the data set has 2 samples"):
            rows[beyond]


def test_a_memory_that_was_begun_in_inference_mode_lasts_beyond_it():
    auto = aw.load("auto")
    with torch.inference_mode():
        auto.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES))
        other = aw.load("auto")
        other.load_state_dict(auto.state_dict())
    weights = [one.weigh(*batch(), progress=0.1, indices=torch.arange(SAMPLES)) for one in (auto, other)]
    assert torch.cat(weights).isfinite().all()


@pytest.mark.parametrize("sizes", [(-1, 3), ("a", 3), (10.0, 3), (10, -2), (10, None)])
def test_a_memory_that_is_reserved_has_whole_sizes(sizes):
    for begin in (aw.load("auto").reserve, partial(Sharded, aw.load("auto"))):
        with pytest.raises(aw.UserError, match="a memory is of whole numbers of samples and classes"):
            begin(*sizes, "cpu")


def test_a_memory_is_reserved_on_a_device_that_there_is():
    for begin in (aw.load("auto").reserve, partial(Sharded, aw.load("auto"))):
        with pytest.raises(aw.UserError, match="there is no device 'gpu' here: use cpu, or cuda"):
            begin(SAMPLES, CLASSES, "gpu")


def test_a_class_beyond_those_that_were_reserved_is_refused():
    """A network may have outputs to spare; a label may not."""
    reserved, shared = aw.load("auto"), Sharded(aw.load("auto"), SAMPLES, CLASSES - 1)
    reserved.reserve(SAMPLES, CLASSES - 1, "cpu")
    losses, logits, labels = batch(8)
    for weigher in (reserved, shared):
        with pytest.raises(aw.UserError, match="label 2 is out of range: the memory is of 2 classes"):
            weigher.weigh(losses, logits, labels, progress=0.1, indices=torch.arange(8))
        few = labels.clamp(max=CLASSES - 2)
        assert weigher.weigh(losses, logits, few, progress=0.1, indices=torch.arange(8)).tolist() == [1] * 8


def test_shapes_that_do_not_fit_are_refused_where_a_sample_comes_twice_too():
    losses, logits, labels = batch(8)
    twice = torch.tensor([0, 1, 2, 3, 4, 5, 6, 0])
    for weigher in (aw.load("auto"), Sharded(aw.load("auto"), SAMPLES, CLASSES)):
        with pytest.raises(aw.UserError, match=r"shapes are \(8,\), \(8, 3\) and \(5,\)"):
            weigher.weigh(losses, logits, labels[:5], progress=0.1, indices=twice)
