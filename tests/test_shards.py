"""Images in tar archives: where they lie, what they are, and what is said of archives that are wrong."""

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autoweight as aw
from autoweight.cli.own import NO_SPLIT
from autoweight.cli.run import run
from autoweight.data.decoding import decode
from autoweight.data.loader import Loader
from autoweight.data.own import load_own
from autoweight.data.own.kinds import kind_of
from autoweight.data.reading import SKIP, Reading
from autoweight.data.shards import ImageShards
from autoweight.data.streamed import Streamed
from autoweight.data.streamed_loader import StreamedLoader
from autoweight.data.tars import index_of

from .archives import class_folders, pairs, png, tar


def own(path: Path, **settings: object):
    return load_own(replace(NO_SPLIT, path=str(path), test_share=0.0, **settings))


def test_files_with_the_same_stem_belong_together(tmp_path):
    first = {**pairs(range(4), classes=12), "00000.json": b"{}", "._00001.png": b"what a Mac adds", "a/b.cls": b"10"}
    tar(tmp_path / "1.tar", {**first, "a/b.PNG": png(99)})
    tar(tmp_path / "0.tar", pairs(range(9, 10), classes=12))
    images = ImageShards(tmp_path, size=12)
    assert images.names.tolist() == ["0.tar/00009.png", *(f"1.tar/0000{n}.png" for n in range(4)), "1.tar/a/b.PNG"]
    assert images.classes == ["0", "1", "2", "3", "9", "10"]  # numbers by their size
    assert [int(label) for label in images.targets] == [label for _, label in images] == [4, 0, 1, 2, 3, 5]
    for place, seed in enumerate((9, 0, 1, 2, 3, 99)):
        (tmp_path / "one.png").write_bytes(png(seed))
        assert torch.equal(images[place][0], decode(tmp_path / "one.png", 12, 12))


def test_folders_inside_archives_name_classes_and_folders_around_them_parts(tmp_path):
    tar(tmp_path / "train" / "0.tar", class_folders(4))
    tar(tmp_path / "val" / "0.tar", {f"./val/{name}": image for name, image in class_folders(2).items()})
    assert kind_of(tmp_path, "") == "shards"
    data = load_own(replace(NO_SPLIT, path=str(tmp_path)))
    assert (len(data.train), len(data.test)) == (12, 6)
    assert data.train.class_names == ("ant", "bee", "cat")
    assert data.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert data.train.names[5] == "0.tar/bee/1.png"
    assert kind_of(tmp_path / "train" / "0.tar", "") == "shards"


def test_an_index_is_made_once_for_each_archive(tmp_path, monkeypatch):
    shard = tar(tmp_path / "0.tar", pairs(range(3)))
    made = index_of(shard)
    content = shard.read_bytes()
    for place, (offset, size) in enumerate(zip(made.offsets, made.sizes, strict=True)):
        assert content[offset : offset + size] == png(place)
    with monkeypatch.context() as patch:
        patch.setattr(tarfile, "open", None)
        assert all(map(np.array_equal, index_of(shard), made))
    tar(shard, pairs(range(5)))
    assert len(index_of(shard).offsets) == 5
    (tmp_path / "0.tar.index.npz").write_bytes(b"half a file")
    assert len(index_of(shard).offsets) == 5

    def read_only(*_, **__):
        raise OSError("read-only file system")

    monkeypatch.setattr(np, "savez", read_only)
    tar(shard, pairs(range(6)))
    assert len(index_of(shard).offsets) == 6
    assert sorted(os.listdir(tmp_path)) == ["0.tar", "0.tar.index.npz"]


def cut(place: int, members: dict[str, bytes] | None = None) -> bytes:
    """An archive of two samples that ends too early."""
    return tar(Path("whole.tar"), members or pairs(range(2))).read_bytes()[:place]


WRONG = {
    "cut off in an image": (lambda: cut(600), "0.tar is cut off: mend"),
    "cut off in a later header": (lambda: cut(4 * 512 + 10), "0.tar is cut off after 00000.cls"),
    "cut off between members": (lambda: cut(4 * 512), "0.tar is cut off after 00000.cls"),
    "no tar": (lambda: b"no archive" * 100, "0.tar is no tar archive that can be read ("),
    "no byte": (lambda: b"", "0.tar is no tar archive that can be read (empty file)"),
    "empty": (lambda: cut(None, {".hidden": b""}), "0.tar holds no image"),
    "unknown": (
        lambda: cut(None, {**pairs(range(2)), "README.md": b"?"}),
        "0.tar holds README.md, which belongs to no",
    ),
    "no label": (
        lambda: cut(None, {**pairs(range(2)), "7.png": b"?"}),
        "0.tar holds 7.png without a label: it needs a",
    ),
    "two images": (
        lambda: cut(None, {"7.a.png": b"", "7.b.png": b"", "7.cls": b"1"}),
        "0.tar holds 2 images for the one label 7.cls",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_an_archive_is_said_or_left_out(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, sentence = WRONG[name]
    tar(tmp_path / "shards" / "1.tar", pairs(range(5, 9)))
    (tmp_path / "shards" / "0.tar").write_bytes(make())
    with pytest.raises(aw.UserError) as refused:
        own(tmp_path / "shards")
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(f": mend the archive, or {SKIP}.")
    with pytest.warns(UserWarning, match="parts of archives are left out: .*0.tar"):
        left = ImageShards(tmp_path / "shards", bad_samples="skip")
    assert len(left) in (4, 5, 6)
    assert left.names[-1] == "1.tar/00008.png"
    with pytest.raises(aw.UserError, match=r"there is no \.tar archive in"):
        ImageShards(tmp_path / "nowhere")


@pytest.mark.filterwarnings("ignore:nothing is split off")
def test_an_image_that_cannot_be_decoded_is_refused_or_skipped(tmp_path):
    tar(tmp_path / "0.tar", {**pairs(range(9)), "00003.png": b"no image"})
    for stream in (False, True):
        with pytest.raises(aw.UserError, match=r"the image at byte \d+ of .*0.tar cannot be read as an image"):
            for _ in own(tmp_path, stream=stream).train.chunks(9):
                pass
    with pytest.warns(UserWarning, match="1 images cannot be read and were skipped: the image at byte"):
        assert len(own(tmp_path, bad_samples="skip").train) == 8
    stream = own(tmp_path, stream=True, bad_samples="skip").train
    assert sum(len(labels) for _, labels in stream.chunks(4)) == 8
    assert stream.bad.keys() == {3}


@pytest.mark.filterwarnings("ignore:nothing is split off")
@pytest.mark.parametrize("augmentation", ["none", "crop_flip"])
def test_archives_stream_through_workers_to_the_bits_of_memory(tmp_path, augmentation):
    tar(tmp_path / "0.tar", pairs(range(20)))
    tar(tmp_path / "1.tar", pairs(range(20, 31)))
    memory = own(tmp_path).train
    stream = own(tmp_path, stream=True, workers=2).train
    from_python = Streamed.of(ImageShards(tmp_path, size=12), Reading())
    assert torch.equal(from_python.labels, stream.labels)
    assert stream.input_shape == memory.input_shape == (3, 12, 12)
    resident = list(Loader(memory, 8, 1, augmentation).batches(1, 5))
    for other in (stream, from_python):
        for one, two in zip(resident, StreamedLoader(other, 8, 1, augmentation).batches(1, 5), strict=True):
            assert all(map(torch.equal, one, two))


@pytest.mark.filterwarnings("ignore:nothing is split off")
def test_archives_on_the_command_line(tmp_path, capsys):
    tar(tmp_path / "shards" / "0.tar", pairs(range(60)))
    words = ["--training.epochs", "2", "--training.num-stages", "2", "--data.stream", "--training.batch-size", "16"]
    run(["train", str(tmp_path / "shards"), *words, "--out", str(tmp_path / "run"), "--no-report"])
    assert "auto" in capsys.readouterr().out
    assert "0.tar/" in np.load(tmp_path / "run" / "samples" / "auto-0.npz")["names"][0]
