"""Weighing over two processes is weighing the global batch in one."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import autoweight as aw
from autoweight import distributed
from autoweight.distributed import num_processes, weigh_global

from . import two_ranks
from .two_ranks import PARTS, batch, tokens


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    outs = [folder / "0.pt", folder / "1.pt"]
    ranks = [
        subprocess.Popen([sys.executable, two_ranks.__file__, str(rank), str(folder / "meeting"), str(out)])
        for rank, out in enumerate(outs)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    return [torch.load(out) for out in outs]


def joined(parts):
    return [torch.cat(column) for column in zip(*(batch(part) for part in parts), strict=True)]


def test_weights_are_those_of_the_global_batch_however_uneven(found):
    assert found[0]["processes"] == 2
    for step, parts in enumerate(PARTS[:3]):
        losses, logits, labels, _ = joined(parts)
        whole = aw.Constant(loss=-2.0).weigh(losses, logits, labels, progress=step / 4)
        assert torch.equal(torch.cat([rank["constant"][step] for rank in found]), whole)
        assert [len(rank["constant"][step]) for rank in found] == [len(range(*part.indices(12))) for part in parts]


def test_memories_are_the_same_everywhere_and_count_a_repeated_sample_once(found):
    alone = aw.load("auto")
    for step, parts in enumerate(PARTS):
        losses, logits, labels, indices = joined(parts)
        once = torch.unique(indices)
        rows = [int((indices == one).nonzero()[0]) for one in once]
        alone.weigh(losses[rows], logits[rows], labels[rows], progress=step / 4, indices=indices[rows])
    for rank in found:
        for name, value in alone.state_dict().items():
            torch.testing.assert_close(rank["memory"][name], value)
    assert found[0]["memory"]["counts"][:, 0].tolist() == [4, 4, 4]


def test_a_shared_memory_weighs_as_a_whole_one(found):
    for rank in found:
        assert all(torch.equal(*pair) for pair in rank["sharded"])
        for name, value in rank["whole"].items():
            given = rank["memory"][name]  # which has grown beyond its samples
            assert torch.equal(value, given[: len(value)] if value.dim() else given), name
        torch.testing.assert_close(rank["halves"]["margin"], rank["whole"]["margin"], rtol=0, atol=0.01)
    assert [rank["share"]["label"].tolist() for rank in found] == [[0, 2, 1, 0, 2, 1], [1, 0, 2, 1, 0, 2]]
    assert [rank["share"]["keeper"].tolist() for rank in found] == [[0, 2], [1, 2]]


def test_half_precision_stays_the_users(found):
    assert found[0]["half"].dtype == torch.bfloat16


def test_tokens_padded_to_different_lengths_are_weighed_together(found):
    first, second = tokens(5), [one[1:] for one in tokens(3)]
    flat = [
        torch.cat([one[first[2] != -100], other[second[2] != -100]]) for one, other in zip(first, second, strict=True)
    ]
    whole = aw.Constant(loss=-2.0).weigh(*flat, progress=0.9)
    valid = [first[2] != -100, second[2] != -100]
    given = torch.cat([rank["tokens"][mask] for rank, mask in zip(found, valid, strict=True)])
    torch.testing.assert_close(given, whole)
    assert not found[0]["tokens"][~valid[0]].any()
    labels = found[0]["token_memory"]["label"]
    assert labels[5:9].tolist() == [1, 2, 3, -1]  # five places a sentence, on both ranks
    assert labels[15:19].tolist() == [1, 2, 3, -1]
    assert torch.equal(labels, found[1]["token_memory"]["label"])
    for rank in found:
        whole, shared = rank["refused"]
        assert whole == shared
        assert "samples have 3 tokens, but had 5 before" in whole


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"losses": torch.tensor(0.5)}, r"losses \[batch\] \(reduction='none'\)"),
        ({"logits": torch.zeros(2, 3)}, r"shapes are \(4,\), \(2, 3\) and \(4,\)"),
        ({"labels": torch.zeros(8, dtype=torch.long)}, r"shapes are \(4,\), \(4, 3\) and \(8,\)"),
        ({"labels": [0, 1, 2, 0]}, r"labels must be a tensor, but came as list: use torch\.as_tensor\(labels\)"),
        ({"labels": np.zeros(4, int)}, "labels must be a tensor, but came as ndarray"),
        ({"indices": torch.arange(3)}, r"one index a sample, 4, but their shape is \(3,\)"),
        ({"indices": [0, 1, 2, 3]}, "indices must be a tensor, but came as list"),
        ({"labels": torch.zeros(4, 2).long(), "logits": torch.zeros(4, 3, 3)}, "weights of tokens need losses"),
    ],
)
def test_what_gathering_would_pad_or_crop_is_refused_as_in_one_process(change, said, monkeypatch):
    given = dict(zip(("losses", "logits", "labels", "indices"), batch(slice(0, 4)), strict=True)) | change
    for processes in (1, 2):  # nothing is gathered before
        monkeypatch.setattr(distributed, "num_processes", lambda count=processes: count)
        with pytest.raises(aw.UserError, match=said):
            weigh_global(aw.load("auto"), **given, progress=0.5)


def test_one_process_is_plain_weighing():
    losses, logits, labels, indices = batch(slice(None))
    one, other = aw.load("auto"), aw.load("auto")
    given = weigh_global(one, losses, logits, labels, 0.5, indices)
    assert num_processes() == 1
    assert torch.equal(given, other.weigh(losses, logits, labels, progress=0.5, indices=indices))
