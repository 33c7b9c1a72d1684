import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from autoweight.cli.run import run
from autoweight.config import RunConfig
from autoweight.errors import UserError
from autoweight.ranks import ALONE
from autoweight.runs.shared import opened
from autoweight.storage.atomic import write_bytes
from autoweight.storage.checkpoint import CheckpointFile

from .conftest import open_folder

CONFIG = RunConfig(recipe="digits-noise")


def test_metrics_are_appended_once_and_a_cut_line_is_dropped(tmp_path):
    folder = open_folder(tmp_path / "run", CONFIG, resume=False)
    folder.log({"event": "stage", "method": "focal", "seed": 0, "stage": 0, "train_loss": 1.0})
    folder.log({"event": "stage", "method": "focal", "seed": 0, "stage": 1, "train_loss": 0.5})
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text(metrics.read_text()[:-5])  # as a kill in the middle of a write leaves it
    folder = open_folder(tmp_path / "run", CONFIG, resume=True)
    folder.log({"event": "stage", "method": "focal", "seed": 0, "stage": 0, "train_loss": 1.0})
    folder.log({"event": "stage", "method": "focal", "seed": 0, "stage": 1, "train_loss": 0.5})
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["stage"] for line in lines] == [0, 1]
    assert folder.find(event="stage", method="focal", seed=0, stage=1)["train_loss"] == 0.5
    assert folder.find(event="stage", method="focal", seed=1, stage=1) is None


def test_numbers_that_json_cannot_hold_are_null(tmp_path):
    folder = open_folder(tmp_path / "run", CONFIG)
    folder.log({"event": "stage", "val_score": float("-inf"), "weights": {"mean": 1.0, "all": (float("nan"), 2)}})
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text())
    assert line == {"event": "stage", "val_score": None, "weights": {"mean": 1.0, "all": [None, 2]}}
    assert folder.find(event="stage") == line


@pytest.mark.parametrize("content", [b'{"event": "stage"\n{}\n', b"3\n", b"\xff\xfe\n"])
def test_damaged_metrics_get_one_sentence(tmp_path, content):
    open_folder(tmp_path / "run", CONFIG, resume=False)
    (tmp_path / "run" / "metrics.jsonl").write_bytes(content)
    folder = open_folder(tmp_path / "run", CONFIG, resume=True)
    with pytest.raises(UserError, match="is damaged"):
        folder.find(event="trained")


@pytest.mark.parametrize("content", ['{"recipe": ', "[]"])
def test_a_damaged_result_gets_one_sentence(tmp_path, content):
    folder = open_folder(tmp_path / "run", CONFIG, resume=False)
    (tmp_path / "run" / "result.json").write_text(content)
    with pytest.raises(UserError, match=r"result\.json is damaged: remove it"):
        folder.result()


def test_a_full_disk_is_no_mistake_of_the_user(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(tmp_path / "file", b"x")
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        write_bytes(tmp_path / "run", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_finish_writes_the_result_and_drops_checkpoints(tmp_path):
    folder = open_folder(tmp_path / "run", CONFIG, resume=False)
    CheckpointFile(folder.checkpoint_path("x")).save({"a": 1})
    assert folder.result() is None
    result = {"recipe": "digits-noise", "methods": {}}
    folder.finish(result)
    assert folder.result() == result
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.yaml", "result.json"]


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_result_is_said_to_be(tmp_path, content):
    folder = open_folder(tmp_path / "run", CONFIG, resume=False)
    (folder.path / "result.json").write_text(content)
    with pytest.raises(UserError, match=r"result\.json is damaged: remove it, and --resume makes it anew"):
        folder.result()


def test_fresh_folders_do_not_collide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = {open_folder(None, CONFIG, resume=False).path for _ in range(3)}
    assert len(folders) == 3


def test_a_folder_in_use_is_left_as_it_is(tmp_path):
    search, path = replace(CONFIG, command="search"), tmp_path / "run"
    longer = replace(search, search=replace(search.search, num_episodes=10_000))
    with opened(path, search, False, ALONE) as folder:
        folder.finish({})
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        for config, resume in ((longer, True), (search, False)):
            with pytest.raises(UserError, match="in use by another run"), opened(path, config, resume, ALONE):
                pass
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    with opened(path, longer, True, ALONE) as folder:
        assert folder.result() is None


def test_what_a_folder_may_be_used_for(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(UserError, match="no run to resume"):
        open_folder(path, CONFIG, resume=True)
    open_folder(path, CONFIG, resume=False)
    with pytest.raises(UserError, match="add --resume"):
        open_folder(path, CONFIG, resume=False)
    with pytest.raises(UserError, match="another configuration"):
        open_folder(path, replace(CONFIG, seed=3), resume=True)
    open_folder(path, CONFIG, resume=True).finish({})
    with pytest.raises(UserError, match="a finished run"):
        open_folder(path, CONFIG, resume=False)


def test_an_interrupted_run_says_how_to_go_on_and_what_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save = CheckpointFile.save

    def killed(file, state):
        save(file, state)
        raise KeyboardInterrupt

    def write(rows):
        Path("rows.csv").write_text("a,label\n" + "".join(f"{n % 7},{'xy'[n % 2]}\n" for n in range(rows)))

    write(80)
    words = ["train", "rows.csv", "--method", "auto", "--training.epochs", "2", "--training.num-stages", "2"]
    with monkeypatch.context() as once:
        once.setattr(CheckpointFile, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            run([*words, "--out", "ci"])
    with pytest.raises(
        UserError, match=r"^ci has not ended: go on with it first, autoweight train --out ci --resume\.$"
    ):
        run(["audit", "ci"])
    with pytest.raises(UserError, match="train with --method auto"):
        run(["audit", "ci", "--method", "law"])
    write(90)
    changed = "^the data, the network or settings have changed since the run in ci began: put them back, or choose an"
    with pytest.raises(UserError, match=changed):
        run(["train", "--out", "ci", "--resume"])
    write(80)
    run(["train", "--out", "ci", "--resume"])
