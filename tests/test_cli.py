"""Commands run as a user runs them."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml

import autoweight as aw
from autoweight.cli import commands, typed
from autoweight.cli.messages import one_sentence
from autoweight.config.files import dump_config, load_config
from autoweight.config.presets import PRESETS
from autoweight.methods import METHODS
from autoweight.models import NETWORKS
from autoweight.recipes import RECIPES, get_recipe
from autoweight.runs import find as finding

SHORT = ["--training.epochs", "2", "--training.num-stages", "4"]
SHORT_SEARCH = [*SHORT, "--search.num-episodes", "3", "--search.num-workers", "5", "--search.choice-rounds", "1"]
SHORT_SEARCH += ["--search.warmup-stages", "1", "--search.episode-share", "1"]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "autoweight", *map(str, words)]


def autoweight(*words: object, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*words), cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def result_of(folder: Path):
    return json.loads((folder / "result.json").read_text())


def test_compare_writes_what_the_design_says(tmp_path):
    words = ["compare", "digits-noise", "--methods", "uniform,oracle,focal", "--seeds", 2, "--seed", 3]
    words += ["--data.noise-rate", 0.6, "--training.epochs", 4, "--training.num-stages", 4]
    shown = autoweight(*words, "--out", "run", cwd=tmp_path).stdout
    assert all(name in shown for name in ("uniform", "oracle", "focal", "std. error", "run folder: run"))
    folder = tmp_path / "run"
    left = ["config.yaml", "metrics.jsonl", "report.html", "result.json", "samples"]
    assert sorted(path.name for path in folder.iterdir()) == left
    result = result_of(folder)
    assert result["recipe"] == "digits-noise"
    assert result["seeds"] == [3, 4]
    assert list(result["methods"]) == ["uniform", "early_stop", "oracle", "focal"]
    for values in result["methods"].values():
        assert len(values["test_accuracy"]) == len(values["train_seconds"]) == 2
        assert all(0 <= accuracy <= 1 for accuracy in values["test_accuracy"])
    assert result["recovered"]["uniform"] == 0
    assert result["recovered"]["oracle"] == 1
    assert set(result["environment"]) >= {"device", "torch", "autoweight"}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["stage"] for line in lines if line["event"] == "stage"] == [0, 1, 2, 3] * 6

    again = ["compare", "--config", folder / "config.yaml", "--out", "again"]
    autoweight(*again, cwd=tmp_path)
    for method, values in result_of(tmp_path / "again")["methods"].items():
        assert values["test_accuracy"] == result["methods"][method]["test_accuracy"]
    assert (tmp_path / "again" / "config.yaml").read_text() == (folder / "config.yaml").read_text()


def test_train_with_a_knob_makes_its_own_run_folder(tmp_path):
    autoweight("train", "digits-noise", "--method", "constant", "--knob", "constant.loss=-4", *SHORT, cwd=tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    assert "train-digits-noise" in folder.name
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["knobs"] == {"constant": {"loss": -4}}
    assert list(result_of(folder)["methods"]) == ["constant"]


def test_search_then_train_with_law(tmp_path):
    own = ["--data.noise-rate", 0.2, "--training.drop-stages", 1, 2, "--data.train-on-all", "--seed", 4]
    words = ["search", "digits-noise", "--agent", "actor-critic", "--out", "found", *own, *SHORT_SEARCH]
    shown = autoweight(*words, cwd=tmp_path)
    assert "count" in shown.stdout
    result = result_of(tmp_path / "found")
    keys = {"validation_gain", "validation_gain_error", "seconds", "episodes", "network_steps", "strategy"}
    assert set(result["search"]) == keys
    gain, error = (100 * result["search"][f"validation_gain{kind}"] for kind in ("", "_error"))
    assert error > 0
    ahead = f"points {'ahead of' if gain >= 0 else 'behind'} no weighting"
    assert f"{abs(gain):.1f} (standard error {error:.1f}) {ahead}" in shown.stdout
    strategy = aw.load(tmp_path / "found" / "strategy.safetensors")
    assert strategy.info["recipe"] == "digits-noise"
    use_it = shlex.split(shown.stdout.split("use it: autoweight")[1].splitlines()[0])
    autoweight(*use_it, "--out", "used", cwd=tmp_path)
    searched, used = (load_config(tmp_path / name / "config.yaml") for name in ("found", "used"))
    assert (used.data, used.training, used.seed) == (searched.data, searched.training, searched.seed)
    words = ["train", "digits-longtail", "--method", "law", "--strategy", "found/strategy.safetensors"]
    words += ["--network", "small_cnn", "--training.batch-size", 16]
    autoweight(*words, "--out", "law", *SHORT, cwd=tmp_path)
    assert list(result_of(tmp_path / "law")["methods"]) == ["law"]
    again = ["compare", "digits-noise", "--methods", "law", "--strategy", "found/strategy.safetensors", *SHORT]
    autoweight(*again, "--out", "again", cwd=tmp_path)
    (tmp_path / "found" / "strategy.safetensors").unlink()
    assert "law" in autoweight("compare", "--out", "again", "--resume", cwd=tmp_path).stdout  # what is done can be seen
    assert "is gone: put it back" in autoweight("search", "--out", "found", "--resume", cwd=tmp_path, status=2).stderr
    autoweight("compare", "--config", "again/config.yaml", "--methods", "uniform", "--out", "plain", cwd=tmp_path)


def test_a_search_by_plain_accuracy_tells_it(tmp_path):
    words = ["search", "digits-noise", "--search.reward", "plain", "--out", "found", *SHORT_SEARCH]
    shown = autoweight(*words, cwd=tmp_path)
    search = result_of(tmp_path / "found")["search"]
    right, error = 100 * search["validation_gain"], 100 * search["validation_gain_error"]
    assert f"it was {right:.1f} (standard error {error:.1f}) % right, late stages counting more" in shown.stdout


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_search_killed_at_any_moment_goes_on_to_the_same_strategy(tmp_path):
    words = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-episodes", 6]
    autoweight(*words, "--out", "whole", cwd=tmp_path)
    process = subprocess.Popen(command(*words, "--out", "killed"), cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "killed" / "checkpoint" / "search.previous", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    refused = autoweight(*words, "--out", "killed", cwd=tmp_path, status=2)
    assert "add --resume to go on" in refused.stderr
    autoweight("search", "--out", "killed", "--resume", cwd=tmp_path)  # the folder knows the rest
    tables = [aw.load(tmp_path / name / "strategy.safetensors").table for name in ("whole", "killed")]
    assert torch.equal(*tables)
    metrics = (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()
    assert len(metrics) == len((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines())


def test_a_killed_training_goes_on_and_another_configuration_is_refused(tmp_path):
    words = ["compare", "digits-noise", "--methods", "uniform,focal", "--training.epochs", 20]
    autoweight(*words, "--out", "whole", cwd=tmp_path)
    process = subprocess.Popen(command(*words, "--out", "killed"), cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "killed" / "checkpoint" / "focal-0", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    other = autoweight(*words, "--seed", 1, "--out", "killed", "--resume", cwd=tmp_path, status=2)
    assert "another configuration (seed was 0 and is now 1)" in other.stderr
    autoweight(*words, "--out", "killed", "--resume", cwd=tmp_path)
    whole, killed = result_of(tmp_path / "whole"), result_of(tmp_path / "killed")
    for method in ("uniform", "focal"):
        assert killed["methods"][method]["test_accuracy"] == whole["methods"][method]["test_accuracy"]
    finished = autoweight(*words, "--out", "killed", cwd=tmp_path, status=2)
    assert "a finished run" in finished.stderr
    assert "uniform" in autoweight(*words, "--out", "killed", "--resume", cwd=tmp_path).stdout


def test_a_running_run_is_left_alone_and_ctrl_c_says_how_to_go_on(tmp_path):
    words = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-episodes", 500, "--out", "run"]
    # Where the tests run in the background, SIGINT is ignored, by their children too.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    wait_for(tmp_path / "run" / "checkpoint" / "search.previous", process)
    assert "in use by another run" in autoweight("search", "--out", "run", "--resume", cwd=tmp_path, status=2).stderr
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "go on with: autoweight search --out run --resume; to keep the best so far, add --finish" in message


def test_a_search_finishes_with_what_is_done_and_goes_on_with_more_episodes(tmp_path):
    words = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-episodes", 500, "--out", "run"]
    process = subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.DEVNULL)
    for name in ("search.previous", "search"):  # between the two the newest is being written
        wait_for(tmp_path / "run" / "checkpoint" / name, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    shown = autoweight("search", "--out", "run", "--resume", "--finish", cwd=tmp_path).stdout
    assert "On the validation set it was" in shown
    done = result_of(tmp_path / "run")["search"]["episodes"] // 5 - 1
    assert 1 <= done < 500
    assert len(aw.load(tmp_path / "run" / "strategy.safetensors").table) == 4
    short = ["search", "digits-noise", *SHORT_SEARCH, "--out", "short"]
    autoweight(*short, "--search.num-episodes", 1, cwd=tmp_path)
    autoweight(*short, "--search.num-episodes", 2, "--resume", cwd=tmp_path)
    assert result_of(tmp_path / "short")["search"]["episodes"] == (2 + 1) * 5
    fewer = autoweight(*short, "--search.num-episodes", 1, "--resume", cwd=tmp_path, status=2)
    assert "search.num_episodes was 2 and is now 1" in fewer.stderr


def test_a_search_of_days_says_so_beforehand(capsys):
    config = get_recipe("digits-noise")
    commands._say_cost(finding.prepare(config))
    assert capsys.readouterr().out == ""
    preset = PRESETS["paper"]
    paper = replace(config, search=replace(preset.search(config.search), num_episodes=20_000))
    commands._say_cost(finding.prepare(paper))
    assert "This search trains 320,000 networks, " in capsys.readouterr().out


def test_a_loss_that_blows_up_fails_the_run_with_1(tmp_path):
    words = ["train", "digits-noise", "--training.learning-rate", "1e30", *SHORT, "--out", "run"]
    failed = autoweight(*words, cwd=tmp_path, status=1)
    assert "uniform, seed 0: the loss turned NaN or infinite at step" in failed.stderr
    assert not (tmp_path / "run" / "result.json").exists()
    assert (tmp_path / "run" / "config.yaml").exists()


def test_a_method_that_blows_up_does_not_take_the_others_along(tmp_path):
    knobs = [f"--knob=constant.{knob}" for knob in ("loss=0", "bias=-100", "warmup=0")]  # weights of 0: it stands still
    words = ["digits-noise", "--methods", "uniform,constant", *knobs, "--training.learning-rate", "1e30", *SHORT]
    for again in ([*words, "--out", "run"], ["--out", "run", "--resume"]):
        failed = autoweight("compare", *again, cwd=tmp_path, status=1)
        assert "uniform, seed 0: the loss turned NaN or infinite at step" in failed.stderr
        assert "constant" in failed.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert list(result["methods"]) == ["constant"]
    assert len(result["failed"]) == 1


def test_list_names_everything(tmp_path):
    shown = autoweight("list", cwd=tmp_path).stdout
    for name in [*RECIPES, *METHODS, *NETWORKS, "digits", "focal.gamma=2.0"]:
        assert name in shown


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["train", "--help"], ["compare", "digits-noise", "--help"], ["list", "--help"]]
)
def test_help(tmp_path, words):
    shown = autoweight(*words, cwd=tmp_path).stdout
    assert "usage" in shown
    assert "cifar10-noise-wide" not in shown  # not the list itself


def test_help_shows_the_defaults_of_the_recipe_wherever_it_stands(tmp_path):
    before, behind = (
        autoweight("train", *words, cwd=tmp_path).stdout
        for words in (["digits-longtail", "-h"], ["-h", "digits-longtail"])
    )
    assert "(default: longtail)" in before
    assert before == behind


def test_demo_tells_the_whole_story(tmp_path):
    config = commands.demo_config()
    training = replace(config.training, epochs=2, num_stages=4)
    search = replace(config.search, num_episodes=2, num_workers=5, choice_rounds=1, warmup_stages=1)
    short = replace(config, training=training, search=search, num_seeds=1)
    (tmp_path / "short.yaml").write_text(dump_config(short))
    shown = autoweight("demo", "--config", "short.yaml", "--out", "run", cwd=tmp_path).stdout
    assert "all samples count the same" in shown
    assert all(method in shown for method in ("uniform", "law", "constant", "focal", "self_paced", "oracle"))
    result = result_of(tmp_path / "run")
    assert list(result["methods"]) == ["uniform", "early_stop", *config.methods[1:]]
    assert result["search"]["strategy"] == "strategy.safetensors"
    assert "law" in result["recovered"]


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
    autoweight("train", "digits-noise", "--data-dir", "files", "--out", "run", *SHORT, cwd=tmp_path)
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["data"]["folder"] == str(tmp_path / "files")
    (tmp_path / "other").mkdir()
    autoweight("train", "--out", "../run", "--resume", cwd=tmp_path / "other")
    failed = autoweight("search", "--out", "run", "--resume", cwd=tmp_path, status=2)
    assert "run holds a run of 'train': autoweight train --out run --resume." in failed.stderr


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
    "nothing at all": (["train"], "name a recipe, or the path of your own data, first"),
    "flag without its value": (["train", "--config"], "name a recipe, or the path of your own data, first"),
    "no recipe": (["train", "--method", "focal"], "name a recipe, or the path of your own data, first"),
    "recipe not first": (
        ["train", "--method", "focal", "digits-noise"],
        "name a recipe, or the path of your own data, first",
    ),
    "unknown method": (["train", "digits-noise", "--method", "focl"], "unknown method 'focl': did you mean 'focal'?"),
    "one unknown method of several": (["compare", "digits-noise", "--methods", "uniform,orcale"], "'oracle'"),
    "method named twice": (["compare", "digits-noise", "--methods", "focal,focal"], "a method is named twice"),
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
    "wrong value": (["train", "digits-noise", "--data.noise", "unifrom"], "uniform_other"),
    "not a number": (["train", "digits-noise", "--training.epochs", "many"], "takes a whole number, not 'many'"),
    "noise rate": (["train", "digits-noise", "--data.noise-rate", "1.5"], "from 0 to 1, but is 1.5"),
    "no validation set": (["search", "digits-noise", "--data.val-size", "0"], "a search needs trusted samples"),
    "too much data": (["train", "digits-noise", "--data.train-size", "5000"], "do not fit into 1250"),
    "batch too large": (["train", "digits-noise", "--training.batch-size", "2000"], "larger than the training set"),
    "too short": (["search", "digits-noise", "--search.warmup-stages", "20"], "leaves nothing"),
    "too few steps": (["train", "digits-noise", "--training.num-stages", "5000"], "cannot be cut into 5000 stages"),
    "too few workers": (["search", "digits-noise", "--search.num-workers", "3"], "at least 5 workers"),
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
    "no such device": (["train", "digits-noise", "--device", "cuda:99"], "there is no device 'cuda:99'"),
    "device without values": (["train", "digits-noise", "--device", "meta"], "there is no device 'meta'"),
    "nonsense device": (["train", "digits-noise", "--device", "gpu"], "there is no device 'gpu'"),
    "law without strategy": (["train", "digits-noise", "--method", "law"], "law needs a strategy"),
    "missing strategy": (["train", "digits-noise", "--method", "law", "--strategy", "x"], "there is no strategy file"),
    "missing config": (["train", "--config", "none.yaml"], "cannot read the configuration none.yaml"),
    "resume without a folder": (["train", "digits-noise", "--resume"], "--resume needs --out FOLDER"),
    "knob of a method that is not trained": (["train", "digits-noise", "--knob", "focal.gamma=1"], "not trained"),
    "strategy as a knob": (["train", "digits-noise", "--knob", "law.strategy=x"], "use --strategy x"),
    "strategy without law": (["train", "digits-noise", "--strategy", "x"], "--strategy is for law"),
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
    "unknown agent": (["search", "digits-noise", "--agent", "cma"], "invalid choice 'cma' for argument '--agent'"),
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


def test_a_misspelt_key_and_a_configuration_of_another_command(tmp_path, monkeypatch, capsys):
    autoweight("train", "digits-noise", *SHORT, "--out", "run", cwd=tmp_path)
    path = tmp_path / "run" / "config.yaml"
    code, message = run_here(monkeypatch, capsys, ["compare", "--config", path])
    assert (code, "configures 'train'" in message) == (2, True)
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
