"""Whether a network fits the data, and fast ways to train it, found out before anything else is done."""

import copy
from collections.abc import Callable
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from autoweight.config import TaskName, TrainingConfig
from autoweight.data.inputs import Inputs, dtypes, each, shapes
from autoweight.data.labelled import Labelled
from autoweight.errors import UserError, first_line, require
from autoweight.methods.method import Method, trainable
from autoweight.strategy import Rule, Strategy
from autoweight.strategy.regime import Regime
from autoweight.strategy.stages import stage_starts
from autoweight.strategy.weigher import check_device
from autoweight.training.ahead import ready_forward_mode, slopes_along
from autoweight.training.captured import draws_random_numbers
from autoweight.training.device import isolated
from autoweight.training.precision import is_halved
from autoweight.training.schedules import check_schedule
from autoweight.training.split import weigher_of
from autoweight.training.task import TASKS, forward

_NO_TRUSTED = "pass some as val_data"


def check_call(training: TrainingConfig | None, seed: int, device: str, checkpoint: str | Path | None = None) -> None:
    """Raise `UserError` for what a call from Python can get wrong before there are data."""
    require(
        training is None or isinstance(training, TrainingConfig),
        f"training takes an aw.TrainingConfig, but is {training!r}.",
    )
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    require(whole and 0 <= seed < 2**31, f"seed goes from 0 to 2147483647, but is {seed!r}.")
    check_file(checkpoint)
    check_device(device)


def check_file(checkpoint: str | Path | None) -> None:
    """Raise `UserError` where a checkpoint cannot be written, because it is a folder."""
    require(
        checkpoint is None or not Path(checkpoint).is_dir(), f"checkpoint takes a file, but {checkpoint!r} is a folder."
    )


def check_listen(listen: Any) -> None:
    """Raise `UserError` for a listener that cannot be called."""
    require(callable(listen), f"listen is a function of one report after another, but is {listen!r}.")


def check_training(make_model: Callable[[], nn.Module], train: Labelled, config: TrainingConfig, device: str) -> None:
    """Raise `UserError` for what would end a training of such networks on these samples."""
    check_schedule(config)
    _check_labels(train, config)
    stage_starts(len(train) // config.batch_size * config.epochs, config.num_stages)
    check_network(make_model, train, config, device)


def _check_labels(train: Labelled, config: TrainingConfig) -> None:
    if not train.has_classes:
        kind, about = "regression", "numbers"
        fits = config.task not in ("classification", "tokens")
    else:
        kind, about = ("classification", "a class each") if train.labels.dim() == 1 else ("tokens", "classes of tokens")
        fits = config.task == kind
    require(fits, f"training.task {config.task} does not fit these labels, {about}: it should be {kind}.")


def check_network(make_model: Callable[[], nn.Module], train: Labelled, config: TrainingConfig, device: str) -> None:
    """Raise `UserError` unless fresh networks come out, which turn a few samples into as many outputs."""
    require(
        not isinstance(make_model, nn.Module) and callable(make_model),
        "make_model is a callable that returns a fresh network, such as lambda: Net(), not the network itself.",
    )
    with isolated(device):
        model = _made(make_model)
        require(make_model() is not model, "make_model must build a fresh network at every call, not return one again.")
        count = min(2, config.batch_size)
        inputs = each(train.head(count), lambda part: part.to(device))
        outputs: Any = None
        try:
            with torch.no_grad():
                outputs = forward(model.to(device).train(), inputs)
        except Exception as error:  # whatever a network raises about its inputs
            about = f"{dtypes(inputs)} inputs of shape {shapes(inputs)}, {count} at a time"
            doubled = "float32" in about and any(one.dtype == torch.float64 for one in model.parameters())
            hint = " (data of float64 are read as float32: make the network so, too)" if doubled else ""
            raise UserError(f"the network cannot take {about}: {first_line(error)}{hint}.") from error
    _check_outputs(outputs, train, count)


def check_method(
    name: str,
    method: Method,
    make_model: Callable[[], nn.Module],
    train: Labelled,
    val: Labelled | None,
    config: TrainingConfig,
    device: str = "cpu",
    remedy: str = _NO_TRUSTED,
) -> None:
    """Raise `UserError` for what would end a training by this method; `remedy` is for want of trusted samples."""
    method.check_task(config.task)
    weigher = weigher_of(method)
    if isinstance(weigher, Strategy):
        check_features(weigher.rule, config.task, "use a strategy that was found for it")
    if method.uses_trusted:
        trusted_sizes(name, method, val, config, remedy)
    if method.takes_slopes:
        _check_slopes(name, make_model, train, config, halved=is_halved(config.precision, torch.device(device)))


def check_features(rule: Rule, task: TaskName, remedy: str) -> None:
    """Raise `UserError` where a rule looks at what samples of the task do not have."""
    for feature in rule.features:
        known = TASKS[task].features
        require(feature in known, f"{task} has no feature '{feature}', but {', '.join(known)}: {remedy}.")


def trusted_sizes(
    name: str, method: Method, val: Labelled | None, config: TrainingConfig, remedy: str = _NO_TRUSTED
) -> tuple[int, int]:
    """How many trusted samples a method learns from, and in batches of how many; `UserError` where they are too few."""
    if val is None:
        raise UserError(f"{name} learns from trusted samples, and there are none: {remedy}.")
    count = min(method.trusted_samples or len(val), len(val))
    batch_size = method.trusted_batch or config.batch_size
    require(
        count >= batch_size,
        f"{name} learns from trusted samples in batches of {batch_size}, but there are only {count}: trust more "
        "samples, or take smaller batches (knob trusted_batch).",
    )
    return count, batch_size


def _check_slopes(
    name: str, make_model: Callable[[], nn.Module], train: Labelled, config: TrainingConfig, halved: bool
) -> None:
    """Raise `UserError` where slopes cannot be had: forward differentiation has to work on every layer.

    In half precision they come from the difference of two passes, so the network must not draw random numbers.
    """
    ready_forward_mode()
    with isolated("cpu"):
        model = make_model().train()
        inputs, labels = each(train.head(2), lambda part: part.cpu()), train.labels[:2].cpu()
        direction = [torch.zeros_like(parameter) for parameter in trainable(model)]
        if halved:
            require(
                not draws_random_numbers(model, inputs),
                f"{name} looks ahead, but the network draws random numbers, as dropout does: with those, use "
                "training.precision float32.",
            )
            return
        entered = _layers_entered(model)
        try:
            slopes_along(model, inputs, labels, direction, TASKS[config.task].losses)
        except (RuntimeError, NotImplementedError) as error:  # a layer's own, or torch's
            which = f" ({type(entered[-1]).__name__})" if entered else ""
            raise UserError(
                f"{name} looks ahead, but a layer of the network{which} cannot be differentiated forward: use another "
                "network, or another method."
            ) from error


def _layers_entered(model: nn.Module) -> list[nn.Module]:
    """A list of the layers that are running, kept up to date by hooks: if the network fails, the last one did."""
    entered: list[nn.Module] = []

    def leave(layer: nn.Module, inputs: Any, outputs: Any) -> None:
        entered.pop()

    for layer in model.modules():
        layer.register_forward_pre_hook(lambda own, inputs: entered.append(own))
        layer.register_forward_hook(leave)
    return entered


def _made(make_model: Callable[[], nn.Module]) -> nn.Module:
    try:
        model = make_model()
    except UserError:
        raise  # the name of a network, for one
    except Exception as error:  # whatever it raises
        raise UserError(f"make_model() does not build a network: {first_line(error)}.") from error
    require(isinstance(model, nn.Module), f"make_model must return an nn.Module, but returned {type(model).__name__}.")
    require(
        not any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()),
        "the network has lazy layers: give them their sizes, so that all networks can start alike.",
    )
    require(
        any(parameter.requires_grad for parameter in model.parameters()),
        "the network has no parameters that can be trained: unfreeze some.",
    )
    return model


def _check_outputs(outputs: Any, train: Labelled, count: int) -> None:
    shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    wanted = (count, *train.labels.shape[1:])
    if not train.has_classes:
        require(
            isinstance(outputs, Tensor) and outputs.numel() == prod(wanted) and len(outputs) == count,
            f"the network must return outputs of the labels' shape, {wanted} for {count} samples, but gives {shape}.",
        )
        return
    fits = isinstance(shape, tuple) and shape[:-1] == wanted and shape[-1] >= train.num_classes
    names = "[batch, classes]" if len(wanted) == 1 else "[batch, tokens, classes]"
    require(
        fits,
        f"the network must return logits {names} for {train.num_classes} classes, but for {count} samples gives "
        f"{shape}.",
    )


@torch.no_grad()
def check_buffers(model: nn.Module, inputs: Inputs) -> None:
    """Raise `RuntimeError` where a network in training puts a new tensor in a buffer's place.

    What was stacked or captured would go on with the old one, and nobody would notice.
    """
    tried = copy.deepcopy(model).train()
    before = list(tried.buffers())
    forward(tried, inputs)
    if [*map(id, before)] != [*map(id, tried.buffers())]:
        raise RuntimeError("it replaces a buffer, which has to be changed in place")


def warn_where_far(method: Method, training: TrainingConfig) -> None:
    """Say where a strategy is about to be used in a training that is far from its own.

    Steps do not count: a proxy has fewer samples than the training that it stands for.
    """
    weigher = weigher_of(method)
    if isinstance(weigher, Strategy):
        weigher.warn_where_far(Regime.of(training))
