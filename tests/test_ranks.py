"""Several ranks come to what one process comes to, whatever happens to them on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed import HashStore
from torch.testing import assert_close

import autoweight as aw
from autoweight import ranks
from autoweight.cli.run import run
from autoweight.finding import prepare_search
from autoweight.runs.audit import audit_run
from autoweight.runs.shared import opened
from autoweight.training.split import check_split, synchronised

from .conftest import make_blobs
from .launch import Launched
from .rank_jobs import CASES, LABELS, TRAINING, command, episode, library, mlp
from .rivals import Rationed
from .test_cli import SHORT_SEARCH

SMALL = ["digits-noise", "--training.epochs", "8", "--training.num-stages", "4", "--data.train-size", "320"]
SEARCH = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-starts", "5", "--data.train-size", "320"]
COMPARE = ["compare", *SMALL, "--methods", "uniform,focal", "--seeds", "2"]
TRAIN = ["train", *SMALL, "--method", "auto", "--training.average", "0.9", "--data.augmentation", "crop_flip"]


def lines(folder):
    """A run's metrics without what clocks say."""
    parsed = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if "seconds" not in key} for line in parsed]


def sorted_lines(folder):
    return sorted(lines(folder), key=lambda line: json.dumps(line, sort_keys=True))


def methods(folder):
    result = json.loads((folder / "result.json").read_text())
    return {name: values["test_accuracy"] for name, values in result["methods"].items()}


def wait_until(there, launched=None):
    until = time.monotonic() + 150
    while not there():
        assert time.monotonic() < until
        assert launched is None or any(process.is_alive() for process in launched.processes), launched.said
        time.sleep(0.01)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search in one process."""
    return in_one_process(SEARCH, tmp_path_factory)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison in one process."""
    return in_one_process(COMPARE, tmp_path_factory)


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A training over two ranks."""
    folder = tmp_path_factory.mktemp("split")
    launched = Launched(2, command, [*TRAIN, "--out", str(folder / "run")], out=folder)
    assert launched.wait() == [0, 0], launched.said
    return folder / "run"


def in_one_process(words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "run"
    run([*words, "--out", str(folder)])
    return folder


def assert_same_search(one, two):
    strategies = [aw.load(folder / "strategy.safetensors") for folder in (one, two)]
    assert torch.equal(*(strategy.table for strategy in strategies))
    infos = [{**strategy.info, "seconds": 0} for strategy in strategies]
    assert infos[0] == infos[1]
    assert lines(one) == lines(two)


def test_every_kind_of_worker_gives_the_same_to_the_bit_over_ranks(tmp_path):
    assert Launched(3, library, tmp_path, out=tmp_path).wait() == [0, 0, 0]
    found = [torch.load(tmp_path / f"found-{rank}", weights_only=False) for rank in range(3)]
    for case in CASES:
        steps, *alone = episode(*case, ranks.ALONE)
        for own in found:
            assert own["episodes"][case][0] == steps
            for one, two in zip(own["episodes"][case][1:], alone, strict=True):
                assert all(map(torch.equal, one, two)), case
    for tables in zip(*(rank["tables"] for rank in found), strict=True):
        assert torch.equal(tables[0], tables[1])
        assert torch.equal(tables[0], tables[2])
    means, gradients = zip(*(own["mean"] for own in found), strict=True)
    counted = (LABELS != -100).float()
    assert_close(sum(means) / 3, (torch.arange(18.0).view(6, 3) * counted).sum() / counted.sum())
    assert_close(torch.cat(gradients) / 3, counted / counted.sum())  # ranks' gradients are averaged


def test_a_search_does_not_depend_on_the_number_of_ranks(tmp_path, searched):
    launched = Launched(3, command, [*SEARCH, "--out", str(tmp_path / "run")], out=tmp_path)
    assert launched.wait() == [0, 0, 0], launched.said
    assert_same_search(tmp_path / "run", searched)
    assert launched.said.count("run folder:") == 1
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in searched.iterdir()}


def test_a_training_over_ranks_is_that_of_one_process_to_rounding(split, tmp_path_factory):
    alone = in_one_process(TRAIN, tmp_path_factory)
    for one, two in zip(lines(split), lines(alone), strict=True):
        for key in two.keys() - {"weights"}:  # of which a rank sees its part alone
            value = two[key]
            assert one[key] == (pytest.approx(value, rel=1e-4) if key == "train_loss" else value)
    audits = [audit_run(folder) for folder in (split, alone)]
    assert_close(*(torch.as_tensor(audit.columns["margin"]) for audit in audits), atol=1e-4, rtol=1e-4)
    assert all(len(audit.issues) == 320 for audit in audits)


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_trainings_over_ranks_go_on_after_a_kill(tmp_path, verb, split, compared):
    words, whole = {"train": (TRAIN, split), "compare": (COMPARE, compared)}[verb]
    words = [*words, "--out", str(tmp_path / "run")]
    launched = Launched(2, command, words, out=tmp_path)
    wait_until(lambda: list((tmp_path / "run").glob("checkpoint/*-0")), launched)
    os.kill(launched.processes[1].pid, signal.SIGKILL)
    launched.end()
    assert not (tmp_path / "run" / "result.json").exists()
    again = Launched(2, command, words, out=tmp_path, restarts=1)
    assert again.wait() == [0, 0], again.said
    assert methods(tmp_path / "run") == methods(whole)
    assert sorted_lines(tmp_path / "run") == sorted_lines(whole)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in whole.iterdir()}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the ranks in /proc")
def test_torchrun_starts_a_killed_search_again(tmp_path, searched):
    # A rank that is done must end before Python tears itself down, when threads of gloo may abort it, as this does.
    program = "import atexit, os; atexit.register(os.abort); from autoweight.cli.main import main; main()"
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    words += ["--no-python", sys.executable, "-c", program, *SEARCH, "--out", str(tmp_path / "run")]
    with (tmp_path / "said").open("w") as said:
        torchrun = subprocess.Popen([sys.executable, *words], stdout=said, stderr=said)
    wait_until(lambda: (tmp_path / "run" / "checkpoint" / "search.previous").exists())
    ranks_of = Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children")
    killed = int(ranks_of.read_text().split()[-1])
    os.kill(killed, signal.SIGKILL)
    assert torchrun.wait(300) == 0, (tmp_path / "said").read_text()
    assert_same_search(tmp_path / "run", searched)


@pytest.mark.parametrize(
    "words",
    [[*SEARCH, "--search.num-episodes", "500"], [*TRAIN, "--training.epochs", "4000", "--training.num-stages", "400"]],
    ids=["search", "train"],
)
def test_a_rank_that_hangs_ends_the_run_with_a_sentence_that_names_it(tmp_path, words):
    words = [*words, "--out", str(tmp_path / "run")]
    launched = Launched(2, command, words, out=tmp_path, timeout=3.0)
    wait_until(lambda: (tmp_path / "run" / "metrics.jsonl").exists(), launched)
    os.kill(launched.processes[1].pid, signal.SIGSTOP)
    launched.processes[0].join(60)
    assert launched.processes[0].exitcode == 1
    launched.end()
    assert re.search("^autoweight: rank 1 has not answered for 3 s: see what holds it up", launched.said, re.MULTILINE)


HANGING = {"rank 1 has": (2, 3), "ranks 1, 3 have": (2,), "a rank has": (1, 2, 3)}


@pytest.mark.parametrize("who", HANGING)
def test_ranks_that_hang_in_a_meeting_are_those_that_are_not_let_down(monkeypatch, who):
    monkeypatch.setattr(ranks, "_LAST_WORDS", 0.1)
    store = HashStore()
    own = [ranks.Ranks(rank, 4, store=store) for rank in range(4)]
    monkeypatch.setattr(ranks.Ranks, "connect", lambda self: None)
    for rank in (1, 2, 3):
        own[rank]._put("met", 1)
    for rank in HANGING[who]:
        own[rank]._put("let down", 1)
    with pytest.raises(aw.RunError, match=f"^{who} not answered"), own[0].meeting():
        raise RuntimeError("[gloo] Timed out waiting 3000ms for recv operation to complete")


@pytest.mark.parametrize(
    ("words", "change", "sentence"),
    [
        (SEARCH, "version", "rank 1 has another version of autoweight than rank 0 (9.9, not"),
        (TRAIN, "data", "rank 1 has other data than rank 0: give all ranks the same."),
        (COMPARE, "settings", "rank 1 has another configuration than rank 0: give all ranks the same."),
        (TRAIN, "folder", "rank 1 does not see what rank 0 writes to"),
    ],
)
def test_ranks_that_do_not_fit_together_say_so_once(tmp_path, words, change, sentence):
    launched = Launched(2, command, [*words, "--out", str(tmp_path / "run")], change, out=tmp_path)
    assert launched.wait() == [2, 2]
    assert launched.said.count("autoweight: ") == 1
    assert f"autoweight: {sentence}" in launched.said


def test_what_ranks_cannot_share_is_said_before_anything_is_done(tmp_path):
    config, data = aw.SearchConfig(num_workers=5), (make_blobs(48), make_blobs(60, seed=9))
    job = prepare_search(mlp, *data, config, training=TRAINING)
    with pytest.raises(aw.UserError, match="6 ranks are more than the 5 workers of this search: start fewer"):
        job.check(ranks.Ranks(0, 6))
    with pytest.raises(aw.UserError, match="a batch of 64 samples does not divide evenly over 3 ranks"):
        check_split("auto", None, 64, ranks.Ranks(0, 3))
    with pytest.raises(aw.UserError, match="lookahead trains by steps of its own, which cannot be split over ranks"):
        check_split("lookahead", Rationed(), 64, ranks.Ranks(0, 2))
    with pytest.raises(aw.UserError, match="ranks need --out FOLDER"), opened(None, None, False, ranks.Ranks(0, 2)):
        pass
    with pytest.raises(aw.UserError, match="make a process group first"):
        aw.search(mlp, *data, config, training=TRAINING, distributed=True)


def test_the_timeout_must_be_seconds(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    monkeypatch.setenv(ranks.TIMEOUT_VARIABLE, "soon")
    with pytest.raises(aw.UserError, match="takes seconds, such as 1800, but is 'soon'"):
        ranks.of_torchrun.__wrapped__()


def test_batch_norm_over_ranks_says_what_it_sees_on_a_cpu():
    with pytest.warns(UserWarning, match="batch norm sees each rank's part"):
        synchronised(nn.BatchNorm1d(3), torch.device("cpu"))
