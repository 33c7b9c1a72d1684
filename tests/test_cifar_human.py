"""CIFAR files that are damaged, malicious or missing, and labels that people gave."""

import os
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from autoweight.config import DataConfig
from autoweight.data import load_pool
from autoweight.data.cifar import cifar10, cifar100
from autoweight.data.cifar_human import cifar10n_aggre, cifar10n_random1, cifar10n_worse, cifar100n
from autoweight.errors import UserError

from .conftest import give_torchvision
from .test_cifar import BINARY, PYTHON, binary_bytes, bless, content, python_bytes, write


def wrong_label(images, labels):
    return images, np.where(np.arange(len(labels)) == 3, 10, labels)


@pytest.mark.parametrize(
    ("change", "version", "said"),
    [
        (wrong_label, BINARY, "labels 0 to 10"),
        (wrong_label, PYTHON, "labels 0 to 10"),
        (lambda x, y: (x, y - 1), PYTHON, "labels -1 to 8"),
        (lambda x, y: (x[:, :784], y), BINARY, "cannot reshape"),
        (lambda x, y: (x[:, :784], y), PYTHON, r"20 labels, but uint8 images of shape \(20, 784\)"),
        (lambda x, y: (x[:-1], y), PYTHON, r"20 labels, but uint8 images of shape \(19, 3072\)"),
        (lambda x, y: (x.astype(np.float32), y), PYTHON, "but float32 images"),
        (lambda x, y: (x[:0], y[:0]), BINARY, "zero-size"),
    ],
)
def test_files_of_other_content(monkeypatch, tmp_path, change, version, said):
    encode = binary_bytes if version is BINARY else python_bytes
    file = next((write(monkeypatch, tmp_path, "cifar10", version) / version["cifar10"]).glob("data_batch_2*"))
    file.write_bytes(encode("cifar10", *change(*content("cifar10", "data_batch_2"))))
    bless(monkeypatch, tmp_path)
    with pytest.raises(UserError, match=rf"data_batch_2.* is not CIFAR-10 as published \(.*{said}.*\): fetch it again"):
        cifar10(tmp_path)


class Malicious:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_malicious_pickles_are_refused(monkeypatch, tmp_path, protocol):
    file = write(monkeypatch, tmp_path, "cifar10", PYTHON) / PYTHON["cifar10"] / "test_batch"
    file.write_bytes(pickle.dumps({"data": Malicious(tmp_path / "marker")}, protocol))
    bless(monkeypatch, tmp_path)
    with pytest.raises(UserError, match=r"system does not belong here.*fetch it again"):
        cifar10(tmp_path)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x02.", b"\x80\x02].", b"\x80\x02}(U\x04dataK\x01u.", b"cnumpy\nndarray\n}b."]
)
def test_odd_pickles_are_refused(monkeypatch, tmp_path, data):
    (write(monkeypatch, tmp_path, "cifar10", PYTHON) / PYTHON["cifar10"] / "test_batch").write_bytes(data)
    bless(monkeypatch, tmp_path)
    with pytest.raises(UserError, match="test_batch is not CIFAR-10 as published"):
        cifar10(tmp_path)


def test_torchvision_fetches_what_is_missing(monkeypatch, tmp_path):
    def fetch(root, download):
        assert download
        write(monkeypatch, Path(root), "cifar10", PYTHON)

    give_torchvision(monkeypatch, datasets=SimpleNamespace(CIFAR10=fetch))
    pool, _ = cifar10(tmp_path / "new")
    assert len(pool) == 100
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["cifar-10-batches-py"]


def test_failed_fetches_leave_nothing_behind(monkeypatch, tmp_path):
    def fetch(root, download):
        (Path(root) / "half").write_text("half a file")
        raise OSError("no route to host")

    give_torchvision(monkeypatch, datasets=SimpleNamespace(CIFAR100=fetch))
    with pytest.raises(UserError) as error:
        cifar100(tmp_path)
    assert str(error.value) == (
        f"CIFAR-100 could not be fetched (no route to host): unpack it in {tmp_path} from "
        "https://www.cs.toronto.edu/~kriz/cifar.html."
    )
    assert list(tmp_path.iterdir()) == []


def human_labels(pool, **others):
    clean = pool.labels.numpy()
    keys = ("worse_label", "aggre_label", "random_label1", "noisy_label")
    return {"clean_label": clean, **{k: (clean + i + 1) % pool.num_classes for i, k in enumerate(keys)}, **others}


@pytest.mark.parametrize("wrap", [np.asarray, torch.tensor, np.ndarray.tolist, np.int32, np.uint8])
def test_human_labels(monkeypatch, tmp_path, wrap):
    pool, test = cifar10(write(monkeypatch, tmp_path, "cifar10"))
    torch.save({key: wrap(value) for key, value in human_labels(pool).items()}, tmp_path / "CIFAR-10_human.pt")
    for shift, load in enumerate((cifar10n_worse, cifar10n_aggre, cifar10n_random1), start=1):
        human, human_test = load(tmp_path)
        assert human.labels.equal((pool.labels + shift) % 10)
        assert human.labels.dtype == torch.int64
        assert human.true_labels.equal(pool.labels)
        assert human_test is test
    assert cifar10n_worse(tmp_path / BINARY["cifar10"])[0].labels.equal((pool.labels + 1) % 10)


def test_human_labels_of_cifar100(monkeypatch, tmp_path):
    pool, _ = cifar100(write(monkeypatch, tmp_path, "cifar100"))
    torch.save(human_labels(pool), tmp_path / "CIFAR-100_human.pt")
    assert cifar100n(tmp_path)[0].labels.equal((pool.labels + 4) % 100)


def test_arrays_of_older_numpy(monkeypatch, tmp_path):
    """The official files were written before numpy renamed its core; both names have a place in the pickle."""
    pool, _ = cifar10(write(monkeypatch, tmp_path, "cifar10"))
    file = tmp_path / "CIFAR-10_human.pt"
    torch.save(human_labels(pool), file, _use_new_zipfile_serialization=False)
    new, old = b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"
    assert new in file.read_bytes() or old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(new, old))
    assert cifar10n_worse(tmp_path)[0].true_labels.equal(pool.labels)


@pytest.mark.parametrize("final", [False, True])
def test_validation_labels_are_true(monkeypatch, tmp_path, final):
    pool, _ = cifar10(write(monkeypatch, tmp_path, "cifar10"))
    torch.save(human_labels(pool), tmp_path / "CIFAR-10_human.pt")
    config = DataConfig("cifar10n", str(tmp_path), train_size=60, val_size=30, train_on_all=True)
    train, val, test = load_pool(config).splits(config, seed=0, final=final)
    assert val.labels.equal(val.true_labels)
    assert val.labels.equal(pool.labels[val.source])
    assert not train.clean.any()
    assert test.clean.all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"worse_label": np.zeros(3, int)}, r"'worse_label' of .* should be 100 whole numbers, but is .*\(3,\)\.$"),
        ({"worse_label": np.zeros(100)}, r"should be 100 whole numbers, but is torch.float32"),
        (
            {"worse_label": np.full(100, 10)},
            r"'worse_label' of .* goes from 10 to 10, but the set has labels 0 to 9\.$",
        ),
        ({"worse_label": "text"}, r"'worse_label' of .* is not an array of labels: fetch it again"),
        ({"clean_label": np.zeros(100, int)}, r"belongs to other images: 90 of its 100 clean labels are not those"),
    ],
)
def test_wrong_human_labels(monkeypatch, tmp_path, change, said):
    pool, _ = cifar10(write(monkeypatch, tmp_path, "cifar10"))
    torch.save(human_labels(pool, **change), tmp_path / "CIFAR-10_human.pt")
    with pytest.raises(UserError, match=said):
        cifar10n_worse(tmp_path)


def test_wrong_human_files(monkeypatch, tmp_path):
    write(monkeypatch, tmp_path, "cifar10")
    file = tmp_path / "CIFAR-10_human.pt"
    with pytest.raises(UserError) as error:
        cifar10n_worse(tmp_path)
    assert str(error.value) == (
        f"the human labels are missing: {file} not found; download CIFAR-10_human.pt from "
        "https://github.com/UCSC-REAL/cifar-10-100n."
    )
    for held, said in (
        ([1, 2], "does not hold labels by name"),
        ({"clean_label": [1], "x": 1}, "should be 100 whole numbers"),
        ({"x": 1, "y": 2}, "has no 'clean_label', only x, y"),
        ({"clean_label": Malicious(tmp_path / "marker")}, "is damaged, or holds more than labels, so it is not read"),
    ):
        torch.save(held, file)
        with pytest.raises(UserError, match=said):
            cifar10n_worse(tmp_path)
    file.write_bytes(b"cut short")
    with pytest.raises(UserError, match="is damaged"):
        cifar10n_worse(tmp_path)
    assert not (tmp_path / "marker").exists()
