"""A memory of every sample, fed by its index: what the network made of it, visit after visit, on an absolute scale.

A sample's memory takes a few numbers, however many classes there are: the running mean of its margin, which does as
well as the margin of its averaged predictions (docs/memory.md), those of its loss and of its label's probability, the
class that last beat its label, and the class that it is taken for.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from autoweight.errors import UserError
from autoweight.strategy.census import Census, Evidence, Sizes
from autoweight.strategy.columns import NEVER_LOW, NONE, Columns, Part
from autoweight.strategy.control import LEAST_SAMPLES, Control
from autoweight.strategy.counting import counted, on_device
from autoweight.strategy.history import History
from autoweight.strategy.sparing import Sparing
from autoweight.strategy.visits import Look, Taken, Visit
from autoweight.strategy.waiting import Waiting, may_wait

RATE = 0.2  # of the memory: about the last five visits count

_FORGIVEN = 0.05  # a visit, of how low a sample's margin was
_MORE = 8  # part of its room that a memory grows by at least
_AT_ONCE = 2**20  # samples that are gone through at a time
_LARGE = 2000  # samples: of smaller sets too few are on trial to tell who may be spared, and classes are soon forgotten


class Memory:
    """Columns of one entry a sample, and counts over those that were visited."""

    def __init__(self, tensors: dict[str, Tensor], part: Part | None = None) -> None:
        self.part = part
        self.columns = Columns(tensors, part)
        self.num_samples = len(self) if part is None else part.num_samples
        """In the set, as far as is known: where a memory grows, there is room for more."""
        self.history = History(self.columns, tensors["loss_sums"])
        self.census = Census(tensors)
        self.control = Control(tensors)
        self.sparing = Sparing(tensors)
        self.waiting = Waiting(tensors)
        self._visit: Visit

    @classmethod
    def empty(cls, num_samples: int, num_classes: int, device: torch.device | str = "cpu") -> "Memory":
        """A memory of samples that were never seen."""
        columns = Columns.empty(num_samples, device).tensors()
        sums = torch.zeros(num_classes, 3, dtype=torch.long, device=device)
        parts = Census.empty(num_classes, device), Control.empty(device), Sparing.empty(num_classes, device)
        counts = {name: one for part in parts for name, one in part.tensors().items()}
        return cls({**columns, "loss_sums": sums, **counts, **Waiting.counts(device)})

    def __len__(self) -> int:
        return self.columns.room

    @property
    def num_classes(self) -> int:
        """How many classes there can be."""
        return self.history.sums.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by name."""
        return {
            **self.columns.tensors(),
            "loss_sums": self.history.sums,
            "num_waiting": self.waiting.number,
            "waiting_progress": self.waiting.progress,
            **self.census.tensors(),
            **self.control.tensors(),
            **self.sparing.tensors(),
        }

    def grown(self, num_samples: int) -> "Memory":
        """A memory of so many samples, if it was of fewer: this one where there is enough room."""
        num_samples = max(num_samples, self.num_samples)
        own = self
        if num_samples > len(self):
            larger = Memory.empty(max(num_samples, len(self) + len(self) // _MORE), self.num_classes, self.device)
            for name, column in self.columns.tensors().items():
                larger.columns[name][: len(self)] = column
            own = self._with(larger.columns.tensors())
        own.num_samples = num_samples
        return own

    def on(self, device: torch.device) -> "Memory":
        """The same elsewhere."""
        return self._with({name: one.to(device) for name, one in self.tensors().items()})

    def _with(self, tensors: dict[str, Tensor]) -> "Memory":
        """The same, in other tensors."""
        own = Memory(self.tensors() | tensors, self.part)
        own.num_samples, own.waiting.known = self.num_samples, self.waiting.count
        return own

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.history.sums.device

    def may_wait(self, batch: int) -> bool:
        """Whether visits in batches of that size may; a part of a set is put together for one batch alone."""
        return self.part is None and may_wait(self.num_samples, batch)

    def reach(self) -> int:
        """One more than the last place of a sample that has come."""
        came = (self.columns["label"] >= 0) | (self.waiting.rows[:, 0] >= 0)
        return int(came.nonzero().max()) + 1 if bool(came.any()) else 0

    def margins(self, look: Look, labels: Tensor, indices: Tensor, rate: Tensor, valid: Tensor) -> Tensor:
        """Move the samples' averaged margins by `rate` towards the present ones, and give them.

        A margin, from -1 to 1, is the probability of the label less that of the strongest other class. Averages begin
        at 0, so that a few visits have to agree before they say much. Once labels are taken for wrong, some have been
        memorised already: so samples go back then, once, to about the lowest margin that they had.
        """
        now = look.margins()
        known, old, lowest, rivals = self.columns.at(indices, "label", "margin", "lowest", "rival_class")
        opened = self.census.opened
        new = torch.lerp(torch.where(opened, old.minimum(lowest), old), now, rate)
        beaten_by = torch.where(now < 0, look.strongest_class, rivals)
        forgiven = (lowest + _FORGIVEN).minimum(old).masked_fill(opened, NEVER_LOW)
        means = torch.stack([old, self.columns.put("margin", indices, old, new, valid)])
        self.columns.put("lowest", indices, lowest, forgiven, valid)
        self.columns.put("rival_class", indices, rivals, beaten_by, valid)
        self.columns.put("label", indices, known, labels, valid)
        sizes = self.census.visit(labels, means, known < 0, valid)
        self._visit = Visit(now, look.own, means, torch.stack([rivals, beaten_by]), sizes)
        return new

    def look(self, logits: Tensor, labels: Tensor) -> Look:
        """What a network makes of samples."""
        return Look.at(logits, labels, self.num_classes)

    def relative(self, margins: Tensor, labels: Tensor, indices: Tensor, valid: Tensor) -> Taken:
        """What samples are taken for by the margins that were given last.

        A class whose labels are contradicted in the mean is not learned yet: its margins are raised by that.
        """
        now, _, means, rivals, sizes = self._visit
        leniency = self.census.leniency().gather(0, labels)
        new = self.columns.kept((margins + leniency).clamp(max=1))
        old = self.columns["relative"].gather(0, indices)
        both = torch.stack([old, new])
        classes = torch.where((both < 0) & (rivals >= 0), rivals, labels)
        was_on_trial = (old != NONE) & valid
        taken = self._taken(new, classes[1], labels, indices, valid, sizes)
        self.columns.put("relative", indices, old, torch.where(taken.on_trial, new, NONE), valid)
        self.census.move(counted(both, means), classes, was_on_trial, taken.on_trial)
        self.census.follow((old < 0) & was_on_trial & taken.on_trial, now + leniency, sizes)
        return taken

    def remembered(self, places: Tensor) -> tuple[Tensor, Taken]:
        """Samples' labels, and what they are taken for by what is remembered of them: nobody is visited."""
        label, margin, lowest, rival = self.columns.at(places, "label", "margin", "lowest", "rival_class")
        labels, census = label.long(), self.census
        margins = torch.where(census.opened, margin.minimum(lowest), margin)
        relative = (margins + census.leniency().gather(0, labels)).clamp(max=1)
        believed = torch.where((relative < 0) & (rival >= 0), rival.long(), labels)
        everyone = torch.ones_like(labels, dtype=torch.bool)
        return labels, self._taken(relative, believed, labels, places, everyone, census.sizes(everyone.sum()))

    def known(self) -> Iterator[Tensor]:
        """The places of all samples that came, some at a time, so that a huge set needs no room beside it."""
        for start in range(0, self.num_samples, _AT_ONCE):
            part = self.columns["label"][start : min(start + _AT_ONCE, self.num_samples)]
            yield start + (part >= 0).nonzero().squeeze(-1)

    def _taken(
        self, relative: Tensor, believed: Tensor, labels: Tensor, indices: Tensor, valid: Tensor, sizes: Sizes
    ) -> Taken:
        telling = valid & sizes.comparable(labels, believed)
        named = self._named(indices)
        on_trial, control = sizes.on_trial(named) & telling, sizes.control(named) & telling
        return Taken(relative, believed, on_trial, control, telling, sizes)

    def evidence(self, sizes: Sizes, progress: Tensor) -> Evidence:
        """How far contradicted labels may be taken for wrong; of larger sets the control group tells, too."""
        if not self._has_control:
            return self.census.evidence(sizes)
        return self.census.evidence(sizes, self.control.tell(sizes.visits, progress))

    def spared(
        self,
        right: Tensor,
        taken: Taken,
        labels: Tensor,
        indices: Tensor,
        valid: Tensor,
        progress: float | Tensor | None,
    ) -> Tensor:
        """Probabilities that labels are `right`, raised for hard samples where sparing them is safe.

        To be called at every visit, with what `relative` gave: it counts. Searches, which do not tell their `progress`,
        are too small to spare anybody.
        """
        if progress is None or not self._spares:
            return right
        _, believed, on_trial, control, telling, sizes = taken
        mean = self._remember_own(indices, valid)
        before = self.columns["taken_for"].gather(0, indices)
        self.columns.put("taken_for", indices, before, believed, valid)
        self.sparing.visit(before, believed, labels, valid)
        early, settled = self.sparing.clock(progress, self.census.opened)
        now, contradicted = self._visit.now < 0, believed != labels
        self.sparing.follow(now, on_trial, telling & (early > 0), sizes.samples)
        may_be = self.sparing.probability_right(mean, believed, labels)
        if self._has_control:
            left_out = self.control.left_out(sizes.visits, on_device(progress, self.device)) > 0
            compared = telling & ~on_trial & left_out
            self.control.follow(now, control, compared, sizes.samples)
            self.control.doubt(contradicted & control & compared, may_be, mean, compared, sizes)
        self.sparing.doubt(contradicted, may_be, mean, valid & ~settled, sizes.samples)
        return self.sparing.raised(right, may_be, on_trial, (early, settled), self.census.opened)

    def still_spared(self, right: Tensor, taken: Taken, labels: Tensor, places: Tensor, progress: Tensor) -> Tensor:
        """The same by what is remembered: nobody is visited."""
        if not self._spares:
            return right
        may_be = self.sparing.probability_right(self.columns["own"][places], taken.believed, labels)
        opened = self.census.opened
        return self.sparing.raised(right, may_be, taken.on_trial, self.sparing.clock(progress, opened), opened)

    @property
    def _has_control(self) -> bool:
        return self._spares and self.num_samples >= LEAST_SAMPLES

    @property
    def _spares(self) -> bool:
        return len(self.sparing.pairs) > 0 and self.num_samples >= _LARGE

    def _remember_own(self, indices: Tensor, valid: Tensor) -> Tensor:
        """Means of the labels' probabilities over about the last half of all visits, at least some ten of them."""
        old, own = self.columns["own"].gather(0, indices), self._visit.own
        rate = (2 / (2 + self._visit.sizes.visits)).clamp(max=RATE)
        new = torch.where(old < 0, own, torch.lerp(old, own, rate))
        self.columns.put("own", indices, old, new, valid)
        return new

    def class_means(self) -> Tensor:
        """What weights of each class are taken relative to: of small sets its own mean, of large ones halfway to it."""
        return self.census.class_means() if self.num_samples < _LARGE else self.census.halfway_class_means()

    def check_labels(self, labels: Tensor, indices: Tensor, valid: Tensor) -> None:
        """Raise `UserError` where a sample had another label: these are no positions, or those of another data set."""
        known = self.columns["label"].gather(0, indices)
        if self.waiting.count:
            known = self.waiting.labels(indices, known)
        expected = known.where((known >= 0) & valid, labels)
        if not torch.equal(expected, labels):
            first = (expected != labels).nonzero()[0, 0]
            sample, had = int(self._named(indices)[first]), int(known[first])
            raise UserError(
                f"sample {sample} has label {int(labels[first])}, but had {had} before: indices "
                "are positions in the training set, the same at every visit, as aw.Indexed(dataset) yields them; for "
                "another data set begin with a fresh strategy."
            )

    def _named(self, places: Tensor) -> Tensor:
        """The samples' indices in the whole set."""
        return places if self.part is None else self.part.indices[places]
