"""Tables of tiny trainings: every optimiser, schedule, task, kind of input and memory that a training can have, and
every method that is more than a rule.

They feed the tests that fast ways to train agree with the plain loop, on a CPU and on a GPU, and that a killed training
goes on to the same bits.
"""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from autoweight.config import Knob, TrainingConfig
from autoweight.data import Samples
from autoweight.methods import TrainingFacts, make_method
from autoweight.methods.method import Method
from autoweight.strategy import Rule
from autoweight.workers import Problem

TRAINING = TrainingConfig(epochs=4, batch_size=16, num_stages=4, drop_stages=(3,), weight_decay=1e-3)
ADAM = replace(TRAINING, optimizer="adam", learning_rate=0.01)
REMEMBERING = Rule(("loss", "margin", "history"))


def mlp(outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, outputs))


def one_target() -> nn.Module:
    return mlp(1)


class Text(nn.Module):
    """Takes ids and a mask by name, and answers with an object, as text models do."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(7, 8), nn.Linear(8, 3)

    def forward(self, ids: Tensor, mask: Tensor) -> SimpleNamespace:
        shown = mask.unsqueeze(-1).float()
        mean = (self.embed(ids) * shown).sum(dim=1) / shown.sum(dim=1).clamp(min=1)
        return SimpleNamespace(logits=self.out(mean))


class Tagger(nn.Module):
    """Says a class for every token; its answer is a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(7, 8), nn.Linear(8, 3)

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        return {"logits": self.out(self.embed(ids))}


class TwoEyes(nn.Module):
    """Takes two tensors, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 3), nn.Linear(1, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.left(left) + self.right(right)


def points(count: int, seed: int) -> Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def classes(count: int, seed: int) -> Samples:
    inputs = points(count, seed)
    return Samples.of(inputs, (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0.3).long(), 3)


def several_labels(count: int, seed: int) -> Samples:
    inputs = points(count, seed)
    labels = torch.stack([inputs[:, 0] > 0, inputs[:, 1] > 0, inputs.sum(dim=1) > 1], dim=1)
    return Samples.of(inputs, labels, task="multilabel")


def targets(count: int, seed: int) -> Samples:
    inputs = points(count, seed)
    return Samples.of(inputs, inputs[:, 0] + inputs[:, 1].square(), task="regression")


def two_targets(count: int, seed: int) -> Samples:
    inputs = points(count, seed)
    return Samples.of(inputs, torch.stack([inputs[:, 0], 3 * inputs[:, 1], inputs.sum(dim=1)], dim=1), task="huber")


def words(count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(7, (count, 5), generator=generator)
    lengths = torch.randint(1, 6, (count, 1), generator=generator)
    return ids, torch.arange(5) < lengths


def texts(count: int, seed: int) -> Samples:
    ids, mask = words(count, seed)
    return Samples.of({"ids": ids, "mask": mask}, ids[:, 0] % 3, 3)


def tokens(count: int, seed: int) -> Samples:
    ids, mask = words(count, seed)
    return Samples.of({"ids": ids}, torch.where(mask, ids % 3, -100), 3, task="tokens")


def pairs(count: int, seed: int) -> Samples:
    samples = classes(count, seed)
    return replace(samples, inputs=(samples.inputs, samples.inputs[:, :1].abs()))


def problem(
    make_model: Callable[[], nn.Module] = mlp,
    data: Callable[[int, int], Samples] = classes,
    training: TrainingConfig = TRAINING,
    rule: Rule | None = None,
    **changes: object,
) -> Problem:
    """What an episode trains; `changes` are of the training."""
    training = replace(training, **changes)
    return Problem(make_model, data(48, 0), data(40, 9), training, rule or Rule(("loss",)))


SETTINGS: dict[str, Problem] = {
    "momentum": problem(),
    "nesterov": problem(nesterov=True),
    "no momentum": problem(momentum=0.0),
    "adam": problem(training=ADAM),
    "adamw": problem(training=ADAM, optimizer="adamw", weight_decay=0.1),
    "cosine": problem(schedule="cosine"),
    "linear, warm-up": problem(schedule="linear", warmup_epochs=1.5),
    "constant, warm-up": problem(schedule="constant", warmup_epochs=1.0),
    "own schedule": problem(schedule=lambda progress: (1 - progress) ** 2, warmup_epochs=0.5),
    "several labels": problem(mlp, several_labels, task="multilabel", rule=Rule(("loss", "entropy", "density"))),
    "regression": problem(one_target, targets, task="regression", learning_rate=0.02),
    "huber": problem(mlp, two_targets, task="huber", learning_rate=0.02, rule=Rule(("loss", "density"))),
    "tokens": problem(Tagger, tokens, task="tokens", rule=Rule(("loss", "entropy", "label"))),
    "dict inputs": problem(Text, texts, training=ADAM),
    "tuple inputs": problem(TwoEyes, pairs),
    "memory": problem(rule=REMEMBERING),
    "memory, scaled by the set": problem(rule=replace(REMEMBERING, history_scale="set", margin_scale="batch")),
    "memory, scaled by the batch": problem(rule=Rule(("history",), history_scale="batch", normalised=True)),
    "memory of tokens": problem(Tagger, tokens, task="tokens", rule=REMEMBERING),
    "memory of targets": problem(one_target, targets, task="regression", learning_rate=0.02, rule=Rule(("history",))),
    "memory, dict inputs, adamw": problem(Text, texts, training=ADAM, optimizer="adamw", rule=REMEMBERING),
}


class Rival(NamedTuple):
    """A method with its knobs, and the setting that it trains in."""

    method: str
    setting: str
    knobs: dict[str, Knob]

    def make(self) -> Method:
        """The method, set up for the setting's training set."""
        train = SETTINGS[self.setting].train
        return make_method(self.method, TrainingFacts(train.class_counts, train.clean), self.knobs)


RIVALS: dict[str, Rival] = {
    "l2rw": Rival("l2rw", "momentum", {"total": 0.5}),
    "l2rw, dict inputs": Rival("l2rw", "dict inputs", {}),
    "l2rw, regression": Rival("l2rw", "regression", {"trusted": 20, "trusted_batch": 10, "total": 0.2}),
    "mwnet": Rival("mwnet", "momentum", {}),
    "mwnet, exact": Rival("mwnet", "cosine", {"exact": True, "normalise": True}),
    "mwnet, tuple inputs": Rival("mwnet", "tuple inputs", {}),
    "mentornet": Rival("mentornet", "nesterov", {}),
    "coteaching": Rival("coteaching", "momentum", {"rise": 0.5}),
    "coteaching, drop, dict inputs": Rival("coteaching", "dict inputs", {"drop": 0.3}),
    "gce": Rival("gce", "adam", {}),
    "elr": Rival("elr", "momentum", {}),
}


def params_of(of: Problem) -> Tensor:
    """Parameters of four workers, the second of which does not weigh."""
    params = torch.randn(4, of.num_params, generator=torch.Generator().manual_seed(1))
    params[1] = 0
    return params
