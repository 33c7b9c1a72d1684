"""The audit of labels: against hand-computed values, against the truth, in other packages, and as a user types it."""

import csv
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.audit import datalab
from autoweight.audit.find import issues_of
from autoweight.cli.run import run
from autoweight.data import Samples, load_pool
from autoweight.methods import TrainingFacts, make_method
from autoweight.recipes import get_recipe
from autoweight.report.audits import audit_view
from autoweight.runs.audit import audit_run, last_audit, write_audit
from autoweight.runs.reading import RunView
from autoweight.runs.samples import sample_columns, samples_file, write_columns
from autoweight.sharded import Sharded
from autoweight.strategy import Rule

from .conftest import make_blobs
from .typed import autoweight

COLUMNS = ("index", "is_label_issue", "label_score", "given_label", "predicted_label")


def audit_of(margins, given, predicted, **more):
    return issues_of(np.array(margins), np.array(predicted), np.array(given), num_classes=max(given) + 1, **more)


def test_hand_computed():
    issues = audit_of([0.8, -0.6, 0.9, math.nan, -0.4], [0, 1, 2, 1, 0], [0, 2, 2, 1, 1])
    assert issues["index"].tolist() == [1, 4, 0, 2, 3]  # worst first; who never came up is last
    with pytest.raises(aw.UserError, match=r"not slice\(None, 3, None\); rows come by iterating, or by head"):
        issues[:3]
    assert issues["label_score"].tolist() == pytest.approx([0.2, 0.3, 0.9, 0.95, math.nan], nan_ok=True)
    even = -0.25  # half of the mean of -0.6 and -0.4; the share of two in four would have it at 0
    assert issues.threshold == pytest.approx((1 + even) / 2)
    assert issues["is_label_issue"].tolist() == [True, True, False, False, False]
    wrong = [1 / (1 + math.exp(16 * (margin - even))) for margin in (0.8, -0.6, 0.9, -0.4)]
    assert issues.noise_rate == pytest.approx(sum(wrong) / 4)
    expected = np.array([[2 - wrong[3], wrong[3], 0], [0, 1 - wrong[1], wrong[1]], [0, 0, 1]])
    assert issues.confusion == pytest.approx(expected, abs=1e-5)
    assert [(one.given_label, one.predicted_label, one.count) for one in issues.mistakes()] == [(0, 1, 1), (1, 2, 1)]


def judged(given, predicted, visits):
    """An audit of samples that are contradicted where they are predicted otherwise."""
    margins = np.where(np.array(given) == np.array(predicted), 0.5, -0.5)
    return audit_of(margins, given, predicted, visits=visits)


def test_an_audit_of_a_network_that_has_hardly_learnt_says_so():
    given = [0, 1, 2, 3] * 10
    assert judged(given, given, 20.0).caution == ""
    assert "each sample was seen 2.0 times" in judged(given, given, 2.0).caution
    chance = judged(given, [0] * 40, 20.0).caution
    assert "the network agrees with 25% of the labels, and naming one class would with 25%" in chance
    assert chance.endswith("train longer, or see whether the inputs tell the classes apart.")
    noisy = [*given[:24], *[(label + 1) % 4 for label in given[24:]]]  # 40 % contradicted is noise, not ignorance
    assert judged(given, noisy, 20.0).caution == ""
    assert judged(given, [0] * 40, None).caution == ""  # no training
    weigher, labels = aw.load("auto"), torch.arange(8) % 4
    logits = 3 * torch.eye(4)[labels]
    for visit in range(7):
        weigher.weigh(cross_entropy(logits, labels, reduction="none"), logits, labels, 0.1, indices=torch.arange(8))
        issues = aw.find_label_issues(weigher, labels)
        assert ("The list misleads: each sample was seen" in repr(issues)) == (visit < 4)


def test_an_audit_reads_the_whole_training_and_early_visits_count_more():
    auto = aw.load("auto")
    for certainty in (2.0, 2.0, -6.0):  # contradicted twice, and then memorised
        logits = torch.tensor([[0.0, certainty], [9.0, 0.0]])
        losses = cross_entropy(logits, torch.tensor([0, 0]), reduction="none")
        auto.weigh(losses, logits, torch.tensor([0, 0]), progress=0.0, indices=torch.tensor([0, 2]))
    means, mean = [], 0.0
    for certainty in (2.0, 2.0, -6.0):
        mean += 0.2 * (math.tanh(-certainty / 2) - mean)
        means.append(mean)
    expected = (means[0] + means[1] / 2 + means[2] / 3) / (1 + 1 / 2 + 1 / 3)
    margins, predicted = auto.judgement()
    assert float(margins[0]) == pytest.approx(expected, abs=1e-6)
    assert means[2] > expected  # the running mean has begun to forget
    assert margins.isnan().tolist()[:3] == [False, True, False]
    assert predicted.tolist()[:3] == [1, -1, 0]
    kept = aw.load("auto")
    kept.load_state_dict(auto.state_dict())
    assert torch.equal(kept.judgement()[0].nan_to_num(), margins.nan_to_num())
    kept.memory.census.opened.fill_(True)  # wrong labels are left out, and not memorised: the end counts, too
    assert float(kept.judgement()[0][0]) == pytest.approx((expected + means[2]) / 2, abs=1e-6)
    assert kept.judgement()[0].isnan().tolist()[:3] == [False, True, False]


def test_the_knob_and_the_default_threshold():
    margins = [0.9] * 98 + [-0.1, -0.9]
    assert audit_of(margins, [0] * 100, [0] * 98 + [1, 1]).num_issues == 1  # few contradicted: only strongly
    assert audit_of(margins, [0] * 100, [0] * 98 + [1, 1], threshold=0.5).num_issues == 2
    assert audit_of(margins, [0] * 100, [0] * 98 + [1, 1], threshold=1.0).num_issues == 100
    many = [0.9] * 60 + [-0.1] * 40
    assert audit_of(many, [0] * 100, [0] * 60 + [1] * 40).num_issues == 40
    hard = [0.9] * 60 + [-0.8] * 30 + [-0.2] * 10  # hard samples are contradicted by less than wrong labels
    assert audit_of(hard, [0] * 100, [0] * 60 + [1] * 40).num_issues == 30


def trained(data, weigher, epochs=8, classes=3):
    """A loop of the user's own."""
    torch.manual_seed(0)
    model = nn.Linear(2, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for epoch in range(epochs):
        for index in torch.randperm(len(data)).split(16):
            logits = model(data.inputs[index])
            losses = cross_entropy(logits, data.labels[index], reduction="none")
            weights = weigher.weigh(losses, logits, data.labels[index], progress=epoch / epochs, indices=index)
            optimizer.zero_grad()
            aw.weighted_mean(losses, weights).backward()
            optimizer.step()
    return weigher


@pytest.fixture(scope="module")
def audited():
    blobs = make_blobs(120)
    wrong = torch.arange(120) % 5 == 0
    noisy = blobs.relabel(torch.where(wrong, (blobs.labels + 1) % 3, blobs.labels))
    return noisy, trained(noisy, aw.load("auto"))


def test_wrong_labels_are_found_in_a_loop_of_ones_own(audited):
    noisy, weigher = audited
    issues = aw.find_label_issues(weigher, noisy.labels, names=[f"{k}.png" for k in range(120)])
    worst = issues["index"][: issues.num_issues]
    assert noisy.clean[torch.as_tensor(worst)].sum() <= 1
    assert 22 <= issues.num_issues <= 25
    assert abs(issues.noise_rate - 0.2) < 0.03
    assert (issues["predicted_label"] == noisy.true_labels.numpy()[issues["index"]]).mean() > 0.95
    assert len(issues) == 120
    assert issues.columns == (*COLUMNS, "name")
    first = next(iter(issues))
    assert (first.index, first.name) == (worst[0], f"{worst[0]}.png")
    assert f"{issues.num_issues} of 120 labels look wrong" in repr(issues)


def test_class_names_and_numpy_labels(audited):
    noisy, weigher = audited
    issues = aw.find_label_issues(weigher, noisy.labels.numpy(), class_names=["ant", "bee", "cat"])
    assert set(issues["given_label"]) == {"ant", "bee", "cat"}
    for same in (np.array(["ant", "bee", "cat"]), {2: "cat", 0: "ant", 1: "bee"}):
        named = aw.find_label_issues(weigher, noisy.labels.tolist(), class_names=same)
        assert (named["given_label"] == issues["given_label"]).all()
    assert issues.mistakes(1)[0].predicted_label in {"ant", "bee", "cat"}
    of_ten = issues_of(np.array([-0.5]), np.array([1]), np.array([0]), num_classes=10, class_names=["ant", "bee"])
    assert of_ten.mistakes()[0].predicted_label == "bee"  # eight outputs to spare, which are no classes
    assert of_ten.confusion.shape == (2, 2)


def test_tables_that_other_programs_read(audited, tmp_path):
    noisy, weigher = audited
    issues = aw.find_label_issues(weigher, noisy.labels)
    issues.to_csv(tmp_path / "issues.csv")
    rows = list(csv.DictReader((tmp_path / "issues.csv").read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [int(row["index"]) for row in rows] == issues["index"].tolist()
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    issues.to_parquet(tmp_path / "issues.parquet")
    assert parquet.read_table(tmp_path / "issues.parquet").to_pydict()["index"] == issues["index"].tolist()
    frame = issues.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.columns) == COLUMNS


def test_datalab_takes_it_for_one_of_its_own(audited):
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    noisy, weigher = audited
    lab = cleanlab.Datalab({"label": noisy.labels.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher}})
    found = lab.get_issues(aw.datalab.register())
    own = aw.find_label_issues(weigher, noisy.labels)
    assert found.index[found["is_autoweight_label_issue"]].tolist() == sorted(own["index"][own["is_label_issue"]])
    assert found["autoweight_label_score"].tolist() == own.to_pandas().sort_values("index")["label_score"].tolist()


def test_datalab_may_number_classes_otherwise(audited):
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    noisy, weigher = audited
    own = aw.find_label_issues(weigher, noisy.labels).to_pandas().sort_values("index")
    names = ["wasp", "bee", "ant"]  # by number, not sorted
    words = [names[label] for label in noisy.labels.tolist()]
    lab = cleanlab.Datalab({"label": words}, label_name="label", verbosity=0)
    lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher, "class_names": names}})
    assert lab.get_issues(aw.datalab.register())["autoweight_label_score"].tolist() == own["label_score"].tolist()
    assert lab.get_info(aw.datalab.register())["given_label"].tolist() == words
    far = trained(noisy.relabel(noisy.labels + 5), aw.load("auto"), epochs=1, classes=8)
    lab = cleanlab.Datalab({"label": (noisy.labels + 5).tolist()}, label_name="label", verbosity=0)
    lab.find_issues(issue_types={aw.datalab.register(): {"weigher": far}})
    assert set(lab.get_info(aw.datalab.register())["given_label"]) == {5, 6, 7}
    with pytest.raises(aw.UserError, match="class_names lacks 5, 6, 7"):
        datalab._trained_on(lab, [0, 1])


def test_the_page_shows_the_audit_that_was_asked_for_last(tmp_path):
    margins = np.array([0.9, 0.4, -0.8, 0.8, -0.1], np.float32)
    columns = {"index": np.arange(5), "label": np.zeros(5, int), "predicted": np.array([0, 1, 1, 0, 1])}
    columns |= {"margin": margins, "remembered": np.array(True), "num_classes": np.array(2)}
    for seed in (0, 1):
        write_columns(samples_file(tmp_path, "auto", seed), columns)
    assert last_audit(tmp_path).threshold is None
    write_audit(audit_run(tmp_path, seed=1, threshold=0.75), tmp_path)
    again = last_audit(tmp_path)
    assert (again.seed, again.threshold, again.issues.num_issues) == (1, 0.75, 3)
    assert audit_view(SimpleNamespace(path=tmp_path)).num_issues == 3
    (tmp_path / "audit.json").write_text("{")
    assert last_audit(tmp_path).seed == 0


def test_what_cannot_be_audited_says_why(audited):
    noisy, weigher = audited
    for ask, sentence in [
        (lambda: aw.find_label_issues(aw.Uniform(), noisy.labels), "remembers no samples"),
        (lambda: aw.find_label_issues(aw.load("auto"), noisy.labels), "remembers no samples"),
        (lambda: aw.find_label_issues(weigher, noisy.labels[:50]), "there are only 50 labels"),
        (lambda: aw.find_label_issues(weigher, noisy.true_labels), "give the labels of the training"),
        (lambda: aw.find_label_issues(weigher, noisy.labels.float()), "whole number"),
        (lambda: aw.find_label_issues(weigher, "labels"), "whole number"),
        (lambda: aw.find_label_issues(weigher, []), "whole number"),
        (lambda: aw.find_label_issues(weigher, noisy.labels, threshold=2), "from 0 to 1"),
        (lambda: aw.find_label_issues(weigher, noisy.labels, threshold="a"), "from 0 to 1, but is 'a'"),
        (lambda: aw.find_label_issues(weigher, noisy.labels, class_names={"ant": 0}), "a name for each class's number"),
        (lambda: aw.find_label_issues(weigher, noisy.labels, names=["a"]), "but 1 names"),
        (lambda: aw.find_label_issues(weigher, noisy.labels, class_names=["a"]), "class 2, but there are 1 class"),
        (lambda: aw.find_label_issues(weigher, noisy.labels)["score"], "did you mean 'label_score'"),
        (lambda: audit_of([0.5], [9999], [9999]).confusion, "look at mistakes"),
    ]:
        with pytest.raises(aw.UserError, match=sentence):
            ask()
    losses_alone = trained(noisy, aw.Strategy(torch.zeros(1, 3), Rule(("history",))), epochs=1)
    with pytest.raises(aw.UserError, match="remembers losses alone"):
        aw.find_label_issues(losses_alone, noisy.labels)


def test_of_samples_that_never_came_up_nothing_is_said(audited, tmp_path):
    noisy, weigher = audited
    labels, seen = torch.cat([noisy.labels, torch.tensor([2, 1])]), aw.find_label_issues(weigher, noisy.labels)
    for threshold in (None, 1.0):
        issues = aw.find_label_issues(weigher, labels, threshold=threshold)
        assert set(issues["index"][-2:]) == {120, 121}
        assert not issues["is_label_issue"][-2:].any()
        assert np.isnan(issues["label_score"]).tolist() == [False] * 120 + [True] * 2
        assert (issues.noise_rate, issues.num_seen) == (seen.noise_rate, 120)
        assert (issues.confusion == seen.confusion).all()
        assert f"{issues.num_issues} of 120 labels look wrong" in repr(issues)
    issues.to_csv(tmp_path / "issues.csv")
    last = list(csv.DictReader((tmp_path / "issues.csv").read_text().splitlines()))[-1]
    assert (last["label_score"], last["is_label_issue"]) == ("nan", "False")
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    lab = cleanlab.Datalab({"label": labels.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher}})
    assert lab.get_issues(aw.datalab.register())["autoweight_label_score"].isna().tolist() == [False] * 120 + [True] * 2


def test_audit_of_a_recipe_then_of_its_run(tmp_path, monkeypatch, capsys):
    words = ["audit", "digits-noise", "--out", "run", "--training.epochs", 15, "--training.num-stages", 5]
    shown = autoweight(*words, cwd=tmp_path).stdout
    rows = list(csv.DictReader((tmp_path / "run" / "label_issues.csv").read_text().splitlines()))
    assert len(rows) == 1250  # all but the test part
    found = audit_run(tmp_path / "run")
    wrong = found.columns["wrong"]
    assert f"By auto, seed 0: {found.issues.num_issues} of 1,250 labels look wrong" in shown
    assert abs(found.issues.noise_rate - wrong.mean()) < 0.03
    config = get_recipe("digits-noise").data
    pool = load_pool(config).samples
    place = {int(source): position for position, source in enumerate(pool.source)}
    bad = [row for row in rows if row["is_label_issue"] == "True"]
    truth = [int(pool.labels[place[int(row["index"])]]) for row in bad]
    assert np.mean([int(row["given_label"]) != label for row, label in zip(bad, truth, strict=True)]) > 0.9
    assert found.columns["pictures"].shape[1:] == (8, 8, 1)

    monkeypatch.chdir(tmp_path)
    run(["audit", "run", "--threshold", "0.01", "--out", "strict"])
    assert (tmp_path / "strict" / "label_issues.csv").exists()
    strict = int(capsys.readouterr().out.split("seed 0: ")[1].split(" of")[0])
    assert strict < found.issues.num_issues
    for folder, count in (("run", found.issues.num_issues), ("strict", strict)):  # the page says what was asked
        assert f"<strong>{count:,} of 1,250</strong>" in (tmp_path / folder / "report.html").read_text()
    for words, sentence in [
        (["run", "--method", "law"], "take the one that did, --method auto --seed 0"),
        (["run", "--threshold", "3"], "from 0 to 1"),
        (["run", "--out", "strict/label_issues.csv"], "cannot use the output folder strict/label_issues.csv"),
        (["nothing"], "names no run's folder"),
    ]:
        with pytest.raises(aw.UserError, match=sentence):
            run(["audit", *words])
    (tmp_path / "run" / "samples" / "auto-0.npz").write_bytes(b"cut short")
    with pytest.raises(aw.UserError, match="is damaged: train again"):
        run(["audit", "run"])
    (tmp_path / "run" / "samples" / "auto-0.npz").unlink()
    with pytest.raises(aw.UserError, match="autoweight audit RECIPE"):
        run(["audit", "run"])


def test_a_strategy_in_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(["describe", "auto"])
    assert "keeps contradicting" in capsys.readouterr().out
    strategy = aw.Strategy(torch.tensor([[-2.0, 0.0]]), Rule(("loss",)))
    strategy.save(tmp_path / "strategy.safetensors")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("strategy.safetensors", ".", "~"):
        run(["describe", name])
        assert capsys.readouterr().out.splitlines() == aw.describe(strategy)
    strategy.info.update(validation_gain=0.1, agent="cmaes", episodes=55)  # 11 workers, 5 rounds
    strategy.save(tmp_path / "strategy.safetensors")
    run(["describe", "."])
    assert "Found by cmaes in 55 trainings.\n" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    for words, sentence in [([], "name one strategy"), (["empty"], "holds no strategy"), (["atuo"], "mean 'auto'")]:
        with pytest.raises(aw.UserError, match=sentence):
            run(["describe", *words])


def rows_to_audit(folder):
    """The words that audit a small table."""
    rows = "".join(f"{place % 11},{place % 7},{'ab'[place % 2]}\n" for place in range(60))
    (folder / "rows.csv").write_text("size,colour,label\n" + rows)
    return ["audit", "rows.csv", "--label", "label", "--training.epochs", "2", "--training.num-stages", "2"]


@pytest.mark.filterwarnings("ignore:nothing is split off to test on|.* only rises")
def test_an_audit_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run([*rows_to_audit(tmp_path), "--out", "o"])
    (tmp_path / "o" / "result.json").unlink()
    run(["audit", "--out", "o", "--resume"])
    assert capsys.readouterr().out.count("labels look wrong") == 2
    assert len((tmp_path / "o" / "label_issues.csv").read_text().splitlines()) == 61  # every sample, and the header


@pytest.mark.filterwarnings("ignore:nothing is split off to test on|.* only rises")
def test_an_audit_is_written_though_nobody_reads_on_and_narrow_windows_cut_no_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def closed(*words):
        raise BrokenPipeError

    with monkeypatch.context() as head:
        head.setattr(Console, "print", closed)
        with pytest.raises(BrokenPipeError):
            run([*rows_to_audit(tmp_path), "--out", "o"])
        with pytest.raises(BrokenPipeError):
            run(["audit", "o", "--out", "again"])
    for folder in ("o", "again"):
        assert (tmp_path / folder / "label_issues.csv").exists()
    run(["audit", "o"])
    shown = capsys.readouterr().out
    worst = next(iter(audit_run(tmp_path / "o").issues))
    assert worst.name in shown
    assert all(heading in shown for heading in (" issue ", " score ", " given ", " predicted ", " name "))


def test_a_memory_in_shares_says_where_its_whole_is():
    with pytest.raises(aw.UserError, match=r"weigher\.whole\(\)"):
        aw.find_label_issues(Sharded(aw.load("auto"), 4, 2), [0, 1, 0, 1])


def test_the_truth_is_known_of_tokens_too(tmp_path):
    columns = {
        "index": np.array([0, 0, 1, 1], dtype=np.uint32),
        "token": np.array([0, 1, 0, 1], dtype=np.uint32),
        "label": np.array([0, 1, 0, 1], dtype=np.uint8),
        "predicted": np.array([0, 0, 1, 1], dtype=np.uint8),
        "margin": np.array([0.9, -0.8, -0.9, 0.9], dtype=np.float32),
        "wrong": np.array([False, True, False, True]),
        "remembered": np.array(True),
        "num_classes": np.array(2),
    }
    write_columns(samples_file(tmp_path, "auto", 0), columns)
    view = audit_view(read_run_of(tmp_path))
    assert (view.true_rate, view.found) == (0.5, (0.5, 0.5))


def read_run_of(folder):
    """A run of which only its samples are there."""
    return RunView(folder, None, [], {}, True, None)


def test_tokens_keep_which_of_them_are_wrong():
    """As `--data.noise uniform` makes some."""
    true = torch.tensor([[0, 1, -100], [1, 1, 0]])
    samples = Samples.of(torch.zeros(2, 3), true, task="tokens").relabel(torch.tensor([[0, 0, -100], [1, 1, 0]]))
    columns = sample_columns(make_method("uniform", TrainingFacts(samples.class_counts, samples.clean), {}), samples)
    assert columns["wrong"].tolist() == [False, True, False, False, False]
