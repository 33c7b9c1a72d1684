"""Mistakes on the command line: one sentence each, and nothing lost."""

import errno
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from autoweight.cli import commands, typed
from autoweight.cli.messages import one_sentence
from autoweight.config.files import dump_config
from autoweight.errors import UserError
from autoweight.recipes import get_recipe

from .test_cli import SHORT
from .typed import autoweight


def test_a_demo_looks_at_its_methods_before_it_searches(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.yaml").write_text(dump_config(commands.demo_config()).replace("- focal", "- focl"))
    code, message = run_here(
        monkeypatch, capsys, ["demo", "--config", tmp_path / "config.yaml", "--out", tmp_path / "x"]
    )
    assert (code, "did you mean 'focal'?" in message, (tmp_path / "x").exists()) == (2, True, False)


def test_a_finished_run_can_be_shown_where_nothing_can_be_written(tmp_path):
    autoweight("train", "digits-noise", *SHORT, "--out", "run", cwd=tmp_path)
    before = (tmp_path / "run" / "config.yaml").stat().st_mtime_ns
    assert "uniform" in autoweight("train", "--out", "run", "--resume", cwd=tmp_path).stdout
    assert (tmp_path / "run" / "config.yaml").stat().st_mtime_ns == before  # not written again; root may write anywhere


@pytest.mark.parametrize(
    ("word", "value"), [("3", 3), ("3.0", 3.0), ("-1e-3", -0.001), ("True", True), ("hard", "hard")]
)
def test_knobs_are_numbers_truths_or_words(word, value):
    assert typed._split_knob(f"focal.gamma={word}") == ("focal", "gamma", value)
    assert type(typed._split_knob(f"focal.gamma={word}")[2]) is type(value)


def test_a_run_on_files_resumes_from_anywhere_and_says_how_to_use_it(tmp_path):
    recipe = get_recipe("cifar10-noise")
    config = replace(recipe, data=replace(recipe.data, folder="/my data"), device="cuda")
    used = commands._command_to_use(config, Path("a b/s"))
    assert used.endswith("cifar10-noise --method law --strategy 'a b/s' --device cuda --data.folder '/my data'")
    autoweight("train", "digits-noise", "--data-dir", "files", "--out", "a run", *SHORT, cwd=tmp_path)
    assert yaml.safe_load((tmp_path / "a run" / "config.yaml").read_text())["data"]["folder"] == str(tmp_path / "files")
    (tmp_path / "other").mkdir()
    autoweight("train", "--out", "../a run", "--resume", cwd=tmp_path / "other")
    failed = autoweight("search", "--out", "a run", "--resume", cwd=tmp_path, status=2)
    assert "a run holds a run of 'train': autoweight train --out 'a run' --resume." in failed.stderr


def test_knobs_of_a_file_are_checked_for_all_methods(tmp_path, monkeypatch, capsys):
    config = replace(get_recipe("digits-noise"), methods=("uniform",), knobs={"focal": {"gama": 2.0}})
    (tmp_path / "run.yaml").write_text(dump_config(config))
    monkeypatch.chdir(tmp_path)
    code, message = run_here(monkeypatch, capsys, ["compare", "--config", "run.yaml"])
    assert code == 2
    assert "did you mean 'gamma'" in message


def run_here(monkeypatch, capsys, words):
    """In this process, which spares the start; the entry point is the one that users call."""
    from autoweight.cli.main import main

    monkeypatch.setattr(sys, "argv", ["autoweight", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


MISTAKES = {
    "unknown command": (["trian", "digits-noise"], "unknown command 'trian': did you mean 'train'?"),
    "unknown recipe": (["train", "digit-noise"], "unknown recipe 'digit-noise': did you mean 'digits-noise'?"),
    "near no recipe": (["audit", "nothere"], "'nothere' names no run's folder, no data and no recipe: 'autowei"),
    "a knob as a flag": (["train", "digits-noise", "--focal.gamma=3"], "setting is --knob focal.gamma=3."),
    "a file for init": (["init", "x.yaml"], "name the file to write with --out x.yaml."),
    "nothing at all": (["train"], "name a recipe, or the path of your own data, first"),
    "flag without its value": (["train", "--config"], "name a recipe, or the path of your own data, first"),
    "no recipe": (["train", "--method", "focal"], "name a recipe, or the path of your own data, first"),
    "recipe not first": (
        ["train", "--method", "focal", "digits-noise"],
        "name a recipe, or the path of your own data, first",
    ),
    "unknown method": (["train", "digits-noise", "--method", "focl"], "unknown method 'focl': did you mean 'focal'?"),
    "one unknown method of several": (["compare", "digits-noise", "--methods", "uniform,orcale"], "'oracle'"),
    "method named twice": (["compare", "digits-noise", "--methods", "focal,focal"], "'focal' is named twice"),
    "unknown flag": (["train", "digits-noise", "--trainig.epochs", "3"], "did you mean --training.epochs?"),
    "unknown network": (
        ["train", "digits-noise", "--network", "mpl"],
        "autoweight: unknown network 'mpl': did you mean",
    ),
    "unknown data set": (["train", "digits-noise", "--data.dataset", "digit"], "did you mean 'digits'?"),
    "unknown knob": (["train", "digits-noise", "--method", "focal", "--knob", "focal.gama=1"], "did you mean 'gamma'?"),
    "knob of the wrong kind": (["train", "digits-noise", "--knob", "focal.gamma=big"], "takes a value like 2.0"),
    "knob that is no value": (["train", "digits-noise", "--knob", "focal.gamma=[1"], "takes a value like 2.0"),
    "knob without a method": (["train", "digits-noise", "--knob", "gamma=1"], "METHOD.NAME=VALUE"),
    "wrong value": (["train", "digits-noise", "--data.noise", "unifrom"], "did you mean 'uniform'?"),
    "not a number": (["train", "digits-noise", "--training.epochs", "many"], "takes a whole number, not 'many'"),
    "noise rate": (["train", "digits-noise", "--data.noise-rate", "1.5"], "from 0 to 1, but is 1.5"),
    "no validation set": (["search", "digits-noise", "--data.val-size", "0"], "a search needs trusted samples"),
    "nothing to look ahead to": (
        ["train", "digits-noise", "--method", "l2rw", "--data.val-size", "0"],
        "l2rw learns from trusted samples, and there are none: set --data.val-size.",
    ),
    "nothing to stop early by": (
        ["train", "digits-noise", "--method", "early_stop", "--data.val-size", "0"],
        "there are none: set --data.val-size, or choose another method.",
    ),
    "too much data": (["train", "digits-noise", "--data.train-size", "5000"], "--data.train-size 5000 and --data"),
    "batch too large": (["train", "digits-noise", "--training.batch-size", "2000"], "larger than the training set"),
    "too short": (["search", "digits-noise", "--search.warmup-stages", "20"], "leaves nothing"),
    "too few steps": (["train", "digits-noise", "--training.num-stages", "5000"], "cannot be cut into 5000 stages"),
    "another task": (["train", "digits-noise", "--training.task", "regression"], "it should be classification"),
    "too few workers": (["search", "digits-longtail", "--search.num-workers", "3"], "at least 5 workers"),
    "no seeds": (["compare", "digits-noise", "--seeds", "0"], "num_seeds must be at least 1"),
    "negative seed": (["compare", "digits-noise", "--seed", "-1"], "seeds go from 0"),
    "seeds too large": (["compare", "digits-noise", "--seed", 2**31 - 1, "--seeds", 2], "seeds go from 0"),
    "infinite rate": (["train", "digits-noise", "--training.learning-rate", "inf"], "rate must be a finite number"),
    "infinite knob": (["train", "digits-noise", "--method", "focal", "--knob", "focal.gamma=inf"], "finite number"),
    "drop before the start": (["train", "digits-noise", "--training.drop-stages", "-1"], "counted from 0"),
    "no step": (["search", "digits-noise", "--search.cmaes.sigma", "0"], "search.cmaes.sigma must be above 0"),
    "no reward": (["search", "digits-noise", "--search.reward-gain", "0"], "reward_gain must be above 0"),
    "reward out of range": (["search", "digits-noise", "--search.reward-growth", "81"], "goes up to 80, but is 81"),
    "lag out of range": (
        ["search", "digits-noise", "--search.actor-critic.lag", "1.5"],
        "lag goes up to 1, but is 1.5",
    ),
    "no critic": (["search", "digits-noise", "--search.actor-critic.num-critics", "0"], "must be at least 1"),
    "no layer": (["search", "digits-noise", "--search.actor-critic.hidden", "0"], "names an empty layer"),
    "discount": (["search", "digits-noise", "--search.actor-critic.discount", "nan"], "must be a finite number"),
    "no region": (["search", "digits-noise", "--search.trust-region.radius", "0"], "radius must be above 0"),
    "no such device": (["train", "digits-noise", "--device", "cuda:99"], "there is no device 'cuda:99'"),
    "device without values": (["train", "digits-noise", "--device", "meta"], "there is no device 'meta'"),
    "nonsense device": (["train", "digits-noise", "--device", "gpu"], "there is no device 'gpu'"),
    "law without strategy": (["train", "digits-noise", "--method", "law"], "law needs a strategy"),
    "missing strategy": (["train", "digits-noise", "--method", "law", "--strategy", "x.st"], "no strategy file x.st"),
    "missing config": (["train", "--config", "none.yaml"], "cannot read the configuration none.yaml"),
    "resume without a folder": (["train", "digits-noise", "--resume"], "--resume needs --out FOLDER"),
    "knob of a method that is not trained": (["train", "digits-noise", "--knob", "focal.gamma=1"], "not trained"),
    "strategy as a knob": (["train", "digits-noise", "--knob", "law.strategy=x"], "use --strategy x"),
    "strategy without law": (["train", "digits-noise", "--strategy", "no/x"], "--strategy is for law"),
    "misspelt strategy": (["compare", "digits-noise", "--strategy", "atuo"], "'atuo': did you mean 'auto'?"),
    "misspelt strategy of law": (
        ["compare", "digits-noise", "--methods", "uniform,law", "--strategy", "atuo"],
        "unknown strategy 'atuo': did you mean 'auto'?",
    ),
    "nothing to resume, no recipe": (["search", "--out", "nowhere", "--resume"], "holds no run to resume"),
    "nothing to resume": (["train", "digits-noise", "--out", "nowhere", "--resume"], "holds no run to resume"),
    "unwritable folder": (["train", "digits-noise", "--out", os.devnull + "/run"], "cannot use the output folder"),
    "impossible folder": (["train", "digits-noise", "--out", "x" * 300], "cannot use the output folder"),
    "a home without data": (["train", "cifar10-noise", "--data-dir=~/no/data"], f"in {Path.home()}/no/data"),
    "batches too small for the network": (
        ["train", "digits-noise", "--network", "resnet18", "--training.batch-size", "1"],
        "the network cannot take torch.float32 inputs of shape (1, 8, 8), 1 at a time",
    ),
    "unknown preset": (["search", "digits-noise", "--preset", "papr"], "did you mean 'paper'?"),
    "unknown agent": (["search", "digits-noise", "--agent", "cmase"], "--agent 'cmase': did you mean 'cmaes'?"),
    "nobody to finish": (["search", "digits-noise", "--finish"], "--finish needs --resume, and --out FOLDER"),
    "methods with spaces": (["compare", "digits-noise", "--methods", "uniform,", "auto"], "them, uniform,auto."),
    "no method": (["compare", "digits-noise", "--methods", " , "], "name at least one method"),
    "a flag without a value": (["train", "digits-noise", "--knob"], "autoweight: --knob needs a value."),
    "no number where none is needed": (
        ["audit", "digits-noise", "--threshold", "x"],
        "autoweight: --threshold takes a number, not 'x'.",
    ),
    "no whole numbers": (["train", "digits-noise", "--training.drop-stages", "x"], "drop-stages cannot be 'x'."),
    "one word too many": (["train", "digits-noise", "digits-many"], "autoweight: cannot take digits-many."),
    "a path beside a recipe": (
        ["train", "digits-noise", "--data.path", "a.csv"],
        "--data.path is for data of your own",
    ),
    "too many to hold out": (
        ["train", "digits-noise", "--data.train-size", "0", "--data.val-size", "1250"],
        "nothing of",
    ),
    "a network without a name": (["train", "digits-noise", "--network", "mine:"], "'mine:' names no network"),
    "an empty word": (["train", ""], "'' names neither data nor a recipe"),
    "list takes nothing": (["list", "recipes"], "list takes no arguments"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_sentence_and_2_and_leave_nothing(tmp_path, monkeypatch, capsys, mistake):
    words, sentence = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    code, message = run_here(monkeypatch, capsys, words)
    assert code == 2
    assert sentence in message
    assert message.startswith("autoweight: ")
    assert message.count("\n") == 1
    assert "Traceback" not in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "the GPU's memory is full: lower search.num_workers"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), "No space left on device: 'x'. Once that is mended"),
    ],
)
def test_a_machine_that_is_full_gets_one_sentence(monkeypatch, capsys, error, sentence):
    def run(words):
        raise error

    monkeypatch.setattr("autoweight.cli.run.run", run)
    code, message = run_here(monkeypatch, capsys, ["demo"])
    assert code == 1
    assert sentence in message
    assert message.count("\n") == 1


def test_what_torch_says_of_the_number_of_workers_is_not_repeated(monkeypatch, capsys):
    def run(words):
        warnings.warn("This DataLoader will create 8 worker processes in total. Our suggested max is 2.", stacklevel=1)
        warnings.warn("mine", stacklevel=1)
        raise UserError("done.")

    monkeypatch.setattr("autoweight.cli.run.run", run)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run_here(monkeypatch, capsys, ["demo"]) == (2, "autoweight: mine\nautoweight: done.\n")


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    code, message = run_here(monkeypatch, capsys, ["train", "digits-noise", "--out", tmp_path])
    assert code == 2
    assert "not empty and holds no run" in message
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(("content", "sentence"), [(b"\x80\x04N.", "pickle"), (b"12345", "truncated")])
def test_wrong_strategy_files(tmp_path, monkeypatch, capsys, content, sentence):
    (tmp_path / "s").write_bytes(content)
    words = ["train", "digits-noise", "--method", "law", "--strategy", tmp_path / "s", "--out", tmp_path / "run"]
    code, message = run_here(monkeypatch, capsys, words)
    assert code == 2
    assert sentence in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("training: 5", "training is 5: it should be keys with their values"),
        ("methods: uniform", "methods is 'uniform': it should be a list"),
        ("knobs: {focal: 3}", "knobs.focal is 3: it should be keys with their values"),
        ("data: {noise: uniform, noise_rate: lots}", "data.noise_rate is 'lots': input should be a valid number"),
        ("seed: [", "is not valid YAML: look at line 3"),
    ],
)
def test_wrong_configurations(tmp_path, monkeypatch, capsys, content, sentence):
    (tmp_path / "a.yaml").write_text(f"recipe: digits-noise\n{content}\n")
    code, message = run_here(monkeypatch, capsys, ["compare", "--config", tmp_path / "a.yaml"])
    assert (code, sentence in message, message.count("\n")) == (2, True, 1), message


def test_an_audit_of_a_folder_of_runs_asks_for_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "config.yaml").write_text("recipe: digits-noise\n")
    monkeypatch.chdir(tmp_path)
    assert run_here(monkeypatch, capsys, ["audit", "runs/"]) == (
        2,
        "autoweight: runs/ holds runs: name one of them, such as runs/RUN.\n",
    )


def test_a_misspelt_key_and_a_configuration_of_another_command(tmp_path, monkeypatch, capsys):
    autoweight("train", "digits-noise", *SHORT, "--out", "run", cwd=tmp_path)
    path = (tmp_path / "run" / "config.yaml").rename(tmp_path / "a run.yaml")
    code, message = run_here(monkeypatch, capsys, ["compare", "--config", path])
    assert (code, f"configures 'train': run autoweight train --config '{path}'." in message) == (2, True)
    path.write_text(path.read_text().replace("noise_rate", "noise_rat"))
    code, message = run_here(monkeypatch, capsys, ["train", "--config", path])
    assert (code, "did you mean 'noise_rate'?" in message) == (2, True)


@pytest.mark.parametrize(
    "box",
    [
        "╭─ Value error ─╮\n│ Error parsing --seed: could not convert string to float: 'x' │\n│ ─── │\n│ help │\n╰───╯",
        " Value error \n ----- \n  Error parsing --seed: could not convert \n  string to float: 'x'\n  -----\n  help\n",
    ],
)
def test_boxes_become_one_sentence_with_and_without_frames(box):
    assert one_sentence(box) == "--seed takes a number, not 'x'."
    assert one_sentence("another\nform") == "another form"
