import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path

import paper_figures
import pytest
import yaml

from autoweight.recipes import get_recipe

ROOT = Path(__file__).parents[1]


def benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results():
    return benchmark("results")


def config_of(**changes):
    data = {"dataset": "cifar10", "folder": "/somewhere", "noise": "uniform", "noise_rate": 0.4, "imbalance": "none"}
    data |= {"train_on_all": True, "rare_classes": [0, 1]}
    training = {"epochs": 200, "weight_decay": 2e-5}
    return {"data": data, "network": "resnet18", "training": training, "knobs": {}, "strategy": None} | changes


def test_the_pages_hold_what_the_kept_runs_say(results, tmp_path, monkeypatch):
    pages = ("docs/results.md", "results/README.md")
    for page in pages:
        (tmp_path / page).parent.mkdir()
        (tmp_path / page).write_text((ROOT / page).read_text())
    monkeypatch.setattr(results, "ROOT", tmp_path)
    results.build()
    for page in pages:
        assert (tmp_path / page).read_text() == (ROOT / page).read_text(), "run `make results`"


def test_a_kept_run_has_its_configuration_and_no_path_of_the_machine(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RUNS", tmp_path / "runs")
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text(yaml.safe_dump(config_of(strategy="/somewhere/strategy.safetensors")))
    law = {"test_accuracy": [0.85], "train_seconds": [60.0]}
    (run / "result.json").write_text(json.dumps({"seeds": [0], "methods": {"law": law}}))
    stages = [
        {
            "event": "stage",
            "method": method,
            "seed": 0,
            "stage": stage,
            "val_score": 0.1 * stage,
            "train_loss": stage,
        }
        for stage in range(3)
        for method in ("law", "uniform")
    ]
    (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, [*stages, {"event": "trained"}])))
    results.add(run, "kept", "found")
    text = (tmp_path / "runs" / "kept.json").read_text()
    assert "somewhere" not in text
    assert json.loads(text)["config"]["strategy"] == "found"
    assert json.loads(text)["methods"]["law"]["val_score"] == [[0.0, 0.1, 0.2]]
    assert json.loads(text)["methods"]["law"]["train_loss"] == [[0, 1, 2]]
    with pytest.raises(SystemExit):
        results.add(run, "kept")


def test_runs_of_one_task_share_a_table_and_recovery_uses_common_seeds(results):
    def run(seeds, config=None, **accuracies):
        methods = {
            name: {"test_accuracy": values, "train_seconds": [60.0] * len(values)}
            for name, values in accuracies.items()
        }
        return {"seeds": seeds, "methods": methods, "config": config or config_of()}

    tasks = results.collect(
        {
            "a": run([0, 1], uniform=[0.7, 0.6], oracle=[0.9, 0.9]),
            "found": run([0]) | {"search": {}},
            "b": run([0], config_of(strategy="found"), law=[0.85]),
            "e": run([1], config_of(strategy="found-late"), law=[0.81]),
            "d": run([0], config_of(strategy="mine"), law=[0.95]),
            "c": run([0], config_of(knobs={"constant": {"loss": -8.0}}), constant=[0.8]),
        }
    )
    [(task, rows)] = tasks.items()
    assert task[:3] == ("cifar10", paper_figures.NOISE, "resnet18")
    assert results.recovered(rows, results.Row("law", "strategy found")) == pytest.approx(0.75)
    table = "\n".join(results.task_table(task, rows))
    assert "| law (strategy found) | 86.33 | 85.00 | 1 | 0.75 | 1.0 |" in table
    assert "| law (strategy found-late) | 86.33 | 81.00 | 1 | 0.70 | 1.0 |" in table
    assert "| set by hand (strategy mine) |  | 95.00 | 1 | 1.25 | 1.0 |" in table
    assert "| uniform | 79.44 | 65.00 ± 5.00 | 2 | 0.00 | 1.0 |" in table
    assert table.index("constant (loss -8.0)") < table.index("law")


def test_the_summary_has_only_searches_that_their_recipe_would_make_today(results):
    today = json.loads(json.dumps(asdict(get_recipe("cifar10-noise"))))
    former = today | {"search": today["search"] | {"head_start": 18}}
    larger = today | {"data": today["data"] | {"train_size": 20_000}}
    rest = {key: value for key, value in today["search"].items() if key not in ("cmaes", "start")}
    start, cmaes = today["search"]["start"], today["search"]["cmaes"]
    within = today | {"search": rest | {"cmaes": cmaes | {"start": start}}}
    beside = today | {"search": rest | cmaes | {f"start_{key}": value for key, value in start.items()}}
    older = beside | {"search": {key: value for key, value in beside["search"].items() if key != "start_loss"}}

    def trained(strategy):
        law = {"test_accuracy": [0.89, 0.88], "train_seconds": [60.0, 120.0]}
        return {"seeds": [0, 1], "methods": {"law": law}, "config": config_of(strategy=strategy)}

    runs = {
        "found": {"seeds": [0], "methods": {}, "config": today, "search": {"seconds": 240.0}},
        "once": {"seeds": [0], "methods": {}, "config": former, "search": {"seconds": 240.0}},
        "large": {"seeds": [0], "methods": {}, "config": larger, "search": {"seconds": 240.0}},
        "within": {"seeds": [0], "methods": {}, "config": within, "search": {"seconds": 240.0}},
        "kept": {"seeds": [0], "methods": {}, "config": beside, "search": {"seconds": 240.0}},
        "old": {"seeds": [0], "methods": {}, "config": older, "search": {"seconds": 240.0}},
        "a": trained("found"),
        "b": trained("once"),
        "d": trained("large"),
        "e": trained("old"),
        "f": trained("kept"),
        "g": trained("within"),
        "c": {
            "seeds": [0],
            "methods": {name: {"test_accuracy": [0.7], "train_seconds": [1]} for name in ("uniform", "focal")},
            "config": config_of(),
        },
    }
    _, _, *lines, _ = results.summary(results.collect(runs), runs)
    task = "cifar10, 40 % of labels redrawn, resnet18"
    assert lines == [
        f"| {task} | {name} | 4.0 + 1.5 | 70.00 | 70.00 (focal) | **88.50** (2 seeds) |  |  | 79.44, 86.33 |"
        for name in ("found", "kept", "within")
    ]


def test_runs_that_a_title_cannot_tell_apart_are_refused(results):
    run = {"seeds": [0], "methods": {"uniform": {"test_accuracy": [0.7], "train_seconds": [60.0]}}}
    configs = [
        config_of(training={"epochs": 200, "weight_decay": 2e-5, "batch_size": size}) for size in (128, 1000, 128)
    ]
    with pytest.raises(SystemExit, match="differs from other runs of its task in batch_size"):
        results.collect({"a": run | {"config": configs[0]}, "b": run | {"config": configs[1]}})
    with pytest.raises(SystemExit, match="b has uniform with a seed that another run has"):
        results.collect({"a": run | {"config": configs[0]}, "b": run | {"config": configs[2]}})


def test_titles_say_every_bias(results):
    def bias(**changes):
        return results.task_of(config_of(data=config_of()["data"] | changes)).bias

    assert bias(noise="none") == "clean"
    assert bias(imbalance="longtail", imbalance_factor=100.0) == f"{paper_figures.NOISE}, {paper_figures.LONGTAIL}"
    assert bias(noise="none", imbalance="step", imbalance_factor=25.0) == paper_figures.STEP10
    assert bias(noise="asymmetric") == "asymmetric noise, rate 0.4"


def test_where_oracle_and_uniform_are_equal_nothing_is_recovered(results):
    rows = {results.Row(name, ""): {0: (0.7, 60.0)} for name in ("uniform", "oracle")}
    assert results.recovered(rows, results.Row("oracle", "")) is None


def test_a_proxy_check_tries_tables_of_its_features_on_every_recipe():
    check = benchmark("proxy_check")
    for name in check.RECIPES:
        features, tables = check.strategies_for(get_recipe(name))
        assert all(table.shape == (check.STAGES, len(features) + 1) for table in tables.values())
        assert len(tables) >= 15
