"""Weights in skorch: nets that scikit-learn can clone, search and put into pipelines.

    net = WeightedNetClassifier(Module, weigher=aw.load("auto"), max_epochs=40)
    net.fit(X, y)
    net.weigher_                                             # what it remembers, by the rows of X

Fitting works on a copy of the weigher, as scikit-learn wants it. Its memory is in what skorch saves as `f_optimizer`.
"""

import warnings
from copy import deepcopy
from typing import Any

import torch
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.utils import to_tensor
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset

from autoweight.distributed import weigh_global
from autoweight.errors import require
from autoweight.strategy.weigher import Weigher, weighted_mean


class _Weighted:
    """What both nets share; `weigher` None trains without weights.

    `planned_epochs` is how many epochs there will be in all, for those who call `partial_fit` again and again;
    otherwise it is `max_epochs`. Later epochs count as the training's end.
    """

    _given: Any = None

    def __init__(
        self, *args: Any, weigher: Weigher | None = None, planned_epochs: int | None = None, **named: Any
    ) -> None:
        super().__init__(*args, **named)
        self.weigher = weigher
        self.planned_epochs = planned_epochs

    def initialize(self) -> Any:
        """Begin with a fresh module and a weigher as it was given."""
        require(
            self.weigher is None or isinstance(self.weigher, Weigher),
            f"weigher takes a weigher such as aw.load('auto'), or None, not {self.weigher!r}.",
        )
        self.weigher_ = deepcopy(self.weigher)
        return super().initialize()  # type: ignore[misc]

    def get_split_datasets(self, X: Any, y: Any = None, **params: Any) -> Any:  # noqa: N803
        """Remember what was given: batches have to tell which of its rows they hold."""
        self._given = X
        return super().get_split_datasets(X, y, **params)  # type: ignore[misc]

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Add to training batches which rows they hold."""
        if training and self.weigher_ is not None:
            dataset = _Indexed(dataset, self._given)
        self._given = None  # a net is pickled without its data
        return super().get_iterator(dataset, training=training)  # type: ignore[misc]

    def run_single_epoch(self, iterator: Any, training: bool, *args: Any, **named: Any) -> None:
        """Count the batches, of which the progress is made."""
        self.num_batches_ = len(iterator) if training and hasattr(iterator, "__len__") else 1
        knew = self._remembers()
        super().run_single_epoch(iterator, training, *args, **named)  # type: ignore[misc]
        before = len(self.history) - 1  # type: ignore[attr-defined]
        if training and before and self._remembers() and not knew:
            warnings.warn(
                f"the weigher remembers nothing of {before} earlier epochs: its memory is saved and loaded with "
                "f_optimizer.",
                stacklevel=2,
            )

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Take the rows' positions out of the batch."""
        if self.weigher_ is not None:
            *pair, self.indices_ = batch
            batch = tuple(pair)
        return super().train_step_single(batch, **fit_params)  # type: ignore[misc]

    def get_loss(self, y_pred: Tensor, y_true: Any, X: Any = None, training: bool = False) -> Tensor:  # noqa: N803
        """The weighted mean of a training batch's losses; validation is not weighted."""
        if not training or self.weigher_ is None:
            return super().get_loss(y_pred, y_true, X=X, training=training)  # type: ignore[misc]
        criterion: Any = self.criterion_  # type: ignore[attr-defined]
        require(
            getattr(criterion, "reduction", None) == "mean" and getattr(criterion, "weight", None) is None,
            "weights need a criterion of torch's with reduction 'mean' and no class weights, such as CrossEntropyLoss.",
        )
        criterion.reduction = "none"
        try:
            losses = super().get_loss(y_pred, y_true, X=X, training=True)  # type: ignore[misc]
        finally:
            criterion.reduction = "mean"
        losses = losses if losses.dim() == 1 else losses.flatten(1).mean(dim=1)
        labels, logits = to_tensor(y_true, device=losses.device), y_pred.detach()
        if isinstance(criterion, nn.NLLLoss):
            logits = torch.log(logits + torch.finfo(logits.dtype).eps)  # skorch wants probabilities there
        return weighted_mean(
            losses, weigh_global(self.weigher_, losses.detach(), logits, labels, self._progress(), self.indices_)
        )

    def _remembers(self) -> bool:
        """Whether the weigher has a memory by now."""
        return self.weigher_ is not None and bool(self.weigher_.state_dict())

    def _get_module(self, name: str, msg: str) -> Any:
        """What skorch saves and loads under a name: with the optimiser, also the weigher's memory."""
        module = super()._get_module(name, msg)  # type: ignore[misc]
        return _WithMemory(module, self.weigher_) if name == "optimizer_" and self.weigher_ is not None else module

    def _progress(self) -> float:
        history: Any = self.history  # type: ignore[attr-defined]
        planned = self.planned_epochs or self.max_epochs  # type: ignore[attr-defined]
        done = len(history) - 1 + (len(history[-1]["batches"]) - 1) / self.num_batches_
        return min(max(done / planned, 0.0), 1.0)


class WeightedNetClassifier(_Weighted, NeuralNetClassifier):  # type: ignore[misc]
    """A `NeuralNetClassifier` whose training loss is weighted: `WeightedNetClassifier(Module, weigher=...)`."""


class WeightedNetRegressor(_Weighted, NeuralNetRegressor):  # type: ignore[misc]
    """A `NeuralNetRegressor` whose training loss is weighted: `WeightedNetRegressor(Module, weigher=...)`."""


class _WithMemory:
    """An optimiser's state and the weigher's in one, since a training that goes on needs both."""

    def __init__(self, optimizer: Any, weigher: Weigher) -> None:
        self.optimizer, self.weigher = optimizer, weigher

    def state_dict(self) -> dict[str, Any]:
        """Of both; plain nets take it too, as torch's optimisers look at their own entries only."""
        return {**self.optimizer.state_dict(), "weigher": self.weigher.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Of both, or of the optimiser alone, as plain nets save it."""
        self.optimizer.load_state_dict(state)
        if "weigher" in state:
            self.weigher.load_state_dict(state["weigher"])


class _Indexed(Dataset[Any]):
    """Adds the row of what `fit` was given to what a data set yields, also where it is a part of that."""

    def __init__(self, dataset: Any, given: Any = None) -> None:
        self.dataset, self.given = dataset, given

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        row, part = index, self.dataset
        while isinstance(part, Subset) and part is not self.given:  # a Subset of the user's own is a whole
            row, part = part.indices[row], part.dataset
        return (*self.dataset[index], int(row))
