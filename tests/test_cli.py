"""Commands run as a user runs them."""

import json
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

import autoweight as aw
from autoweight.cli import commands
from autoweight.cli.arguments import TrainArguments
from autoweight.cli.main import main
from autoweight.cli.typed import configured
from autoweight.config.files import dump_config, load_config
from autoweight.config.presets import PRESETS
from autoweight.config.training import PAPER_DROPS
from autoweight.methods import METHODS
from autoweight.models import NETWORKS
from autoweight.recipes import RECIPES, get_recipe
from autoweight.runs import find as finding
from autoweight.workers import StackedWorkers

from .typed import Typed, autoweight

SHORT = ["--training.epochs", "2", "--training.num-stages", "4"]
SHORT_SEARCH = [*SHORT, "--search.num-episodes", "3", "--search.num-workers", "5", "--search.choice-rounds", "1"]
SHORT_SEARCH += ["--search.warmup-stages", "1", "--search.episode-share", "1"]


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
    keys = {"validation_gain", "validation_gain_error", "validation_repeats", "candidates", "strategy"}
    assert set(result["search"]) == keys | {"seconds", "episodes", "network_steps"}
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
    own = ["--search.agent", "trust-region", "--search.trust-region.radius", "0.2"]
    words = ["search", "digits-noise", "--search.reward", "plain", *own, "--out", "found", *SHORT_SEARCH]
    shown = autoweight(*words, cwd=tmp_path)
    assert aw.load(tmp_path / "found" / "strategy.safetensors").info["agent"] == "trust-region"
    search = result_of(tmp_path / "found")["search"]
    right, error = 100 * search["validation_gain"], 100 * search["validation_gain_error"]
    assert f"it was {right:.1f} (standard error {error:.1f}) % right, late stages counting more" in shown.stdout


def wait_for(path: Path, typed: Typed) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert not typed.ended, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_search_killed_at_any_moment_goes_on_to_the_same_strategy(tmp_path):
    words = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-episodes", 6]
    autoweight(*words, "--out", "whole", cwd=tmp_path)
    typed = Typed(*words, "--out", "killed", cwd=tmp_path)
    wait_for(tmp_path / "killed" / "checkpoint" / "search.previous", typed)
    typed.send(signal.SIGKILL)
    typed.wait()
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
    typed = Typed(*words, "--out", "killed", cwd=tmp_path)
    wait_for(tmp_path / "killed" / "checkpoint" / "focal-0", typed)
    typed.send(signal.SIGKILL)
    typed.wait()
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
    typed = Typed(*words, cwd=tmp_path)
    wait_for(tmp_path / "run" / "checkpoint" / "search.previous", typed)
    assert "in use by another run" in autoweight("search", "--out", "run", "--resume", cwd=tmp_path, status=2).stderr
    typed.send(signal.SIGINT)
    done = typed.wait()
    assert done.status == 130
    assert "go on with: autoweight search --out run --resume; to keep the best so far, add --finish" in done.stderr


def test_a_search_finishes_with_what_is_done_and_goes_on_with_more_episodes(tmp_path):
    words = ["search", "digits-noise", *SHORT_SEARCH, "--search.num-episodes", 500, "--out", "run"]
    typed = Typed(*words, cwd=tmp_path)
    for name in ("search.previous", "search"):  # between the two the newest is being written
        wait_for(tmp_path / "run" / "checkpoint" / name, typed)
    typed.send(signal.SIGKILL)
    typed.wait()
    shown = autoweight("search", "--out", "run", "--resume", "--finish", cwd=tmp_path).stdout
    assert "On the validation set it was" in shown
    done = result_of(tmp_path / "run")["search"]["episodes"] // 5 - 1
    assert 1 <= done < 500
    assert len(aw.load(tmp_path / "run" / "strategy.safetensors").table) == 4
    short = ["search", "digits-noise", *SHORT_SEARCH, "--out", "short"]
    autoweight(*short, "--search.num-episodes", 1, cwd=tmp_path)
    autoweight(*short, "--search.num-episodes", 2, "--resume", cwd=tmp_path)
    assert result_of(tmp_path / "short")["search"]["episodes"] == (2 + 1) * 5
    lines = [json.loads(line) for line in (tmp_path / "short" / "metrics.jsonl").read_text().splitlines()]
    assert {line["episode"] for line in lines if line.get("doing") == "choosing"} == {2}  # the former choice is gone
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
    typed = [sys.executable, "-m", "autoweight", "list"]  # as it is, with a Python of its own
    shown = subprocess.run(typed, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
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
    training = replace(config.training, epochs=2, num_stages=4, drop_stages=())
    search = replace(config.search, num_episodes=2, num_workers=5, choice_rounds=1, warmup_stages=1)
    short = replace(config, training=training, search=search, num_seeds=1)
    (tmp_path / "short.yaml").write_text(dump_config(short))
    shown = autoweight("demo", "--config", "short.yaml", "--out", "run", cwd=tmp_path).stdout
    assert "ll samples count the same" in shown
    assert all(method in shown for method in ("uniform", "law", "constant", "focal", "self_paced", "oracle"))
    result = result_of(tmp_path / "run")
    assert list(result["methods"]) == ["uniform", "early_stop", *config.methods[1:]]
    assert result["search"]["strategy"] == "strategy.safetensors"
    assert "law" in result["recovered"]


def test_the_walk_from_the_command_to_the_first_step_is_short(tmp_path, monkeypatch):
    """Eight calls, the step's own among them; before come `main`, `run` and `_search`, which read the command's words.

    What tries out whether networks can be stacked is no step of the search.
    """
    package, walk = str(Path(aw.__file__).parent), []

    class ReachedError(Exception):
        pass

    def step(workers, *given):
        frame, names = sys._getframe(1), ["_train_step"]
        while frame is not None:
            if frame.f_code.co_filename.startswith(package):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        if "run_episode" in names:
            walk.extend(reversed(names))
            raise ReachedError
        return train_step(workers, *given)

    train_step = StackedWorkers._train_step
    monkeypatch.setattr(StackedWorkers, "_train_step", step)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["autoweight", "search", "digits-noise", *SHORT_SEARCH])
    with pytest.raises(ReachedError):
        main()
    calls = walk[walk.index("_search") + 1 :]
    assert walk[: walk.index("_search")] == ["main", "run"]
    assert calls == ["search", "find_strategy", "run", "run", "run_episode", "run_stage", "_train", "_train_step"]


@pytest.mark.parametrize(
    ("stages", "typed", "drops"),
    [
        (20, None, (6, 12, 18)),
        (40, None, (12, 24, 36)),
        (4, None, (1, 2, 3)),
        (2, None, (1,)),
        (1, None, ()),
        (40, (6, 13), (6, 13)),
    ],
)
def test_a_recipes_drops_keep_their_place_where_stages_alone_are_typed(stages, typed, drops):
    base = get_recipe("imagenet-noise")
    training = replace(base.training, num_stages=stages, drop_stages=typed or base.training.drop_stages)
    arguments = TrainArguments(data=base.data, training=training, network=base.network)
    assert configured(base, arguments).training.drop_stages == drops
    paper = get_recipe("digits-noise")
    arguments = TrainArguments(data=paper.data, training=replace(paper.training, num_stages=4), network=paper.network)
    assert configured(paper, arguments).training.drop_stages == PAPER_DROPS  # of 20 stages, whatever is typed
