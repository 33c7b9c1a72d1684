import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autoweight.config import DataConfig
from autoweight.data import Samples, as_samples, check_training_data, load_pool
from autoweight.data.augmentation import crop_flip
from autoweight.data.corruptions import asymmetric_noise, long_tail, step_imbalance, uniform_noise
from autoweight.data.loader import Loader
from autoweight.data.splits import stratified_split
from autoweight.errors import UserError

from .conftest import make_blobs


def load_splits(config, seed, **options):
    return load_pool(config).splits(config, seed, **options)


def wrong_share_within(samples, expected):
    """Whether the number of wrong labels lies within five binomial deviations of what is expected, and five labels.

    Where next to none are expected deviations are next to nothing too, and one wrong label is no wonder.
    """
    count = len(samples)
    deviation = (count * expected * (1 - expected)) ** 0.5
    few = 5 if deviation else 0
    return abs(int((~samples.clean).sum()) - count * expected) <= 5 * deviation + few + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1), st.integers(0, 2**31), st.integers(2, 10))
@example(rate=1e-6, seed=8, classes=5)
def test_noise_rates_lie_within_binomial_bounds(rate, seed, classes):
    samples = make_blobs(2000, classes)
    assert wrong_share_within(uniform_noise(samples, rate, seed), rate * (1 - 1 / classes))
    assert wrong_share_within(uniform_noise(samples, rate, seed, redraw_true=False), rate)
    assert wrong_share_within(asymmetric_noise(samples, rate, seed), rate)


def test_corruptions_are_pure_and_keep_the_truth():
    samples = make_blobs(300)
    before = samples.labels.clone()
    noisy = uniform_noise(samples, 0.5, seed=3)
    assert torch.equal(samples.labels, before)
    assert torch.equal(noisy.true_labels, before)
    assert torch.equal(noisy.labels, uniform_noise(samples, 0.5, seed=3).labels)
    assert not torch.equal(noisy.labels, uniform_noise(samples, 0.5, seed=4).labels)


def test_uniform_noise_draws_all_classes_alike():
    noisy = uniform_noise(make_blobs(9000, 3), 1.0, seed=0)
    assert (noisy.class_counts / 9000 - 1 / 3).abs().max() < 0.03


def test_asymmetric_noise_goes_where_the_mapping_says():
    samples = make_blobs(300, 3)
    mapping = torch.tensor([2, 1, 0])
    noisy = asymmetric_noise(samples, 1.0, 0, mapping)
    assert torch.equal(noisy.labels, mapping[samples.labels])
    with pytest.raises(UserError, match="mapping"):
        asymmetric_noise(samples, 0.1, 0, torch.tensor([0, 1, 3]))


def test_step_imbalance_as_the_paper_cuts():
    cut = step_imbalance(make_blobs(5000, 10), rare_classes=(0, 1), factor=25.0, seed=0)
    assert cut.class_counts.tolist() == [20, 20] + [500] * 8


def test_long_tail_falls_geometrically():
    counts = long_tail(make_blobs(5000, 10), factor=100.0, seed=0).class_counts
    assert counts.tolist() == [round(500 * 100 ** (-c / 9)) for c in range(10)]


def test_source_tells_where_a_sample_came_from():
    samples = make_blobs(100, 4)
    cut = long_tail(samples, 10.0, seed=1)
    assert torch.equal(samples.inputs[cut.source], cut.inputs)
    part = stratified_split(cut, (10,), 0)[0]
    assert torch.equal(samples.inputs[part.source], part.inputs)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 2**31))
def test_splits_are_disjoint_and_stratified(first, second, seed):
    samples = make_blobs(120, 4)
    parts = stratified_split(samples, (first, second), seed)
    assert [len(part) for part in parts] == [first, second, 120 - first - second]
    together = torch.cat([part.source for part in parts])
    assert together.sort().values.tolist() == list(range(120))
    for part in parts:
        assert (part.class_counts - len(part) / 4).abs().max() <= 1.001


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(["uniform", "uniform_other", "asymmetric"]), st.integers(0, 10**6))
def test_validation_and_test_labels_are_never_corrupted(noise, seed):
    splits = load_splits(DataConfig(noise=noise, noise_rate=0.9, imbalance="longtail", imbalance_factor=5.0), seed)
    assert not splits.train.clean.all()
    assert splits.val.clean.all()
    assert splits.test.clean.all()


def test_digits_parts_are_disjoint_and_the_test_part_is_fixed():
    first, second = load_splits(DataConfig(), 0), load_splits(DataConfig(), 1)
    assert [len(part) for part in first] == [1000, 250, 547]
    assert torch.equal(first.test.inputs, second.test.inputs)
    assert not torch.equal(first.train.inputs, second.train.inputs)
    rows = torch.cat([part.inputs.flatten(1) for part in first])
    assert len(rows.unique(dim=0)) == len(rows)


def test_train_on_all_takes_everything_but_the_test_part():
    config = DataConfig(train_on_all=True)
    assert len(load_splits(config, 0, final=True).train) == 1250
    assert len(load_splits(config, 0).train) == 1000


def test_loader_gives_the_same_order_for_the_same_seed_from_any_step():
    samples = make_blobs(50)
    rows = [batch.indices for batch in Loader(samples, 16, seed=5).batches(0, 9)]
    again = [batch.indices for batch in Loader(samples, 16, seed=5).batches(4, 9)]
    assert all(torch.equal(one, two) for one, two in zip(rows[4:], again, strict=True))
    epoch = torch.cat(rows[:3])
    assert len(epoch.unique()) == 48
    assert not torch.equal(rows[0], rows[3])
    assert not torch.equal(rows[0], next(iter(Loader(samples, 16, seed=6).batches(0, 1))).indices)


def test_loader_gives_inputs_and_labels_of_the_indices():
    samples = make_blobs(50)
    batch = next(iter(Loader(samples, 16, seed=0).batches(0, 1)))
    assert torch.equal(batch.inputs, samples.inputs[batch.indices])
    assert torch.equal(batch.labels, samples.labels[batch.indices])


def test_crop_flip_shows_a_window_of_the_padded_image():
    images = torch.arange(1, 40 * 3 * 6 * 5 + 1, dtype=torch.float32).view(40, 3, 6, 5)
    row = Loader(Samples.of(images, torch.zeros(40, dtype=torch.long), 1), 40, 0, "crop_flip").plan(0).row(0)
    changed = crop_flip(images, row.window, row.flip)
    padded = torch.nn.functional.pad(images, (4,) * 4)
    for image, whole, top, left, flip in zip(changed, padded, *row.window.T, row.flip, strict=True):
        window = whole[:, top : top + 6, left : left + 5]
        assert torch.equal(image, window.flip(-1) if flip else window)
    assert row.flip.any()
    assert not row.flip.all()
    assert set(row.window[:, 0].tolist()) == set(row.window[:, 1].tolist()) == set(range(9))


def test_a_plan_row_chosen_on_the_device_is_the_same():
    plan = Loader(make_blobs(50), 16, seed=0).plan(2)
    for one, two in zip(plan.row(1), plan.row(torch.tensor(1)), strict=True):
        assert torch.equal(one, two)


def test_augmentation_differs_from_step_to_step_but_not_from_run_to_run():
    images = Samples.of(torch.rand(8, 1, 8, 8), torch.arange(8) % 2, 2)
    one, two = ([b.inputs for b in Loader(images, 8, 0, "crop_flip").batches(0, 2)] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not torch.equal(one[0].sum(dim=(0, 1)), one[1].sum(dim=(0, 1)))


def test_samples_from_tensors_and_datasets(blobs):
    pair = as_samples((blobs.inputs, blobs.labels))
    dataset = as_samples(torch.utils.data.TensorDataset(blobs.inputs, blobs.labels))
    for samples in (pair, dataset):
        assert torch.equal(samples.inputs, blobs.inputs)
        assert torch.equal(samples.labels, blobs.labels)
        assert samples.num_classes == 3


def test_labels_of_a_dataset_are_not_rounded(blobs):
    with pytest.raises(UserError, match="whole numbers"):
        as_samples(torch.utils.data.TensorDataset(blobs.inputs, blobs.labels + 0.7))


GOOD = torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("inputs", "labels", "sentence"),
    [
        (GOOD, torch.tensor([0, 1, 2, 3]), "label 3 is out of range"),
        (GOOD, torch.tensor([0, 1, 2, -1]), "one is -1"),
        (GOOD, torch.tensor([0.0, 1.0, 2.0, 1.0]), "whole numbers"),
        (GOOD, torch.tensor([[0], [1], [2], [1]]), "one dimension"),
        (torch.tensor([[0.0], [1.0], [float("nan")], [0.0]]), torch.tensor([0, 1, 2, 0]), "sample 2 has a NaN"),
        (torch.tensor([[0.0], [float("inf")], [0.0], [0.0]]), torch.tensor([0, 1, 2, 0]), "sample 1 has a NaN"),
        (GOOD[:0], torch.tensor([], dtype=torch.long), "empty"),
        (GOOD[:, 0], torch.tensor([0, 1, 2, 0]), "at least one of values"),
        (GOOD, torch.tensor([0, 1]), "4 inputs, but 2 labels"),
    ],
)
def test_bad_samples_get_one_sentence(inputs, labels, sentence):
    with pytest.raises(UserError, match=sentence):
        Samples.of(inputs, labels, num_classes=3)


def test_data_that_cannot_be_trained_on(blobs):
    empty = blobs.take(torch.tensor([], dtype=torch.long))
    with pytest.raises(UserError, match="training set is empty"):
        check_training_data(empty, blobs, 4)
    with pytest.raises(UserError, match="validation set is empty"):
        check_training_data(blobs, empty, 4)
    with pytest.raises(UserError, match="class 2 has no training sample"):
        check_training_data(blobs.take((blobs.labels < 2).nonzero().flatten()), blobs, 4)
    with pytest.raises(UserError, match="batch of 61 is larger"):
        check_training_data(blobs, blobs, 61)
    with pytest.raises(UserError, match="classes"):
        check_training_data(blobs, make_blobs(60, 4), 4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: uniform_noise(s, 1.5, 0), "from 0 to 1"),
        (lambda s: uniform_noise(s, float("nan"), 0), "from 0 to 1"),
        (lambda s: long_tail(s, 0.5, 0), "at least 1"),
        (lambda s: step_imbalance(s, (7,), 2.0, 0), "rare class 7"),
        (lambda s: stratified_split(s, (100, 100), 0), "do not fit"),
        (lambda s: stratified_split(s, (-1,), 0), "negative"),
    ],
)
def test_bad_corruptions_get_one_sentence(blobs, call, sentence):
    with pytest.raises(UserError, match=sentence):
        call(blobs)


def test_plans_are_drawn_by_one_thread_and_the_users_number_comes_back():
    loader, seen = Loader(make_blobs(), 16, seed=1), []
    nothing = loader.augment.draw
    loader.augment = loader.augment._replace(
        draw=lambda *given: seen.append(torch.get_num_threads()) or nothing(*given)
    )
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        loader.plan(0)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == [1]
