"""Strategy: a weigher with parameters for every stage of a training, which can be saved, loaded and moved."""

import warnings
from copy import copy
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autoweight.errors import UserError, first_line, require
from autoweight.strategy import files
from autoweight.strategy.features import label_values
from autoweight.strategy.regime import Regime
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.rule import Rule
from autoweight.strategy.stages import check_progress, stage_at, stage_of
from autoweight.strategy.view import view_of
from autoweight.strategy.weigher import check_tensors, tensor_of

_HEADER = {"features": list, "warmup_stages": int, "label_feature": str, "normalised": bool, "info": dict}
"""What a file's header has to hold; of what remembers there is more, which older files lack."""


class Strategy(Remembering):
    """Weighs by `1 + tanh(theta_T . f + b)`, with theta_T and b from row T of a table.

    `table` is `[stages, P]`, its columns those of `rule.param_names`. The first `warmup_stages` weigh everything by 1.
    A strategy with the label feature has to know the training set's class counts; one that remembers samples needs
    their indices. `info` tells how it was found.

    >>> strategy = Strategy(torch.tensor([[0.0, 0.0], [-4.0, -1.0]]), Rule(("loss",)), warmup_stages=1)
    >>> losses = torch.tensor([0.1, 0.1, 2.0])
    >>> strategy.weigh(losses, torch.zeros(3, 3), torch.tensor([0, 1, 2]), progress=0.7).tolist()
    [1.94...
    """

    capturable = True

    def __init__(
        self,
        table: Tensor,
        rule: Rule | None = None,
        warmup_stages: int = 0,
        class_counts: Tensor | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.rule = rule = rule or Rule()
        names = rule.param_names
        check_tensors(table=table)
        require(
            table.dim() == 2 and len(table) > 0 and table.shape[1] == len(names),
            f"a table for {', '.join(names)} has {len(names)} columns, but its shape is {tuple(table.shape)}.",
        )
        require(bool(table.float().isfinite().all()), "a strategy's parameters must be finite.")
        require(0 <= warmup_stages <= len(table), f"warmup_stages goes from 0 to {len(table)}, but is {warmup_stages}.")
        self.table = table.detach().float().clone()
        self.table[:warmup_stages] = 0  # weights of exactly 1
        self.warmup_stages = warmup_stages
        self.info = info or {}
        self._label_values = None if class_counts is None else label_values(_checked(class_counts), rule.label_feature)
        self.judges_batches = True
        """Whether batches tell how far a training is from its own; not where somebody knows the training as a whole."""
        self._last: tuple[float, int] | None = None
        self._said: set[str] = set()

    def __repr__(self) -> str:
        normalised = ", normalised" if self.rule.normalised else ""
        stages = f"{self.num_stages} stages, {self.warmup_stages} of warm-up"
        return f"Strategy({', '.join(self.rule.features)}; {stages}{normalised})"

    @property
    def num_stages(self) -> int:
        """How many stages the table divides a training into."""
        return len(self.table)

    @property
    def regime(self) -> Regime | None:
        """The training that it was found in, where that was recorded."""
        return Regime.read(self.info.get("found_in"))

    @torch.no_grad()
    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Equation 3 with the parameters of the stage that `progress` lies in."""
        check_progress(progress)
        check_tensors(losses=losses)
        if self.rule.remembers and (once := self._once(losses, logits, labels, progress, indices)) is not None:
            return once
        view = view_of(losses, logits, labels, self._values_on(losses.device))._replace(progress=progress)
        self._warn_where_far(progress, losses)
        strategy_params = self._params_at(progress, losses.device)
        recalled = self._recall(view, losses, indices) if self.rule.remembers else ()
        if recalled:
            self._testify(*recalled, view.valid)
        return self.rule.weigh(strategy_params, view, *recalled).view_as(losses).to(losses.dtype)

    def with_class_counts(self, class_counts: Tensor) -> "Strategy":
        """The same strategy, which remembers nothing yet, for a training set with these class counts, `[classes]`."""
        fresh = copy(self)  # of the same class
        Strategy.__init__(fresh, self.table, self.rule, self.warmup_stages, class_counts, dict(self.info))
        return fresh

    def reserve(self, num_samples: int, num_classes: int, device: torch.device | str) -> None:
        """Make room for a training set, where samples are remembered; trainings that do so know what they are."""
        self.judges_batches = False
        if self.rule.remembers:
            super().reserve(num_samples, num_classes, device)

    @property
    def keeps_margins(self) -> bool:
        """Where one of its features is made of them."""
        return bool({"margin", "belief"} & set(self.rule.features))

    def warn_where_far(self, use: Regime) -> None:
        """Say once where a training is far from the one that the strategy was found in."""
        differences = [] if self.regime is None else self.regime.differences(use)
        if differences:
            why = "; ".join(differences)
            self._say("far", f"this strategy was found in another training (with {why}) and may do harm here.")

    def save(self, path: str | Path) -> None:
        """Write the strategy to a safetensors file, replacing it in one move."""
        rule = asdict(self.rule) | {"features": list(self.rule.features)}
        header = {**rule, "num_stages": self.num_stages, "warmup_stages": self.warmup_stages, "info": self.info}
        files.write(Path(path).expanduser(), {"table": self.table.cpu().contiguous()}, header)

    @staticmethod
    def load(path: str | Path, class_counts: Tensor | None = None) -> "Strategy":
        """Read what `save` wrote; nothing in the file is executed."""
        tensors, header = files.read(Path(path).expanduser())
        invalid = f"{path} is not a valid strategy file"
        missing = ", ".join(key for key in _HEADER if key not in header)
        require(not missing, f"{invalid}: its header lacks {missing}; copy or search it again.")
        require("table" in tensors, f"{invalid}: it lacks the table of parameters; copy or search it again.")
        try:
            for key, kind in _HEADER.items():
                if not isinstance(header[key], kind):
                    raise TypeError(f"its {key} is {header[key]!r}")
            known = {one.name: header[one.name] for one in fields(Rule) if one.name in header}
            rule = Rule(**known | {"features": tuple(header["features"])})
            strategy = Strategy(tensors["table"], rule, header["warmup_stages"], info=header["info"])
        except (TypeError, RuntimeError, ValueError) as error:
            raise UserError(f"{invalid}: {first_line(error)}.") from error
        return strategy if class_counts is None else strategy.with_class_counts(class_counts)

    def _params_at(self, progress: float | Tensor, device: torch.device) -> Tensor:
        if self.table.device != device:
            self.table = self.table.to(device)  # moved once, so that later steps copy nothing
        if isinstance(progress, Tensor):
            return self.table.index_select(0, stage_of(progress, self.num_stages).view(1)).squeeze(0)
        return self.table[stage_at(progress, self.num_stages)]

    def _values_on(self, device: torch.device) -> Tensor | None:
        if "label" not in self.rule.features:
            return None
        if self._label_values is None:
            raise UserError(
                "this strategy uses the label feature: tell it the training set's class counts, "
                "class_counts=torch.bincount(train_labels), where it is loaded or made."
            )
        if self._label_values.device != device:
            self._label_values = self._label_values.to(device)
        return self._label_values

    def _warn_where_far(self, progress: float | Tensor, losses: Tensor) -> None:
        """Say once where a batch is too small to compare samples in, or a loop is far from what was searched.

        An epoch's last batch may be a short one: two in a row that are as large tell the batch size.
        """
        if isinstance(progress, Tensor) or torch.compiler.is_compiling():
            return
        if self.rule.relative and losses.numel() < 3:
            self._say(
                "small",
                f"weights are relative to the batch, and in one of {losses.numel()} there is little to compare: drop "
                "such a batch (drop_last=True), or take larger ones.",
            )
        elif self.judges_batches and self._last is not None and "far" not in self._said:
            before, size = self._last
            if progress > before and size == len(losses):
                self.warn_where_far(Regime(steps=round(1 / (progress - before)), batch_size=size))
        self._last = progress, len(losses)

    def _say(self, topic: str, sentence: str) -> None:
        if topic not in self._said:
            self._said.add(topic)
            warnings.warn(sentence, stacklevel=4)


def _checked(class_counts: Any) -> Tensor:
    wanted = "class_counts says how many training samples each class has, such as torch.bincount(labels)."
    counts = tensor_of(class_counts, wanted)
    sound = counts.dim() == 1 and bool(counts.isfinite().all()) and bool((counts >= 0).all()) and bool(counts.any())
    require(sound, wanted)
    return counts
