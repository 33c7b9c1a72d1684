"""What weighers with a memory share: it grows with the indices that come, and travels in checkpoints."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from autoweight.errors import UserError, require
from autoweight.strategy.indices import check_place, check_range, check_whole, places_of, weigh_once
from autoweight.strategy.memory import Memory
from autoweight.strategy.testimony import Testimony
from autoweight.strategy.view import View
from autoweight.strategy.weigher import Weigher, check_state, check_tensors, load_tensors

_BYTES = 72  # of a place, in memory and testimony
_MUCH = 10**9  # bytes, of which a word is said
_MOST = 250_000_000  # places, 18 GB, that indices alone can ask for: such numbers are mostly ids, and fill a machine


class Remembering(Weigher):
    """A weigher that may keep a memory of each sample, by its index."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.testimony = Testimony.empty(0)
        self.driven = False
        """Whether the package draws the samples: none comes twice in a batch, and captured steps are looked after."""
        self._reserved = False
        self._to_check = False
        self._tokens = 0
        self._sizes: set[int] = set()  # that the memory has had: states of other sizes are not its own

    @property
    def keeps_margins(self) -> bool:
        """Whether its memory holds what an audit reads."""
        return True

    def reserve(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:
        """A memory of that size, which no longer grows: indices beyond it are mistakes.

        States do not tell of it: whoever goes on from one reserves again, before loading it.
        """
        check_place(num_samples, num_classes, device)
        self._begin(num_samples, num_classes, device)
        self._reserved, self._tokens = True, 0

    def after_replay(self, num_labels: int) -> None:
        """What a captured step of so many labels left to the host."""

    def settled(self) -> "Remembering":
        """What to read the memory of, for those who must not change it: a copy where visits wait to be remembered."""
        return self

    def release(self) -> None:
        """Grow again with the indices that come, and check them: whoever made sure of them is done."""
        self._reserved = self.driven = False

    def _begin(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:
        with _room_for(num_samples):
            memory, testimony = Memory.empty(num_samples, num_classes, device), Testimony.empty(num_samples, device)
        self.memory, self.testimony, self._sizes = memory, testimony, {num_samples}

    def tensors(self) -> dict[str, Tensor]:
        """The memory's tensors, once there is one."""
        return {} if self.memory is None else {**self.memory.tensors(), **self.testimony.tensors()}

    def judgement(self) -> tuple[Tensor, Tensor]:
        """For an audit: margins over the whole training, NaN of samples never seen, and the classes believed in.

        Where there is evidence of wrong labels, these are left out and not memorised: so the end counts as much as all
        that was before, when the network knew less.
        """
        own = self.settled()
        assert own.memory is not None
        columns = own.memory.columns
        last = columns["margin"]
        margins = own.testimony.margins(last)
        margins = torch.where(own.memory.census.opened, (margins + last) / 2, margins)
        beaten = (margins < 0) & (columns["rival_class"] >= 0)
        return margins, torch.where(beaten, columns["rival_class"], columns["label"])

    def _once(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None
    ) -> Tensor | None:
        """Weights of a batch in which samples come several times, as some samplers draw them: each counts once.

        None where none does, or none can, as in trainings of the package.
        """
        on_gpu = isinstance(indices, Tensor) and indices.device.type != "cpu"
        if self.driven or torch.compiler.is_compiling() or (self._reserved and on_gpu):  # which nobody waits for
            return None
        check_tensors(losses=losses, logits=logits, labels=labels, indices=indices)
        if indices is None:
            return None
        check_whole(indices)
        return weigh_once(self, losses, logits, labels, progress, indices)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave; the first batch then has to have the labels that it remembers.

        What was not reserved goes back to a size that it had, or gets the state's, if it remembers nothing; with the
        state before the first batch, it forgets. What is refused changes nothing.
        """
        owner = type(self).__name__
        if self._reserved:
            load_tensors(owner, self.tensors(), state)
            self.memory = Memory(self.memory.tensors()) if self.memory is not None else None  # which counts anew
        elif state == {}:
            self.memory, self.testimony, self._sizes = None, Testimony.empty(0), set()
        else:
            check_state(owner, Memory.empty(0, 1).tensors() | Testimony.empty(0).tensors(), state)
            num_samples, num_classes = (state[name].shape[:1].numel() for name in ("label", "loss_sums"))
            with _room_for(num_samples):
                memory = Memory.empty(num_samples, num_classes, state["label"].device)
                testimony = Testimony.empty(num_samples, state["label"].device)
            load_tensors(owner, memory.tensors() | testimony.tensors(), state)
            self._check_own(memory)
            memory.num_samples = memory.reach()
            self.memory, self.testimony, self._sizes = memory, testimony, self._sizes | {len(memory)}
        self._tokens, self._to_check = 0, bool(state)

    def _check_own(self, given: Memory) -> None:
        """Raise `UserError` where there is a memory, and one that is to replace it cannot have been its own."""
        own = self.memory
        if own is not None and (len(given) not in self._sizes or given.num_classes != own.num_classes):
            raise UserError(
                f"{type(self).__name__} was given a memory of {len(given)} samples and {given.num_classes} classes, "
                f"but has one of {len(own)} and {own.num_classes}: load it into a fresh strategy, or have this one "
                "forget before, load_state_dict({})."
            )

    def _recall(self, view: View, losses: Tensor, indices: Tensor | None) -> tuple[Memory, Tensor]:
        """The memory, large enough for the batch, and the samples' places in it."""
        places, compiling = places_of(indices, losses), torch.compiler.is_compiling()
        if indices is not None and indices.shape != losses.shape and not compiling:
            self.check_tokens(losses.shape[1])
        on_host = not compiling and (not self._reserved or places.device.type == "cpu")
        if on_host:  # a GPU has to be waited for, unless there is room for all
            lowest, highest = map(int, places.aminmax())
            self._make_room(lowest, highest, view.logits.shape[-1], losses.device)
            self._check_classes(view)
        if self.memory is None:
            torch._dynamo.graph_break()  # or torch would not compile what lacks weigher.reserve, and say nothing
            raise UserError("call weigher.reserve(num_samples, num_classes, device) before compiling a step.")
        if not compiling and self.memory.device != losses.device:  # as loaded on a CPU
            self.memory = self.memory.on(losses.device)
            self.testimony = Testimony(*(one.to(losses.device) for one in self.testimony))
        places = places.to(losses.device)
        if not compiling and (self._to_check or not self._reserved):
            if not view.labels.is_floating_point():
                self.memory.check_labels(view.labels, places, view.valid)
            self._to_check = False
        return self.memory, places

    def _testify(self, memory: Memory, places: Tensor, valid: Tensor) -> None:
        """Keep for audits what was remembered of samples, before they are visited once more."""
        self.testimony.note(memory.columns["margin"], places, valid)

    def check_tokens(self, tokens: int) -> None:
        """Raise `UserError` where samples have another number of tokens than those that are remembered."""
        if self.memory is None or not self._tokens:
            self._tokens = tokens
        if tokens != self._tokens:
            raise UserError(
                f"samples have {tokens} tokens, but had {self._tokens} before, so that they would be remembered in "
                "each other's places: pad all batches to one length."
            )

    def _make_room(self, lowest: int, highest: int, num_classes: int, device: torch.device) -> None:
        check_range(lowest, highest, len(self.memory or ()) if self._reserved else None)
        self._check_reach(highest)
        if self.memory is None:
            self._begin(highest + 1, num_classes, device)
        assert self.memory is not None
        if num_classes > self.memory.num_classes and not self._reserved:
            raise UserError(
                f"the network answers with {num_classes} classes, but the memory is of {self.memory.num_classes}: "
                "begin with a fresh strategy."
            )
        if highest < self.memory.num_samples:
            return
        with _room_for(highest + 1):
            memory = self.memory.grown(highest + 1)
            testimony = self.testimony.grown(len(memory))
        self.memory, self.testimony, self._sizes = memory, testimony, self._sizes | {len(memory)}

    def _check_classes(self, view: View) -> None:
        """Raise `UserError` for a class beyond the memory's, as a network with outputs to spare lets pass."""
        num_classes, labels = self.memory.num_classes if self.memory is not None else 0, view.labels
        if view.logits.shape[-1] <= num_classes or labels.is_floating_point() or labels.device.type != "cpu":
            return
        require(
            int(labels.max()) < num_classes,
            f"label {int(labels.max())} is out of range: the memory is of {num_classes} classes, those of the training "
            "set.",
        )

    def _check_reach(self, highest: int) -> None:
        """Refuse what can hardly be a position, and say once where one takes much room, before it is taken.

        The first batch of a large set has about its highest index, as one of ids has: only the size tells them apart.
        """
        if highest < len(self.memory or ()):
            return
        if highest >= _MOST:
            raise UserError(
                f"index {highest} is out of range: indices are positions in the training set, from 0 on, as "
                "aw.Indexed(dataset) yields them; if it is as large, call weigher.reserve(num_samples, num_classes, "
                "device) first."
            )
        if len(self.memory or ()) * _BYTES <= _MUCH < highest * _BYTES:
            warnings.warn(
                f"indices reach {highest}, so the memory takes {highest * _BYTES / 1e9:.1f} GB: if the training set is "
                "smaller, they are no positions in it, as aw.Indexed(dataset) yields them.",
                stacklevel=6,
            )


@contextmanager
def _room_for(num_samples: int) -> Iterator[None]:
    """Say in a sentence where there is none; what is begun in inference mode has to last beyond it."""
    try:
        with torch.inference_mode(False):
            yield
    except RuntimeError as error:
        if "allocate" not in str(error):  # torch has no kind of its own for a CPU's
            raise
        raise UserError(
            f"there is no room for a memory of {num_samples} samples, {num_samples * _BYTES / 1e9:.1f} GB: indices are "
            "positions in the training set, from 0 on, as aw.Indexed(dataset) yields them."
        ) from error
