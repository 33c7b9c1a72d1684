import json

import pytest
import torch

import autoweight as aw
from autoweight.errors import RunError, UserError
from autoweight.storage.checkpoint import CheckpointFile


@pytest.fixture
def file(tmp_path):
    return CheckpointFile(tmp_path / "checkpoint" / "run")


def test_save_and_load(file):
    assert file.load() is None
    file.save({"step": 3, "params": torch.arange(4.0), "names": ["a"]})
    state = file.load()
    assert state["step"] == 3
    assert torch.equal(state["params"], torch.arange(4.0))


@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"", lambda b: b[:60] + b"x" + b[61:]])
def test_a_damaged_newest_falls_back_to_the_one_before(file, damage):
    file.save({"step": 1})
    file.save({"step": 2})
    file.path.write_bytes(damage(file.path.read_bytes()))
    with pytest.warns(UserWarning, match="no whole checkpoint"):
        assert file.load() == {"step": 1}
    file.save({"step": 3})
    assert file.load() == {"step": 3}
    file.path.write_bytes(b"")
    with pytest.warns(UserWarning, match="no whole checkpoint"):
        assert file.load() == {"step": 1}


def test_a_kill_between_the_moves_leaves_the_one_before(file):
    file.save({"step": 1})
    file.path.replace(file.reserve)
    assert file.load() == {"step": 1}


@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b""])
def test_nothing_whole_left(file, damage):
    file.save({"step": 1})
    file.path.write_bytes(damage(file.path.read_bytes()))
    with pytest.raises(RunError, match=r"run is no whole checkpoint, and now called run\.damaged: start again"):
        file.load()
    assert file.path.with_name("run.damaged").exists()
    assert file.load() is None


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"x" * 1000])
def test_a_file_of_somebodys_is_left_alone(file, content):
    file.path.parent.mkdir()
    for path in (file.path, file.reserve):
        path.write_bytes(content)
        with pytest.raises(UserError, match="run is no checkpoint: name another file"):
            file.load()
        assert path.read_bytes() == content
    assert len(list(file.path.parent.iterdir())) == 2


def test_a_place_that_cannot_be_gets_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        CheckpointFile(tmp_path / "file" / "run").save({})


def test_remove(file):
    file.save({"step": 1})
    file.save({"step": 2})
    file.remove()
    assert file.load() is None


def test_the_same_strategy_is_the_same_bytes(tmp_path):
    """A file's header has several keys, which safetensors writes in an order of chance."""
    for place in range(8):
        aw.Strategy(torch.ones(3, 2), aw.Rule(("loss",)), info={"seed": 1}).save(tmp_path / str(place))
    content = (tmp_path / "0").read_bytes()
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {content}
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    assert list(json.loads(content[8 : 8 + length])) == ["__metadata__", "table"]
    assert torch.equal(aw.load(tmp_path / "0").table, torch.ones(3, 2))
