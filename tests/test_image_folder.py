"""Folders of images, decoded by Pillow."""

import sys

import numpy as np
import pytest
import torch
from PIL import Image

from autoweight.data import DATASETS
from autoweight.data.decoding import decode
from autoweight.data.image_folder import image_folder
from autoweight.errors import UserError


def images(root, **classes):
    """An image folder whose images have one grey value each."""
    for part in ("train", "val"):
        for name, value in classes.items():
            (root / part / name).mkdir(parents=True)
            for number in range(2):
                Image.new("L", (40, 30), value).save(root / part / name / f"{number}.png")
    return root


def test_image_folder(tmp_path):
    images(tmp_path, cat=255, ant=0)
    (tmp_path / "train" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / ".hidden").mkdir()
    (tmp_path / "train" / "__MACOSX").mkdir()  # which a zip from a Mac leaves
    pool, test = DATASETS["imagefolder"](tmp_path)
    assert pool.labels.tolist() == test.labels.tolist() == [0, 0, 1, 1]
    assert pool.class_names == ("ant", "cat")
    assert [name.rpartition("train/")[2] for name in pool.names] == ["ant/0.png", "ant/1.png", "cat/0.png", "cat/1.png"]
    assert pool.inputs.shape == (4, 3, 224, 224)
    torch.testing.assert_close(pool.inputs[0, :, 0, 0], -torch.tensor([0.485 / 0.229, 0.456 / 0.224, 0.406 / 0.225]))
    torch.testing.assert_close(pool.inputs[2, 1, 5, 5], torch.tensor(0.544 / 0.224))
    assert image_folder(tmp_path)[0] is pool


def grey(path, resize, crop):
    """The image's grey values from 0 to 255, `[crop, crop]`."""
    return (decode(path, resize, crop)[0] * 0.229 + 0.485) * 255


def test_the_middle_of_the_shorter_side_is_kept(tmp_path):
    stripes = np.repeat(np.array([[0, 100, 200, 250]], dtype=np.uint8), 4, axis=0).repeat(2, axis=1)  # 8 wide, 4 high
    Image.fromarray(stripes).save(tmp_path / "wide.png")
    assert grey(tmp_path / "wide.png", 4, 4).round().tolist() == [[100.0, 100.0, 200.0, 200.0]] * 4
    Image.fromarray(stripes.T.copy()).save(tmp_path / "high.png")
    assert grey(tmp_path / "high.png", 4, 4).round().T.tolist() == [[100.0, 100.0, 200.0, 200.0]] * 4


def test_what_cameras_and_scanners_write(tmp_path):
    left_dark = np.array([[0, 255]], dtype=np.uint8).repeat(8, axis=0).repeat(4, axis=1)
    exif = Image.Exif()
    exif[0x0112] = 3  # turned upside down
    Image.fromarray(left_dark).save(tmp_path / "turned.png", exif=exif)
    assert grey(tmp_path / "turned.png", 8, 8)[0, 0] > 200
    Image.fromarray(left_dark.astype(np.uint16) * 257).save(tmp_path / "sixteen.png")
    assert grey(tmp_path / "sixteen.png", 8, 8)[0].round().tolist() == [0.0] * 4 + [255.0] * 4
    Image.fromarray(left_dark).convert("P").save(tmp_path / "palette.gif")
    assert decode(tmp_path / "palette.gif", 8, 8).shape == (3, 8, 8)


def test_unreadable_images_are_named(tmp_path):
    bad = images(tmp_path, cat=255, ant=0) / "val" / "ant" / "1.png"
    bad.write_bytes(bad.read_bytes()[:40])
    with pytest.raises(UserError) as error:
        image_folder(tmp_path)
    assert str(error.value) == f"{bad} cannot be read as an image: replace or remove it."


def test_wrong_image_folders(tmp_path, monkeypatch):
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
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "PIL.ImageOps", None)
        with pytest.raises(UserError, match=r"^images are decoded by Pillow, which is missing: pip install"):
            image_folder(tmp_path)
    (tmp_path / "train" / "dog").mkdir()
    with pytest.raises(UserError, match=r"dog holds no image \(.bmp, .gif, .jpeg, .jpg, .png, .*\): add some or"):
        image_folder(tmp_path)
    Image.new("L", (8, 8)).save(tmp_path / "train" / "dog" / "1.PNG")
    with pytest.raises(UserError, match=r"a class in only one of train/ and val/: dog; both need the same classes\.$"):
        image_folder(tmp_path)
