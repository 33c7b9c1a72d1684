"""auto: what it makes of trainings whose margins are known."""

import json

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot
from torch.testing import assert_close

import autoweight as aw
from autoweight.cli.run import run
from autoweight.strategy.census import Census, Margins

SAMPLES, CLASSES = 400, 4
LABELS = torch.arange(SAMPLES) % CLASSES


def look(believed, indices, certainty=4.0, labels=LABELS, generator=None):
    """Losses, logits and labels of a network that believes in these classes, whatever it is taught."""
    noise = 0.3 * torch.randn(len(indices), CLASSES, generator=generator or torch.Generator().manual_seed(7))
    logits = certainty * one_hot(believed[indices], CLASSES) + noise
    return cross_entropy(logits, labels[indices], reduction="none"), logits, labels[indices]


def train(auto, believed, epochs=8, labels=LABELS, certainty=4.0, batch=40, seed=0, progress=0.5):
    """Show batches of it, epoch after epoch; the last epoch's weights."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.full((len(labels),), torch.nan)
    for _ in range(epochs):
        for indices in torch.randperm(len(labels), generator=generator).split(batch):
            batch_seen = look(believed, indices, certainty, labels, generator)
            weights[indices] = auto.weigh(*batch_seen, progress=progress, indices=indices)
    return weights


def with_wrong(share, seed=1):
    """Beliefs that contradict a share of the labels, and which."""
    wrong = torch.rand(SAMPLES, generator=torch.Generator().manual_seed(seed)) < share
    return torch.where(wrong, (LABELS + 1) % CLASSES, LABELS), wrong


@pytest.mark.parametrize("certainty", [1.5, 4.0, 8.0])
@pytest.mark.parametrize("share", [0.08, 0.2, 0.4])
def test_labels_that_are_contradicted_lose_their_weight_whatever_the_scale(share, certainty):
    believed, wrong = with_wrong(share)
    weights = train(aw.load("auto"), believed, certainty=certainty)
    assert weights[wrong].mean() < 0.1
    assert weights[~wrong].mean() > 0.9


def test_nobody_is_judged_by_one_visit():
    believed, _ = with_wrong(0.4)
    assert torch.equal(train(aw.load("auto"), believed, epochs=1), torch.ones(SAMPLES))


def test_a_set_that_is_learned_is_left_alone_and_so_are_a_few_odd_samples():
    assert_close(train(aw.load("auto"), LABELS), torch.ones(SAMPLES), atol=1e-3, rtol=0)
    odd = LABELS.clone()
    odd[100:104] = (odd[100:104] + 1) % CLASSES
    assert_close(train(aw.load("auto"), odd), torch.ones(SAMPLES), atol=1e-3, rtol=0)


def test_what_is_contradicted_is_left_out_on_trial_and_everywhere_only_if_it_lasts_there():
    believed, _ = with_wrong(0.3)
    auto = aw.load("auto")
    train(auto, believed, epochs=4)
    census = auto.memory.census
    sizes = census.sizes(torch.tensor(0))
    on_trial = sizes.on_trial(torch.arange(SAMPLES))
    assert on_trial.sum() == pytest.approx(SAMPLES / 4, abs=5)
    nobody = torch.zeros_like(on_trial)
    assert census.evidence(sizes).against(on_trial, nobody).min() > 0.9
    census.taken_back[1] = census.taken_back[0]  # as if all were confirmed at the next visit
    strength = census.evidence(sizes).against(on_trial, nobody)
    assert strength[on_trial].min() > 0.9
    assert strength[~on_trial].max() == 0


def test_of_a_small_set_evidence_has_to_be_firmer_unless_nothing_is_taken_back():
    census = Census.empty(2)
    census.num_visits[...] = 10**6
    firm = Margins(*torch.tensor([0.4, 0.6, 1.0, 0.59, 0.5]))
    census.margins = lambda: firm  # 0.59 is six tenths of the way from 0.5 to 0.65, and 0.54 less than three

    def strength(samples, taken_back=0.1):
        census.counts[0, 0] = samples
        census.taken_back[:] = torch.tensor([0.2, 0.2 * taken_back])
        return census.evidence(census.sizes(torch.tensor(0))).others.item()

    assert strength(5000) < 0.02
    assert strength(400) == strength(5000) < strength(7500) < strength(10_000) == strength(50_000)
    assert strength(50_000) == strength(400, 0.0) == pytest.approx(0.6**5 / (0.6**5 + 0.4**5))
    assert strength(400, 0.05) == pytest.approx(strength(400), rel=1e-4)
    assert strength(400) < strength(400, 0.02) < strength(400, 0.0)


def test_a_hard_problem_in_one_group_is_left_alone():
    """Beliefs that change from visit to visit: half of the samples are contradicted, none of them firmly."""
    auto, generator = aw.load("auto"), torch.Generator().manual_seed(0)
    for _ in range(8):
        for indices in torch.randperm(SAMPLES, generator=generator).split(40):
            logits = torch.randn(40, CLASSES, generator=generator)
            losses = cross_entropy(logits, LABELS[indices], reduction="none")
            weights = auto.weigh(losses, logits, LABELS[indices], progress=0.5, indices=indices)
            assert_close(weights, torch.ones(40), atol=1e-3, rtol=0)
    assert auto.memory.census.margins().contradicted.mean() > 0.5


def test_weights_are_finite_not_negative_and_one_in_the_mean_of_each_class():
    believed, _ = with_wrong(0.4)
    weights = train(aw.load("auto"), believed, epochs=12)
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    for label in range(CLASSES):
        assert weights[label == LABELS].mean() == pytest.approx(1, abs=0.15)


def test_weights_go_with_their_samples_in_whatever_order_a_batch_comes():
    believed, _ = with_wrong(0.3)
    one, two = aw.load("auto"), aw.load("auto")
    train(one, believed)
    train(two, believed)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(5))
    logits = 3 * torch.randn(40, CLASSES, generator=torch.Generator().manual_seed(6))
    losses = cross_entropy(logits, LABELS[:40], reduction="none")
    plain = one.weigh(losses, logits, LABELS[:40], progress=0.5, indices=torch.arange(40))
    shuffled = two.weigh(losses[order], logits[order], LABELS[:40][order], progress=0.5, indices=order)
    assert_close(plain[order], shuffled)


def test_a_sample_whose_loss_is_no_number_counts_nothing_and_is_not_remembered():
    auto = aw.load("auto")
    train(auto, LABELS)
    before = {name: tensor.clone() for name, tensor in auto.tensors().items()}
    logits = torch.full((1, CLASSES), torch.nan)
    weights = auto.weigh(torch.tensor([torch.nan]), logits, LABELS[:1], progress=0.5, indices=torch.tensor([0]))
    assert weights.tolist() == [0]
    for name, tensor in auto.tensors().items():
        assert torch.equal(tensor, before[name]), name


def test_classes_that_were_made_rare_are_raised_once_all_samples_came_and_natural_ones_are_not():
    made = torch.cat([torch.zeros(300), torch.ones(60), torch.full((30,), 2), torch.full((10,), 3)]).long()
    auto = aw.load("auto")
    assert torch.equal(train(auto, made, epochs=1, labels=made), torch.ones(400))
    weights = train(auto, made, epochs=4, labels=made)
    by_class = torch.stack([weights[made == label].mean() for label in range(CLASSES)])
    assert (by_class.diff() > 0).all()
    assert by_class[3] / by_class[0] == pytest.approx(30**0.5, rel=1e-3)
    assert weights.mean() == pytest.approx(1, abs=1e-3)
    late = train(auto, made, epochs=1, labels=made, progress=0.8)
    assert late[made == 3].mean() / late[made == 0].mean() == pytest.approx(30, rel=1e-3)
    natural = torch.cat([torch.zeros(200), torch.ones(100), torch.full((60,), 2), torch.full((40,), 3)]).long()
    assert_close(train(aw.load("auto"), natural, labels=natural), torch.ones(400), atol=1e-3, rtol=0)


def test_noise_needs_no_evidence_and_rare_takes_labels_for_right():
    believed, wrong = with_wrong(0.1)
    weights = train(aw.load("noise"), believed, epochs=3)
    assert weights[wrong].mean() < 0.2
    assert weights[~wrong].mean() > 0.9
    assert_close(train(aw.load("rare"), believed), torch.ones(SAMPLES), atol=1e-3, rtol=0)
    natural = torch.cat([torch.zeros(200), torch.ones(100), torch.full((60,), 2), torch.full((40,), 3)]).long()
    weights = train(aw.load("rare"), natural, labels=natural)
    by_class = torch.stack([weights[natural == label].mean() for label in range(CLASSES)])
    assert by_class[3] / by_class[0] == pytest.approx(5**0.5, rel=1e-3)
    assert_close(train(aw.load("noise"), natural, labels=natural), torch.ones(400), atol=1e-3, rtol=0)


def test_noise_asks_for_less_knowledge_in_the_middle_of_a_training_than_early():
    believed, wrong = with_wrong(0.62)  # of four classes: agreement is 0.17 beyond chance
    early = train(aw.load("noise"), believed, progress=0.0)
    assert_close(early, torch.ones(SAMPLES), atol=1e-3, rtol=0)
    late = train(aw.load("noise"), believed, progress=0.5)
    assert late[wrong].mean() < 0.5 * late[~wrong].mean()


@pytest.mark.parametrize("reserved", [False, True])
def test_a_sample_that_comes_twice_in_a_batch_counts_once(reserved):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(torch.ones(SAMPLES), 60, replacement=True, generator=generator)
    assert len(drawn.unique()) < 60
    auto, plain = aw.load("auto"), aw.load("auto")
    for one in (auto, plain) if reserved else ():
        one.reserve(SAMPLES, CLASSES, "cpu")
    for _ in range(20):
        drawn = torch.multinomial(torch.ones(SAMPLES), 60, replacement=True, generator=generator)
        losses, logits, labels = look(LABELS, drawn)
        weights = auto.weigh(losses, logits, labels, progress=0.5, indices=drawn)
        samples = drawn.unique()
        first = torch.stack([(drawn == sample).nonzero()[0, 0] for sample in samples])
        once = plain.weigh(losses[first], logits[first], labels[first], progress=0.5, indices=samples)
        assert_close(weights, once[torch.searchsorted(samples, drawn)])
    assert auto.memory.census.counts[:, 0].sum() == (auto.memory.columns["label"] >= 0).sum()
    for name, tensor in auto.tensors().items():
        assert_close(tensor, plain.tensors()[name], msg=name)


def test_a_label_is_held_against_those_of_the_same_look():
    """A third of what looks like class 0 is labelled 1, so that the network is torn there, and sure of the rest."""
    believed = LABELS.clone()
    wrong = (LABELS == 1) & (torch.arange(SAMPLES) % 8 == 1)
    believed[wrong] = 0
    auto, generator = aw.load("auto"), torch.Generator().manual_seed(0)
    for _ in range(10):
        for indices in torch.randperm(SAMPLES, generator=generator).split(40):
            logits = 8.0 * one_hot(believed[indices], CLASSES)
            logits[believed[indices] == 0] = torch.tensor([1.0, 0.4, -6.0, -6.0])
            logits += 0.1 * torch.randn(40, CLASSES, generator=generator)
            losses = cross_entropy(logits, LABELS[indices], reduction="none")
            weights = auto.weigh(losses, logits, LABELS[indices], progress=0.5, indices=indices)
            if wrong[indices].any():
                last = weights[wrong[indices]]
    assert last.max() < 0.2


def test_outputs_to_spare_are_no_classes():
    """A network may have more outputs than there are classes; what they say is looked past."""
    data = torch.randn(60, 6), torch.arange(60) % 3
    training = aw.TrainingConfig(epochs=2, batch_size=20, num_stages=2)
    fitted = aw.fit(lambda: torch.nn.Linear(6, 5), data, training=training)
    assert fitted.weigher.judgement()[1].max() < 3


def test_strategies_that_come_with_the_package_are_named_as_files_are(tmp_path):
    short = ["--training.epochs", "2", "--training.num-stages", "4", "--no-report", "--out"]
    run(["compare", "digits-noise", "--methods", "uniform", "--strategy", "noise", *short, str(tmp_path / "c")])
    run(["train", "digits-noise", "--strategy", "rare", *short, str(tmp_path / "t")])
    trained = {name: json.loads((tmp_path / name / "result.json").read_text())["methods"] for name in "ct"}
    assert {name: list(methods) for name, methods in trained.items()} == {
        "c": ["uniform", "early_stop", "noise"],
        "t": ["rare"],
    }


def test_numbers_are_not_weighed_by_class():
    with pytest.raises(aw.UserError, match="auto weighs by classes, and these labels are numbers"):
        aw.load("auto").weigh(torch.ones(4), torch.randn(4), torch.randn(4), progress=0.0, indices=torch.arange(4))


def test_a_memory_follows_the_losses_to_their_device():
    first, second = aw.load("auto"), aw.load("auto")
    batch = torch.rand(6), torch.randn(6, 3), torch.arange(6) % 3
    first.weigh(*batch, progress=0.0, indices=torch.arange(6))
    second.load_state_dict(first.state_dict())
    second._reserved, second._to_check = True, False  # nothing can be read off the meta device
    elsewhere = [part.to("meta") for part in (*batch, torch.arange(6))]
    assert second.weigh(*elsewhere[:3], progress=0.1, indices=elsewhere[3]).device.type == "meta"


@pytest.mark.parametrize(("sizes", "evident"), [((205, 65, 65, 65), False), ((135, 90, 90, 85), True)])
def test_that_rare_labels_are_taken_for_a_common_class_is_no_evidence(sizes, evident):
    """Half of the samples of the last class are firmly taken for the first, which is thrice as common, or is not."""
    labels = torch.repeat_interleave(torch.arange(CLASSES), torch.tensor(sizes))
    taken_for_first = (labels == 3) & (torch.arange(SAMPLES) % 2 == 0)
    auto = aw.load("auto")
    train(auto, torch.where(taken_for_first, 0, labels), labels=labels)
    assert bool(auto.memory.census.opened) is evident
