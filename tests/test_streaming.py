"""Data sets that are read as they come, through torch's DataLoader."""

import random
from collections import UserDict
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, Subset

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.convert import as_data
from autoweight.data.dataset import Samples
from autoweight.data.loader import Loader
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.training.evaluate import score

from .conftest import make_blobs

TRAINING = TrainingConfig(
    epochs=3, batch_size=16, num_stages=4, schedule="cosine", optimizer="adamw", learning_rate=0.01
)


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


@dataclass
class Blobs(Dataset):
    """Blobs, one at a time; some cannot be read, and with `noise` each visit differs."""

    noise: float = 0.0
    bad: tuple[int, ...] = ()
    blobs: Samples = field(default_factory=make_blobs)

    def __len__(self):
        return len(self.blobs)

    def __getitem__(self, index):
        if index in self.bad:
            raise OSError(f"image file {index}.png is truncated")
        shift = torch.randn(2) + np.random.randn() + random.random()
        return self.blobs.inputs[index] + self.noise * shift, int(self.blobs.labels[index])


def params(fitted: aw.Fitted) -> dict[str, torch.Tensor]:
    return fitted.network.state_dict()


def fit(data, **options) -> aw.Fitted:
    return aw.fit(make_model, data, training=TRAINING, seed=3, **options)


def assert_same(one: aw.Fitted, two: aw.Fitted) -> None:
    assert all(torch.equal(value, params(two)[name]) for name, value in params(one).items())


def test_a_stream_trains_to_the_bits_of_memory():
    blobs = Blobs()
    assert_same(fit(blobs, stream=True), fit(blobs, stream=False))
    assert_same(fit(blobs, stream=True), fit((blobs.blobs.inputs, blobs.blobs.labels)))


def test_transforms_are_drawn_anew_at_every_visit_alike_for_any_number_of_workers():
    streamed = Streamed.of(Blobs(noise=0.1))
    loader = StreamedLoader(streamed, 16, seed=1)
    seen = list(loader.batches(0, 6))  # two epochs of three steps
    resident = list(Loader(make_blobs(), 16, seed=1).batches(0, 6))
    assert [batch.indices.tolist() for batch in seen] == [batch.indices.tolist() for batch in resident]
    visits = {int(index): [] for index in seen[0].indices}
    for batch in seen:
        for index, value in zip(batch.indices.tolist(), batch.inputs, strict=True):
            visits.setdefault(index, []).append(value)
    twice = [values for values in visits.values() if len(values) == 2]
    assert twice
    assert not any(torch.equal(*values) for values in twice)
    by_workers = StreamedLoader(Streamed.of(Blobs(noise=0.1), Reading(num_workers=2)), 16, seed=1)
    for one, two in zip(seen[4:], by_workers.batches(4, 6), strict=True):  # from the middle of an epoch
        assert torch.equal(one.inputs, two.inputs)
        assert torch.equal(one.labels, two.labels)


def test_reading_leaves_the_users_random_numbers_alone():
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    expected = torch.rand(1), np.random.rand(), random.random()
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    data = as_data(Blobs(noise=0.1))
    list(StreamedLoader(data, 16, seed=1).batches(0, 2))
    assert (torch.rand(1), np.random.rand(), random.random()) == expected


def test_a_killed_stream_goes_on_to_the_same_bits(tmp_path):
    data = Blobs(noise=0.1)
    whole = fit(data, weigher="auto")

    def kill(report):
        if report.stage == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(data, weigher="auto", checkpoint=tmp_path / "half", listen=kill)
    gone_on = fit(data, weigher="auto", checkpoint=tmp_path / "half")
    assert [report.stage for report in gone_on.history] == [1, 2, 3]
    assert_same(whole, gone_on)


def test_what_is_streamed_and_what_is_not():
    assert isinstance(as_data(Blobs()), Samples)
    assert isinstance(as_data(Blobs(noise=0.1)), Streamed)
    assert isinstance(as_data(Blobs(), stream=True), Streamed)
    assert isinstance(as_data(Blobs(), reading=Reading(collate_fn=torch.utils.data.default_collate)), Streamed)
    with pytest.warns(UserWarning, match="its random transforms are frozen"):
        assert isinstance(as_data(Blobs(noise=0.1), stream=False), Samples)


def test_data_that_do_not_fit_are_streamed():
    class Large(Dataset):
        targets = torch.arange(20_000) % 2

        def __len__(self):
            return len(self.targets)

        def __getitem__(self, index):
            return torch.zeros(3, 224, 224), int(self.targets[index])

    data = as_data(Large())  # would take 12 GB
    assert isinstance(data, Streamed)
    assert data.class_counts.tolist() == [10_000, 10_000]
    assert data.input_shape == (3, 224, 224)


def test_labels_are_told_or_read():
    class Told(Blobs):
        reads = 0

        @property
        def targets(self):
            return self.blobs.labels.tolist()

        def __getitem__(self, index):
            Told.reads += 1
            return super().__getitem__(index)

    data = Told()
    assert torch.equal(Streamed.of(data).labels, data.blobs.labels)
    assert Told.reads < 10
    part = Streamed.of(Subset(data, [5, 3, 9]))
    assert part.labels.tolist() == data.blobs.labels[[5, 3, 9]].tolist()
    assert torch.equal(Streamed.of(Blobs()).labels, data.blobs.labels)

    class Shifted(Told):
        def __getitem__(self, index):  # as a target transform does
            inputs, label = super().__getitem__(index)
            return inputs, (label + 1) % 3

    assert torch.equal(Streamed.of(Shifted()).labels, (data.blobs.labels + 1) % 3)


def padded(rows):
    length = max(len(row["ids"]) for row in rows)
    ids = torch.tensor([row["ids"] + [0] * (length - len(row["ids"])) for row in rows])
    return {"ids": ids, "label": torch.tensor([row["label"] for row in rows])}


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 3)

    def forward(self, ids):
        return (self.embed(ids) * (ids > 0).unsqueeze(-1)).sum(dim=1)


def test_dict_rows_of_different_lengths_with_a_collate_fn():
    rows = [{"ids": [1 + place % 3] * (1 + place % 4), "label": place % 3} for place in range(60)]
    training = TrainingConfig(epochs=20, batch_size=20, num_stages=2, optimizer="adam", learning_rate=0.1)
    fitted = aw.fit(Bag, rows, collate_fn=padded, training=training, val_data=rows)
    assert fitted.val_score == 1.0


def test_dict_rows_in_memory_keep_their_names():
    rows = [{"ids": torch.tensor([1 + place % 3]), "kind": place % 3} for place in range(60)]
    training = TrainingConfig(epochs=20, batch_size=20, num_stages=2, optimizer="adam", learning_rate=0.1)
    for kind in (dict, UserDict):  # as tokenizers give them
        own = [kind(row) for row in rows]
        assert aw.fit(Bag, own, label_key="kind", training=training, val_data=own).val_score == 1.0


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_samples_are_named_skipped_and_counted_or_refused(workers):
    bad = Blobs(bad=(7, 20))
    refused = (
        r"sample 7 cannot be read, image file 7.png is truncated: replace or remove it, or skip .*bad_samples=\"sk"
    )
    with pytest.raises(aw.UserError, match=refused):
        fit(bad, stream=True, num_workers=workers)
    with pytest.warns(UserWarning, match=r"^2 samples cannot be read and were skipped: sample 7, .*; sample 20, "):
        fitted = fit(bad, stream=True, num_workers=workers, bad_samples="skip")
    assert fitted.skipped.keys() == {7, 20}
    assert fitted.positions.tolist() == [place for place in range(60) if place not in (7, 20)]
    assert torch.equal(fitted.labels, bad.blobs.labels[fitted.positions])


def test_parts_to_validate_and_test_on_say_what_was_skipped_too():
    good, bad = Blobs(), {"bad_samples": "skip", "stream": True}
    for name, part in {"val_data": "validation", "test_data": "test"}.items():
        with pytest.warns(
            UserWarning, match=f"^1 samples of the {part} part cannot be read and were skipped: sample 7, "
        ):
            assert not fit(good, **{name: Blobs(bad=(7,)), **bad}).skipped
    held_out = Streamed.of(Blobs(bad=(7,)), Reading(bad_samples="skip"))
    with pytest.warns(UserWarning, match="^1 samples of the validation part cannot be read"):
        aw.search(make_model, good.blobs, held_out, replace(SEARCH, num_episodes=1), training=TRAINING)


def test_a_sample_that_turns_bad_later_is_skipped_with_its_labels_neighbours_in_place():
    data = Blobs(bad=(7,))
    stream = Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)
    batches = list(StreamedLoader(stream, 20, seed=0).batches(0, 3))
    assert sorted(index for batch in batches for index in batch.indices.tolist()) == [i for i in range(60) if i != 7]
    for batch in batches:
        assert torch.equal(batch.inputs, data.blobs.inputs[batch.indices])
        assert torch.equal(batch.labels, data.blobs.labels[batch.indices])
    (inputs, labels), *_ = stream.chunks(60)
    assert len(inputs) == len(labels) == 59
    assert stream.bad.keys() == {7}
    with pytest.raises(aw.RunError, match="next to no samples can be read, nor others in their places: image file 7"):
        list(StreamedLoader(stream.take(torch.tensor([7])), 1, seed=0).batches(0, 1))


def test_a_batch_of_one_that_skipping_leaves_is_topped_up_with_others():
    """Batch norm can make nothing of one; all epochs train, and the same seed draws the same others."""
    data = Blobs(bad=tuple(place for place in range(60) if place % 3))
    stream = Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)
    once, again = (list(StreamedLoader(stream, 3, seed=0).batches(0, 60)) for _ in range(2))
    assert min(len(batch.indices) for batch in once) == 2
    assert any(len(batch.indices) == 3 for batch in once)
    for batch, other in zip(once, again, strict=True):
        assert torch.equal(batch.inputs, other.inputs)
        assert torch.equal(batch.inputs, data.blobs.inputs[batch.indices])
        assert len(set(batch.indices.tolist())) == len(batch.indices)
    late = list(StreamedLoader(stream, 3, seed=0).batches(40, 60))
    assert all(torch.equal(batch.indices, other.indices) for batch, other in zip(once[40:], late, strict=True))
    training = replace(TRAINING, batch_size=2)
    with pytest.warns(UserWarning, match="40 samples cannot be read and were skipped"):
        fitted = aw.fit(make_model, stream, training=training, weigher=None)
    assert fitted.history[-1].train_loss < 1.0


def test_a_stream_is_evaluated_as_memory_is():
    model, data = make_model(), Blobs()
    assert score(model, Streamed.of(data)) == score(model, data.blobs)


SEARCH = aw.SearchConfig(num_episodes=2, num_workers=5, choice_rounds=1, warmup_stages=1, episode_share=1.0)


def test_a_search_on_a_stream_finds_what_one_in_memory_finds():
    training = replace(TRAINING, epochs=2, num_stages=3)
    val = Blobs(blobs=make_blobs(60, seed=9))
    mlp = lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))  # noqa: E731
    tables = [
        aw.search(mlp, train, val, SEARCH, training=training).table
        for train, val in (
            (Blobs().blobs, val.blobs),
            (Streamed.of(Blobs()), Streamed.of(val)),
        )
    ]
    assert torch.equal(*tables)


def test_samples_of_a_search_that_cannot_be_read_are_skipped_and_said():
    data = Blobs(bad=(7,))
    stream = Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)
    with pytest.warns(UserWarning, match=r"^1 samples cannot be read and were skipped: sample 7, "):
        aw.search(make_model, stream, make_blobs(60, seed=9), replace(SEARCH, num_episodes=1), training=TRAINING)


def test_random_data_sets_are_frozen_for_a_search_unless_they_are_streamed():
    with (
        pytest.warns(UserWarning, match="its random transforms are frozen"),
        pytest.raises(aw.UserError, match="batch of"),
    ):
        aw.search(make_model, Blobs(noise=0.1), make_blobs())


def test_a_stream_in_memory_leaves_out_what_cannot_be_read():
    data = Blobs(bad=(7,))
    memory = Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels).in_memory()
    assert memory.source.tolist() == [place for place in range(60) if place != 7]
    assert torch.equal(memory.inputs, data.blobs.inputs[memory.source])
    assert torch.equal(memory.labels, data.blobs.labels[memory.source])
