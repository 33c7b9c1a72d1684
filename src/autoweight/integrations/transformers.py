"""Weights in Hugging Face's Trainer.

    trainer = WeightedTrainer(model, args, train_dataset=rows, weigher=aw.load("auto"))

Rows are dicts with `labels` (or `label`), as for any Trainer. What has one label is weighed as a sample; where each
token has one, every token whose label is not -100 is.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss, pad
from torch.utils.data import Dataset, IterableDataset
from transformers import Trainer
from transformers.loss.loss_utils import ForCausalLMLoss

from autoweight.config import IGNORED
from autoweight.distributed import num_processes, weigh_global
from autoweight.errors import UserError, require
from autoweight.strategy.remembering import Remembering
from autoweight.strategy.view import check_classes
from autoweight.strategy.weigher import Weigher

INDEX = "autoweight_index"
"""The column that tells each row's position; added, kept and taken out again by the trainer itself."""
STATE = "weigher.pt"
"""What a checkpoint's folder holds besides the trainer's own files."""
_CLASSES, _SEVERAL, _NUMBERS = "single_label_classification", "multi_label_classification", "regression"


class WeightedTrainer(Trainer):  # type: ignore[misc]
    """A `Trainer` whose training loss is weighted; evaluation is as ever, and weights of 1 change nothing.

    It takes all that a Trainer takes, and the weigher. `max_tokens` is how many tokens the longest row has, for
    weighers that remember tokens; where it is not given, the rows are looked through once.
    """

    train_dataset: Any
    data_collator: Any
    compute_loss_func: Any

    def __init__(self, *args: Any, weigher: Weigher, max_tokens: int | None = None, **named: Any) -> None:
        require(
            isinstance(weigher, Weigher), f"WeightedTrainer takes weigher=aw.load('auto') or such, not {weigher!r}."
        )
        require(named.get("compute_loss_func") is None, "WeightedTrainer has a loss of its own: no compute_loss_func.")
        self.weigher, self._fresh, self._max_tokens = weigher, deepcopy(weigher), max_tokens
        self._indices: Tensor | None = None
        super().__init__(*args, **named | {"compute_loss_func": self._weighted_loss})
        self.data_collator = _IndexCollator(self.data_collator)

    def get_train_dataloader(self) -> Any:
        """Add the index column to the training rows."""
        rows = self.train_dataset
        # Without rows the Trainer raises its own error; rows without positions the weigher refuses.
        if rows is None or isinstance(rows, IterableDataset):
            return super().get_train_dataloader()
        try:
            self.train_dataset = _IndexedRows(rows)
            return super().get_train_dataloader()
        finally:
            self.train_dataset = rows

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **named: Any) -> Any:
        """Take the index column out before the network sees it."""
        self._indices = inputs.pop(INDEX, None)
        if self.compute_loss_func is not None and "labels" in inputs and self._needs_labels(inputs):
            model = partial(model, labels=inputs["labels"])  # the Trainer takes them out of what it passes on
        return super().compute_loss(model, inputs, *args, **named)

    def prediction_step(self, *args: Any, **named: Any) -> Any:
        """Evaluate as any Trainer, without weights."""
        weighted, self.compute_loss_func = self.compute_loss_func, None
        try:
            return super().prediction_step(*args, **named)
        finally:
            self.compute_loss_func = weighted

    def call_model_init(self, trial: Any = None) -> Any:
        """Begin anew with a fresh model and a weigher that remembers nothing, as a search of settings does."""
        if hasattr(self, "model_wrapped"):
            self.weigher = deepcopy(self._fresh)
        return super().call_model_init(trial)

    @property
    def _bare_model(self) -> Any:
        """The model without what wraps it for several processes."""
        return self.accelerator.unwrap_model(self.model)

    def _weighted_loss(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Any = None) -> Tensor:
        """The weighted sum of losses over all that count in the accumulated batch, or in this one."""
        if labels is None:
            raise UserError("there is nothing to weigh: rows need a column 'labels'.")
        logits = _logits(outputs)
        if isinstance(num_items_in_batch, Tensor):
            num_items_in_batch = num_items_in_batch.to(logits.device)
        problem = self._problem(logits, labels)
        if problem != _CLASSES:
            require(
                logits.numel() == labels.numel(),
                f"labels of {labels.dtype} need outputs of their shape, {tuple(labels.shape)}, but the model's are "
                f"{tuple(logits.shape)}: labels that are classes must be int64.",
            )
            targets = labels.float()
            return self._loss_of_targets(logits.reshape(labels.shape).float(), targets, problem, num_items_in_batch)
        logits, labels, places = self._flat(logits, labels)
        if not len(labels) and num_processes() == 1:
            return logits.sum() * 0  # not a single token counts
        check_classes(labels, logits.shape[-1], "Leave out samples without a label.")  # before a loss is made of them
        losses = self._class_losses(logits, labels)
        weights = self._weights(losses, logits, labels, places)
        return (weights * losses).sum() / (len(losses) if num_items_in_batch is None else num_items_in_batch)

    def _problem(self, logits: Tensor, labels: Tensor) -> str:
        """What labels are, in transformers' words: as the configuration has it, and without one as they look."""
        config = getattr(self._bare_model, "config", None)
        whole = not labels.is_floating_point()
        if whole and (config is None or logits.numel() != labels.numel()):
            return _CLASSES
        said = getattr(config, "problem_type", None)
        if said in (_NUMBERS, _SEVERAL):
            return str(said)
        if getattr(config, "num_labels", logits.shape[-1] if logits.dim() > 1 else 1) == 1:
            return _NUMBERS
        require(
            config is not None or bool(((labels >= 0) & (labels <= 1)).all()),
            "several labels go from 0 to 1: for numbers, give the model a config with problem_type = 'regression'.",
        )
        return _CLASSES if whole else _SEVERAL

    def _loss_of_targets(self, logits: Tensor, labels: Tensor, problem: str, num_items: Any) -> Tensor:
        """The weighted loss of several labels, or of numbers to predict."""
        regression = problem == _NUMBERS
        loss: Callable[..., Tensor] = mse_loss if regression else binary_cross_entropy_with_logits
        single = loss(logits, labels, reduction="none")
        losses = single if single.dim() == 1 else single.flatten(1).mean(dim=1)
        weights = self._weights(losses, logits, labels, self._indices)
        weights = weights.reshape(-1, *[1] * (labels.dim() - 1)).expand_as(labels)
        # Gradients of cross-entropies are the Trainer's to the bit only where torch itself takes the mean.
        mean = (weights * single).mean() if regression else loss(logits, labels, weight=weights)
        return mean if num_items is None else mean * (labels.numel() / num_items)

    def _weights(self, losses: Tensor, logits: Tensor, labels: Tensor, places: Tensor | None) -> Tensor:
        progress = min(self.state.global_step / max(self.state.max_steps, 1), 1.0)
        return weigh_global(self.weigher, losses.detach(), logits.detach(), labels, progress, places)

    def _class_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy, smoothed as the Trainer's arguments say."""
        smoothing = self.args.label_smoothing_factor
        return cross_entropy(logits.float(), labels, reduction="none", label_smoothing=smoothing)

    def _flat(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """What counts, one row each: logits, labels and places."""
        if logits.dim() != labels.dim() + 1:
            shapes = f"{tuple(logits.shape)} and {tuple(labels.shape)}"
            raise UserError(f"WeightedTrainer weighs classes of rows or tokens, but logits and labels are {shapes}.")
        places = self._places(labels)
        if labels.dim() == 2 and self._predicts_the_next():
            labels = pad(labels[:, 1:], (0, 1), value=IGNORED)  # a token is predicted by those before it
        counts = labels != IGNORED
        if bool(counts.all()):  # as it is where rows have one label: nothing to pick, forwards or backwards
            return logits.flatten(0, -2), labels.flatten(), None if places is None else places.flatten()
        return logits[counts], labels[counts], None if places is None else places[counts]

    def _needs_labels(self, inputs: dict[str, Any]) -> bool:
        """Whether the network cannot do without labels: its forward asks for them, or shifts them for its decoder."""
        model = self._bare_model
        asked = signature(model.forward).parameters.get("labels")
        if asked is not None and asked.default is Parameter.empty:
            return True
        decodes = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        return decodes and not {"decoder_input_ids", "decoder_inputs_embeds"} & inputs.keys()

    def _predicts_the_next(self) -> bool:
        model = self._bare_model
        shifts = getattr(model, "loss_function", None) is ForCausalLMLoss
        return shifts and not model.config.is_encoder_decoder

    def _places(self, labels: Tensor) -> Tensor | None:
        """Where each label is remembered: at its row's index, or in a block of as many places as a row has tokens."""
        if self._indices is None or labels.dim() == 1:
            return self._indices
        if not isinstance(self.weigher, Remembering):
            return None
        if self._max_tokens is None:
            rows: Any = self.train_dataset
            self._max_tokens = max(len(row["labels"] if "labels" in row else row["input_ids"]) for row in rows)
        # What is longer is padding, of which processes have as much as their own batch needs.
        longest = labels.shape[1]
        if longest > self._max_tokens and bool((labels[:, self._max_tokens :] != IGNORED).any()):
            raise UserError(
                f"a row has {longest} tokens: tell WeightedTrainer(max_tokens=...) how many the longest has."
            )
        return self._indices.unsqueeze(-1) * self._max_tokens + torch.arange(longest, device=labels.device)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        columns: Any = self._signature_columns
        if INDEX not in columns:
            columns.append(INDEX)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.should_save:
            torch.save(self.weigher.state_dict(), Path(output_dir) / STATE)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            path = Path(checkpoint) / STATE
            require(
                path.exists(),
                f"{checkpoint} has no {STATE}: it was saved with save_only_model, or by a Trainer without weights, so "
                "begin anew.",
            )
            try:
                state = torch.load(path, map_location=self.args.device, weights_only=True)
            except Exception as error:  # whatever a damaged file makes torch raise
                raise UserError(f"{path} is damaged: resume from an earlier checkpoint.") from error
            self.weigher.load_state_dict(state)


def _logits(outputs: Any) -> Tensor:
    """What a network says, by name or as the first that is no mere loss: given labels, it may put its own before."""
    if isinstance(outputs, dict):
        require("logits" in outputs, f"the model's outputs need 'logits', but are: {', '.join(outputs)}.")
        return outputs["logits"]
    return outputs if isinstance(outputs, Tensor) else next(one for one in outputs if one.dim())


class _IndexedRows(Dataset[dict[str, Any]]):
    """Rows with their positions."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self.rows[index], INDEX: index}

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        many = getattr(self.rows, "__getitems__", None)
        rows = many(indices) if many else [self.rows[index] for index in indices]
        return [{**row, INDEX: index} for row, index in zip(rows, indices, strict=True)]


class _IndexCollator:
    """Keeps the positions out of the user's collator, which need not know what to do with them."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate
        self.tokenizer = getattr(collate, "tokenizer", None)  # the Trainer saves it

    def __call__(self, rows: list[Any]) -> Any:
        if not (rows and isinstance(rows[0], dict) and INDEX in rows[0]):
            return self.collate(rows)
        indices = torch.tensor([row.pop(INDEX) for row in rows])  # rows are the copies that _IndexedRows made
        return {**self.collate(rows), INDEX: indices}
