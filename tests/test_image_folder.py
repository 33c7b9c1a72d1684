"""Folders of images; the decoder is a stand-in, since torchvision need not be there."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from autoweight.data import DATASETS
from autoweight.data.image_folder import image_folder
from autoweight.errors import UserError

from .conftest import give_torchvision

pytestmark = pytest.mark.usefixtures("no_torchvision")


def images(root, **classes):
    """An image folder whose files hold a number: the fake decoder's grey value."""
    for part in ("train", "val"):
        for name, value in classes.items():
            (root / part / name).mkdir(parents=True)
            for number in range(2):
                (root / part / name / f"{number}.jpg").write_text(str(value))
    return root


def grey_torchvision(monkeypatch, size=224):
    functional = SimpleNamespace(
        resize=lambda image, side: image if side == 256 else None,
        center_crop=lambda image, sides: image.expand(3, size, size) if sides == [224, 224] else None,
        pil_to_tensor=lambda image: image,
    )
    folder = SimpleNamespace(default_loader=lambda path: torch.tensor([[[int(Path(path).read_text())]]]).byte())
    datasets, transforms = SimpleNamespace(folder=folder), SimpleNamespace(functional=functional)
    give_torchvision(monkeypatch, datasets=datasets, transforms=transforms)
    monkeypatch.setitem(sys.modules, "torchvision.datasets.folder", ModuleType("folder"))
    monkeypatch.setitem(sys.modules, "torchvision.transforms.functional", ModuleType("functional"))


def test_image_folder(monkeypatch, tmp_path):
    grey_torchvision(monkeypatch)
    images(tmp_path, cat=255, ant=0)
    (tmp_path / "train" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / ".hidden").mkdir()
    pool, test = DATASETS["imagefolder"](tmp_path)
    assert pool.labels.tolist() == test.labels.tolist() == [0, 0, 1, 1]
    assert pool.inputs.shape == (4, 3, 224, 224)
    torch.testing.assert_close(pool.inputs[0, :, 0, 0], -torch.tensor([0.485 / 0.229, 0.456 / 0.224, 0.406 / 0.225]))
    torch.testing.assert_close(pool.inputs[2, 1, 5, 5], torch.tensor(0.544 / 0.224))
    assert image_folder(tmp_path)[0] is pool


def test_unreadable_images_are_named(monkeypatch, tmp_path):
    grey_torchvision(monkeypatch)
    bad = images(tmp_path, cat=255, ant=0) / "val" / "ant" / "1.jpg"
    bad.write_text("no number")
    with pytest.raises(UserError) as error:
        image_folder(tmp_path)
    assert str(error.value) == f"{bad} cannot be read as an image: replace or remove it."
    grey_torchvision(monkeypatch, size=100)
    with pytest.raises(UserError, match=r"0.jpg came out of another size, \(3, 100, 100\)"):
        image_folder(tmp_path)


def test_torchvision_built_for_another_torch(tmp_path, monkeypatch):
    images(tmp_path, cat=1, ant=1)
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.delitem(sys.modules, "torchvision")
    monkeypatch.delitem(sys.modules, "torchvision.datasets")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"^images are decoded by torchvision, which does not fit torch 2\."):
        image_folder(tmp_path)


def test_wrong_image_folders(tmp_path):
    with pytest.raises(UserError, match=r"^images are read from a folder: pass --data-dir DIR with DIR/train/CLASS/"):
        image_folder(None)
    with pytest.raises(UserError, match=r"train is not a folder: images are expected as .*train/CLASS/\*.jpg\.$"):
        image_folder(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(UserError, match="train holds no class folders"):
        image_folder(tmp_path)
    images(tmp_path, cat=1)
    with pytest.raises(UserError, match=r"train has one class only \(cat\): there is nothing to tell apart\.$"):
        image_folder(tmp_path)
    images(tmp_path, ant=1)
    with pytest.raises(UserError, match=r"^images are decoded by torchvision, which is missing: pip install"):
        image_folder(tmp_path)
    (tmp_path / "train" / "dog").mkdir()
    with pytest.raises(UserError, match=r"dog holds no image \(.bmp, .jpeg, .jpg, .png, .ppm, .webp\): add some or"):
        image_folder(tmp_path)
    (tmp_path / "train" / "dog" / "1.PNG").write_text("1")
    with pytest.raises(UserError, match=r"a class in only one of train/ and val/: dog; both need the same classes\.$"):
        image_folder(tmp_path)
