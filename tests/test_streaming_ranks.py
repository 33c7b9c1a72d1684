"""Streams over ranks: each reads its part of every batch, and all come to what one process comes to."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from autoweight.data.digests import digests
from autoweight.data.loader import Loader
from autoweight.data.reading import Reading
from autoweight.data.streamed import Streamed
from autoweight.ranks import ALONE, Ranks
from autoweight.training.loop import make_loader

from .conftest import make_blobs
from .launch import Launched
from .stream_jobs import over_ranks, streamed, trained
from .test_streaming import Blobs


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two ranks came to."""
    out = tmp_path_factory.mktemp("streams")
    launched = Launched(2, over_ranks, out, out=out)
    assert launched.wait() == [0, 0], launched.said
    return [torch.load(out / f"found-{rank}", weights_only=False) for rank in range(2)]


def test_ranks_read_their_parts_of_what_one_process_reads():
    whole = list(make_loader(streamed(()), 16, 1, "none").batches(1, 5))  # from the middle of an epoch
    parts = [list(make_loader(streamed(()), 16, 1, "none", Ranks(rank, 2)).batches(1, 5)) for rank in range(2)]
    resident = Loader(make_blobs(), 16, seed=1).batches(1, 5)
    for one, first, second, memory in zip(whole, *parts, resident, strict=True):
        for whole_part, parts_of_it in zip(one, zip(first, second, strict=True), strict=True):
            assert torch.equal(whole_part, torch.cat(parts_of_it))
        assert torch.equal(one.indices, memory.indices)


@pytest.mark.parametrize(("name", "bad"), [("whole", ()), ("bad", (7, 20))])
def test_a_streamed_training_over_ranks_is_that_of_one_process_to_rounding(found, name, bad):
    alone = trained(streamed(bad), ALONE)
    for own in found:
        assert own[name].keys() == alone.keys()
        for key, value in alone.items():
            assert_close(own[name][key], value, atol=1e-5, rtol=1e-4, msg=key)
            assert torch.equal(own[name][key], found[0][name][key])


def test_ranks_skip_what_cannot_be_read_between_them(found):
    assert found[0]["skipped"].keys() | found[1]["skipped"].keys() == {7, 20}


def test_a_rank_fills_its_part_up_and_no_more():
    data, bad = Blobs(bad=(7,)), {}
    stream = Streamed.of(data, Reading(bad_samples="skip"), labels=data.blobs.labels)
    for rank in range(2):
        loader = make_loader(replace(stream, bad=bad), 4, 1, "none", Ranks(rank, 2))
        assert {len(batch.labels) for batch in loader.batches(0, 30)} == {2}
    assert bad.keys() == {7}


def test_ranks_go_on_in_the_middle_of_an_epoch_to_the_same_bits(found):
    for own in found:
        assert own["gone on"].keys() == own["whole"].keys()
        assert all(torch.equal(value, own["whole"][key]) for key, value in own["gone on"].items())


def test_ranks_that_stream_other_files_are_told_apart():
    one, two, again = (replace(streamed(()), names=np.array([f"{folder}/{n}" for n in range(60)])) for folder in "aba")
    assert digests(one) == digests(again) != digests(two)
