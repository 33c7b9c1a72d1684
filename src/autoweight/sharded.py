"""A memory over processes: each keeps its share of the samples, in half precision where that is wanted.

All processes weigh the global batch, as `weigh_global` has it. What is remembered of its samples is put together from
those who keep them, moves on alike everywhere, and goes back to its keepers. Counts over the set are on every process.
"""

from copy import copy

import torch
from torch import Tensor
from torch import distributed as dist

from autoweight.errors import UserError, require
from autoweight.strategy.columns import Part
from autoweight.strategy.indices import check_place, check_range, places_of, weigh_once
from autoweight.strategy.memory import Memory
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.testimony import Testimony
from autoweight.strategy.weigher import Weigher, check_state, check_tensors, load_tensors

_SHORT = 2**15  # from which on classes do not fit into 16 bits, and visits are no longer told apart


class Sharded(Weigher):
    """A weigher that remembers samples, of which this process keeps every n-th, if n train together.

    It is given to `weigh_global`, in all processes alike. Its `state_dict` is the process's own share, for a checkpoint
    of its own.
    """

    def __init__(
        self,
        weigher: Remembering,
        num_samples: int,
        num_classes: int,
        device: torch.device | str = "cpu",
        *,
        half: bool = False,
    ) -> None:
        require(
            isinstance(weigher, Remembering) and weigher.memory is None,
            f"{type(weigher).__name__} has no memory to share out, or has begun one: load a fresh one, such as "
            "aw.load('auto').",
        )
        check_place(num_samples, num_classes, device)
        together = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)
        self.tasks = weigher.tasks
        self._inner, self._num_samples = copy(weigher), num_samples
        self._inner._reserved = self._inner.driven = True  # indices are checked here
        self._precision = torch.float16 if half else torch.float32
        whole = torch.int16 if half and num_classes <= _SHORT else torch.int32
        empty = Memory.empty(1, num_classes, device)
        columns = empty.columns.tensors() | Testimony.empty(1, device).tensors()
        kept = -(-num_samples // self.size)  # the same everywhere, so that all can be gathered
        self._columns = {
            name: one.to(self._precision if one.is_floating_point() else whole).repeat(kept)
            for name, one in columns.items()
            if name != "waiting"  # where visits of a whole set would wait: here none does
        }
        if half:
            self._columns["visits"] = self._columns["visits"].to(torch.int16)
        self._counts = {name: one for name, one in empty.tensors().items() if name not in columns}
        self._keeper = torch.tensor([self.rank, self.size])

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Weights of the global batch; all processes come with the same."""
        check_tensors(losses=losses, logits=logits, labels=labels, indices=indices)
        device = self._counts["loss_sums"].device
        require(
            losses.device == device,
            f"the memory lies on {device}, but the batch on {losses.device}: Sharded(..., device=losses.device).",
        )
        places = places_of(indices, losses)
        if places.numel():
            lowest, highest = map(int, places.aminmax())
            check_range(lowest, highest, self._num_samples)
        assert indices is not None  # or there were no places
        if indices.shape != losses.shape:
            self.check_tokens(losses.shape[1])
        if (once := weigh_once(self, losses, logits, labels, progress, indices)) is not None:
            return once
        places = places.to(losses.device)
        self._open(places)
        here = torch.arange(places.numel(), device=losses.device).view(losses.shape)
        weights = self._inner.weigh(losses, logits, labels, progress=progress, indices=here)
        self._put_back(places)
        return weights

    def check_tokens(self, tokens: int) -> None:
        """Raise `UserError` where samples have another number of tokens than those that are remembered."""
        self._inner.check_tokens(tokens)

    def tensors(self) -> dict[str, Tensor]:
        """The process's share, the counts over all, and whose share it is."""
        return {**self._columns, **self._counts, "keeper": self._keeper}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take back what `state_dict` gave to this process, of as many."""
        check_state(type(self).__name__, self.tensors(), state)
        if not torch.equal(state["keeper"].cpu(), self._keeper):
            rank, size = state["keeper"].tolist()
            raise UserError(
                f"this is what process {rank} of {size} kept, not process {self.rank} of {self.size}: each loads its "
                "own, and as many train as before."
            )
        load_tensors(type(self).__name__, self.tensors(), state)
        self._inner._tokens = 0

    def whole(self) -> Remembering:
        """A weigher of its own with the memory of all samples, put together on every process, as audits need it."""
        rows = {name: self._gathered(column)[: self._num_samples] for name, column in self._columns.items()}
        known, sums = rows | self._counts, self._counts["loss_sums"]
        weigher = copy(self._inner)
        weigher.reserve(self._num_samples, len(sums), sums.device)
        for name, place in weigher.tensors().items():
            if name in known:
                place.copy_(known[name])
        weigher.release()
        return weigher

    def _open(self, places: Tensor) -> None:
        """Give the weigher a memory of the samples at hand alone."""
        rows = self._fetched(places)
        columns = Memory.empty(places.numel(), len(self._counts["loss_sums"]), places.device).columns.tensors()
        part = Part(places, self._num_samples, self._precision)
        own = {name: rows[name].to(one.dtype) for name, one in columns.items() if name in rows}
        self._inner.memory = Memory({**columns, **own, **self._counts}, part)
        self._inner.testimony = Testimony(rows["testimony"], rows["visits"])
        self._inner._to_check = True  # whether labels are those that are remembered

    def _fetched(self, places: Tensor) -> dict[str, Tensor]:
        """What is remembered of samples, in single precision: each keeper adds its rows to nothing."""
        own = places % self.size == self.rank
        mine = torch.stack([column[places // self.size].float() for column in self._columns.values()])
        rows = mine.where(own, 0)
        if self.size > 1:
            dist.all_reduce(rows)
        return dict(zip(self._columns, rows, strict=True))

    def _put_back(self, places: Tensor) -> None:
        """Keep what has become of the samples that are this process's."""
        assert self._inner.memory is not None
        own = places % self.size == self.rank
        rows = {**self._inner.memory.columns.tensors(), **self._inner.testimony.tensors()}
        for name, column in self._columns.items():
            new = rows[name][own]
            column[places[own] // self.size] = (new.clamp(max=_SHORT - 1) if name == "visits" else new).to(column.dtype)

    def _gathered(self, column: Tensor) -> Tensor:
        """A column of all samples, in their order."""
        if self.size == 1:
            return column
        parts = [torch.empty_like(column, dtype=torch.float32) for _ in range(self.size)]
        dist.all_gather(parts, column.float())
        return torch.stack(parts, dim=1).flatten()
