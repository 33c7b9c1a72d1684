"""CIFAR and CIFAR-N, read from small files in the official formats."""

import hashlib
import struct

import numpy as np
import pytest
import torch

from autoweight.data import cifar
from autoweight.data.cifar import cifar10, cifar100
from autoweight.errors import UserError

LOADERS = {"cifar10": cifar10, "cifar100": cifar100}
CLASSES = {"cifar10": 10, "cifar100": 100}
BINARY = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}
PYTHON = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}


@pytest.fixture(autouse=True)
def no_cache(no_torchvision):
    """Files change within a test."""
    cifar._load.cache_clear()


def content(name, file, count=20):
    """Images and labels of a file, the same for both versions; every class comes up twice in ten-class files."""
    generator = np.random.default_rng(len(file) + sum(file.encode()))
    images = generator.integers(0, 256, (count, 3072), dtype=np.uint8)
    return images, (np.arange(count) * 7 % CLASSES[name]).astype(np.int64)


def python2_pickle(value):
    """What Python 2 and its numpy wrote, byte strings and all; today's `pickle` cannot write it."""
    match value:
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case int():
            return b"J" + struct.pack("<i", value)
        case list():
            return b"](" + b"".join(map(python2_pickle, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2_pickle(part) for item in value.items() for part in item) + b"u"
    head = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01("
    shape = b"".join(map(python2_pickle, value.shape)) + b"t"
    dtype = b"cnumpy\ndtype\n(U\x02" + value.dtype.str[1:].encode() + b"K\x00K\x01tR(K\x03U\x01|NNN"
    state = b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    fortran = not value.flags.c_contiguous
    raw = python2_pickle(value.tobytes("F" if fortran else "C"))
    return head + shape + dtype + state + (b"\x88" if fortran else b"\x89") + raw + b"tb"


def binary_bytes(name, images, labels):
    coarse = [labels[:, None] // 5] if name == "cifar100" else []
    return np.concatenate([*coarse, labels[:, None], images], axis=1).astype(np.uint8).tobytes()


def python_bytes(name, images, labels):
    fine = b"fine_labels" if name == "cifar100" else b"labels"
    entries = {b"batch_label": b"a batch", fine: labels.tolist(), b"data": images, b"filenames": [b"a.png"]}
    return b"\x80\x02" + python2_pickle(entries) + b"."


def bless(monkeypatch, root):
    """Make the checksums of the files under `root` the published ones."""
    found = {n: hashlib.md5((root / n).read_bytes()).hexdigest() for n in cifar.MD5 if (root / n).is_file()}
    monkeypatch.setattr(cifar, "MD5", {**cifar.MD5, **found})


def write(monkeypatch, root, name, version=BINARY):
    """All files of a set."""
    encode = binary_bytes if version is BINARY else python_bytes
    for file in (official for official in cifar.MD5 if official.startswith(version[name] + "/")):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(name, *content(name, path.stem)))
    bless(monkeypatch, root)
    return root


def same(one, other):
    return one.inputs.equal(other.inputs) and one.labels.equal(other.labels) and one.num_classes == other.num_classes


@pytest.mark.parametrize("name", LOADERS)
def test_reads_the_binary_version(monkeypatch, tmp_path, name):
    pool, test = LOADERS[name](write(monkeypatch, tmp_path, name))
    stems = [f"data_batch_{i}" for i in range(1, 6)] if name == "cifar10" else ["train"]
    raw = np.concatenate([content(name, stem)[0] for stem in stems]).reshape(-1, 3, 32, 32) / 255
    mean, std = raw.mean((0, 2, 3), keepdims=True), raw.std((0, 2, 3), keepdims=True)
    assert pool.inputs.dtype == torch.float32
    torch.testing.assert_close(pool.inputs.double(), torch.tensor((raw - mean) / std), atol=1e-4, rtol=1e-4)
    held_out = content(name, "test_batch" if name == "cifar10" else "test")[0].reshape(-1, 3, 32, 32) / 255
    torch.testing.assert_close(test.inputs.double(), torch.tensor((held_out - mean) / std), atol=1e-4, rtol=1e-4)
    assert pool.labels.tolist() == [label for stem in stems for label in content(name, stem)[1].tolist()]
    assert pool.num_classes == test.num_classes == CLASSES[name]
    assert pool.clean.all()


@pytest.mark.parametrize("name", LOADERS)
def test_both_versions_give_the_same_samples(monkeypatch, tmp_path, name):
    binary = LOADERS[name](write(monkeypatch, tmp_path / "a", name))
    python = LOADERS[name](write(monkeypatch, tmp_path / "b", name, PYTHON))
    assert all(same(one, other) for one, other in zip(binary, python, strict=True))


def test_arrays_stored_by_columns(monkeypatch, tmp_path):
    expected = cifar10(write(monkeypatch, tmp_path, "cifar10", PYTHON))[1]
    pixels, labels = content("cifar10", "test_batch")
    file = tmp_path / PYTHON["cifar10"] / "test_batch"
    file.write_bytes(python_bytes("cifar10", np.asfortranarray(pixels), labels))
    bless(monkeypatch, tmp_path)
    cifar._load.cache_clear()
    assert same(cifar10(tmp_path)[1], expected)


@pytest.mark.parametrize("version", [BINARY, PYTHON])
def test_the_official_folder_itself_will_do(monkeypatch, tmp_path, version):
    root = write(monkeypatch, tmp_path, "cifar10", version)
    assert same(cifar10(root / version["cifar10"])[0], cifar10(root)[0])


def test_binary_files_come_first(monkeypatch, tmp_path):
    write(monkeypatch, write(monkeypatch, tmp_path, "cifar10"), "cifar10", PYTHON)
    (tmp_path / PYTHON["cifar10"] / "data_batch_1").write_bytes(b"broken")
    assert len(cifar10(tmp_path)[0]) == 100


def test_a_complete_version_beats_an_incomplete_one(monkeypatch, tmp_path):
    write(monkeypatch, write(monkeypatch, tmp_path, "cifar100"), "cifar100", PYTHON)
    (tmp_path / BINARY["cifar100"] / "test.bin").unlink()
    assert len(cifar100(tmp_path)[0]) == 20


def test_files_are_read_once(monkeypatch, tmp_path):
    write(monkeypatch, tmp_path, "cifar10")
    assert cifar10(tmp_path)[0] is cifar10(tmp_path / "." / BINARY["cifar10"] / "..")[0]


def test_no_folder():
    with pytest.raises(UserError) as error:
        cifar10(None)
    assert str(error.value) == (
        "CIFAR-10 is read from files: pass --data-dir DIR, a folder with cifar-10-batches-bin/ or cifar-10-batches-py/ "
        "from https://www.cs.toronto.edu/~kriz/cifar.html; with torchvision installed they are fetched into DIR if it "
        "has neither."
    )


def test_missing_files_are_listed(monkeypatch, tmp_path):
    folder = write(monkeypatch, tmp_path, "cifar10") / BINARY["cifar10"]
    (folder / "data_batch_3.bin").unlink()
    (folder / "test_batch.bin").unlink()
    with pytest.raises(UserError) as error:
        cifar10(tmp_path)
    assert str(error.value) == (
        f"CIFAR-10 is incomplete: {folder / 'data_batch_3.bin'}, {folder / 'test_batch.bin'} not found; "
        "unpack it again from https://www.cs.toronto.edu/~kriz/cifar.html."
    )


def test_no_files_and_no_torchvision(tmp_path):
    with pytest.raises(UserError) as error:
        cifar100(tmp_path)
    assert str(error.value) == (
        f"CIFAR-100 is not in {tmp_path}, where one version's files were expected (cifar-100-binary/train.bin, "
        "cifar-100-binary/test.bin or cifar-100-python/train, cifar-100-python/test): unpack them there from "
        "https://www.cs.toronto.edu/~kriz/cifar.html, or install torchvision, which is missing, to have them "
        "fetched."
    )


def test_a_torchvision_of_another_torch_is_told_apart(monkeypatch, tmp_path):
    def fails(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(cifar, "import_module", fails)
    with pytest.raises(UserError, match=r"install torchvision, whose build does not fit torch \d+\.\d+"):
        cifar10(tmp_path)


@pytest.mark.parametrize("version", [BINARY, PYTHON])
def test_damaged_files_are_named(monkeypatch, tmp_path, version):
    file = sorted((write(monkeypatch, tmp_path, "cifar100", version) / version["cifar100"]).iterdir())[0]
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError) as error:
        cifar100(tmp_path)
    assert str(error.value) == (
        f"{file} is cut short or damaged (not the published MD5): fetch it again from "
        "https://www.cs.toronto.edu/~kriz/cifar.html."
    )
