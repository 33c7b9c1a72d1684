"""Strategy: a weigher with parameters for every stage of a training, which can be saved, loaded and moved."""

from copy import copy
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from autoweight.config import Feature, LabelFeature
from autoweight.errors import UserError, first_line, require, unknown
from autoweight.strategy import files
from autoweight.strategy.actor import Actor
from autoweight.strategy.features import batch_features, check_features, label_values
from autoweight.strategy.live import LiveActor
from autoweight.strategy.stages import stage_at, stage_of
from autoweight.strategy.weigher import Weigher, check_batch
from autoweight.strategy.weighting import weigh

_HEADER = {"features": list, "warmup_stages": int, "label_feature": str, "normalised": bool, "info": dict}
"""What a file's header has to hold."""


class Strategy(Weigher):
    """Weighs by `1 + tanh(theta_T . f + b)`, with theta_T and b from row T of a table, or from the live actor.

    `table` is `[stages, features + 1]`, the bias last. The first `warmup_stages` weigh everything by 1. A strategy with
    the label feature has to know the training set's class counts. `normalised` weights have a mean of 1 over the batch.
    The actor has learned the first `actor_stages`. `info` tells how it was found.

    >>> strategy = Strategy(torch.tensor([[0.0, 0.0], [-4.0, -1.0]]), features=("loss",), warmup_stages=1)
    >>> strategy.weigh(torch.tensor([0.1, 2.0]), torch.zeros(2, 3), torch.tensor([0, 1]), progress=0.7).tolist()
    [1.9950...
    """

    def __init__(
        self,
        table: Tensor,
        features: tuple[Feature, ...] = ("loss", "entropy"),
        warmup_stages: int = 0,
        label_feature: LabelFeature = "log_frequency",
        normalised: bool = False,
        class_counts: Tensor | None = None,
        actor: Actor | None = None,
        actor_stages: int | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        check_features(features)
        if label_feature not in get_args(LabelFeature):
            raise unknown("label feature", label_feature, get_args(LabelFeature))
        require(
            table.dim() == 2 and len(table) > 0 and table.shape[1] == len(features) + 1,
            f"a table for {len(features)} features has {len(features) + 1} columns, one for the bias, but its shape is "
            f"{tuple(table.shape)}.",
        )
        require(bool(table.float().isfinite().all()), "a strategy's parameters must be finite.")
        require(0 <= warmup_stages <= len(table), f"warmup_stages goes from 0 to {len(table)}, but is {warmup_stages}.")
        self.table = table.detach().float().clone()
        self.table[:warmup_stages] = 0  # weights of exactly 1
        self.features = features
        self.warmup_stages = warmup_stages
        self.label_feature = label_feature
        self.normalised = normalised
        self.actor = actor
        self.actor_stages = len(table) if actor_stages is None else actor_stages
        require(
            1 <= self.actor_stages <= len(table),
            f"actor_stages goes from 1 to {len(table)}, but is {self.actor_stages}.",
        )
        require(
            actor is None
            or (len(actor.bounds) == table.shape[1] and actor.embed.table.num_embeddings >= self.actor_stages),
            "the actor does not fit the strategy's features or stages.",
        )
        self.info = info or {}
        self._label_values: Tensor | None = None
        self._live: LiveActor | None = None
        if class_counts is not None:
            self._label_values = label_values(_checked(class_counts), label_feature)

    def __repr__(self) -> str:
        normalised = ", normalised" if self.normalised else ""
        stages = f"{self.num_stages} stages, {self.warmup_stages} of warm-up"
        return f"Strategy({', '.join(self.features)}; {stages}{normalised})"

    @property
    def num_stages(self) -> int:
        """How many stages the table divides a training into."""
        return len(self.table)

    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """Equation 3 with the parameters of the stage that `progress` lies in."""
        values = self._values_on(losses.device)
        check_batch(losses, logits, labels, None if values is None else len(values))
        params = self._params_at(progress, losses)
        with torch.no_grad():
            features = batch_features(losses, logits, labels, self.features, values, self.label_feature)
            return weigh(features, params, self.normalised).to(losses.dtype)

    def with_class_counts(self, class_counts: Tensor) -> "Strategy":
        """The same strategy for a training set with these class counts, `[classes]`."""
        copied = copy(self)
        copied._label_values = label_values(_checked(class_counts), self.label_feature)
        return copied if self._live is None else copied.live()

    def live(self) -> "Strategy":
        """The same strategy, its parameters made by the actor from the running training's own state.

        The training has to report its validation accuracy at every stage's end through `observe_accuracy`.
        """
        require(self.actor is not None, "this strategy has no actor: it can only be used as a table.")
        copied = copy(self)
        copied._live = LiveActor(self.actor, self.actor_stages)  # type: ignore[arg-type]
        copied.capturable = False
        return copied

    def observe_accuracy(self, accuracy: float) -> None:
        """Take in the running training's validation accuracy; only a live strategy uses it."""
        if self._live is not None:
            self._live.observe_accuracy(accuracy)

    def save(self, path: str | Path) -> None:
        """Write the strategy to a safetensors file, replacing it in one move."""
        tensors = {"table": self.table.cpu().contiguous()}
        header: dict[str, Any] = {
            "features": list(self.features),
            "num_stages": self.num_stages,
            "warmup_stages": self.warmup_stages,
            "label_feature": self.label_feature,
            "normalised": self.normalised,
            "info": self.info,
        }
        if self.actor is not None:
            header["actor"] = self.actor.shape
            header["actor_stages"] = self.actor_stages
            tensors |= {f"actor.{name}": value.cpu() for name, value in self.actor.state_dict().items()}
        files.write(Path(path).expanduser(), tensors, header)

    @staticmethod
    def load(path: str | Path, class_counts: Tensor | None = None) -> "Strategy":
        """Read what `save` wrote; nothing in the file is executed."""
        tensors, header = files.read(Path(path).expanduser())
        try:
            for key, kind in _HEADER.items():
                if not isinstance(header[key], kind):
                    raise TypeError(f"its {key} is {header[key]!r}")
            actor = _read_actor(tensors, header["actor"]) if "actor" in header else None
            strategy = Strategy(
                tensors["table"],
                tuple(header["features"]),
                header["warmup_stages"],
                header["label_feature"],
                header["normalised"],
                None,
                actor,
                header.get("actor_stages"),
                header["info"],
            )
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise UserError(f"{path} is not a valid strategy file: {first_line(error)}.") from error
        return strategy if class_counts is None else strategy.with_class_counts(class_counts)

    def state_dict(self) -> dict[str, Any]:
        """The live actor's view of the training; a table keeps no state."""
        return {} if self._live is None else self._live.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if self._live is None:
            super().load_state_dict(state)
        else:
            self._live.load_state_dict(state)

    def _params_at(self, progress: float | Tensor, losses: Tensor) -> Tensor:
        if self.table.device != losses.device:
            self.table = self.table.to(losses.device)  # moved once, so that later steps copy nothing
        if isinstance(progress, Tensor):
            require(self._live is None, "a live strategy takes progress as a number, not as a tensor.")
            return self.table.index_select(0, stage_of(progress, self.num_stages).view(1)).squeeze(0)
        stage = stage_at(progress, self.num_stages)
        if self._live is None:
            return self.table[stage]
        self._live.observe_loss(stage, losses)
        return self.table[stage] if stage < self.warmup_stages else self._live.params_at(stage).to(losses.device)

    def _values_on(self, device: torch.device) -> Tensor | None:
        if "label" not in self.features:
            return None
        if self._label_values is None:
            raise UserError(
                "this strategy uses the label feature: tell it the training set's class counts, "
                "class_counts=torch.bincount(train_labels), where it is loaded or made."
            )
        if self._label_values.device != device:
            self._label_values = self._label_values.to(device)
        return self._label_values


def _read_actor(tensors: dict[str, Tensor], shape: dict[str, Any]) -> Actor:
    """The actor of a file; its shape takes no memory before the tensors have been found to fit it."""
    names = [name for name in tensors if name.startswith("actor.")]
    # Copies, since a file's own memory may be laid out so that sums are taken in another order.
    state = {name.removeprefix("actor."): tensors[name].to(torch.float32, copy=True) for name in names}
    if not all(bool(value.isfinite().all()) for value in state.values()):
        raise TypeError("its actor has parameters that are not finite")
    with torch.device("meta"):
        actor = Actor(bounds=state["bounds"], **shape)
    actor.load_state_dict(state, assign=True)
    return actor


def _checked(class_counts: Any) -> Tensor:
    wanted = "class_counts says how many training samples each class has, such as torch.bincount(labels)."
    try:
        counts = torch.as_tensor(class_counts)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(wanted) from error
    sound = counts.dim() == 1 and bool(counts.isfinite().all()) and bool((counts >= 0).all()) and bool(counts.any())
    require(sound, wanted)
    return counts
