"""Optimisers by name, and their states, which captured and stacked steps have to keep in place."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer

from autoweight.config import OptimizerName, TrainingConfig


def _sgd(params: Iterable[Tensor], config: TrainingConfig, on_gpu: bool) -> Optimizer:
    return SGD(
        params,
        config.learning_rate,
        config.momentum,
        weight_decay=config.weight_decay,
        nesterov=config.nesterov,
        fused=on_gpu,  # the kind that takes a learning rate from the device
    )


def _adam(kind: type[Adam], params: Iterable[Tensor], config: TrainingConfig, on_gpu: bool) -> Optimizer:
    return kind(
        params,
        config.learning_rate,
        (config.momentum, 0.999),
        weight_decay=config.weight_decay,
        fused=on_gpu,
        capturable=on_gpu,
    )


OPTIMIZERS: dict[OptimizerName, Callable[[Iterable[Tensor], TrainingConfig, bool], Optimizer]] = {
    "sgd": _sgd,
    "adam": partial(_adam, Adam),
    "adamw": partial(_adam, AdamW),
}


def make_optimizer(params: Iterable[Tensor], config: TrainingConfig, on_gpu: bool = False) -> Optimizer:
    """The training's optimiser for these parameters."""
    return OPTIMIZERS[config.optimizer](params, config, on_gpu)


def set_learning_rate(optimizer: Optimizer, learning_rate: float | Tensor) -> None:
    """Change the learning rate of all parameters; a tensor, where only the device knows it."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def state_tensors(optimizer: Optimizer) -> Iterator[Tensor]:
    """The tensors of the optimiser's state; those that the first step would make are made, as zeros."""
    for group in optimizer.param_groups:
        for param in group["params"]:
            state = optimizer.state[param]
            if isinstance(optimizer, SGD):
                names = ["momentum_buffer"] if group["momentum"] else []
            else:
                names = ["exp_avg", "exp_avg_sq"]
                state.setdefault("step", torch.zeros((), device=param.device if group["capturable"] else "cpu"))
            for name in names:
                if state.get(name) is None:
                    state[name] = torch.zeros_like(param, memory_format=torch.preserve_format)
            yield from (value for value in state.values() if isinstance(value, Tensor))


def copy_state(source: Optimizer, target: Optimizer, rows: Tensor) -> None:
    """Fill a fresh optimiser of stacked parameters with those rows of another's state."""
    pairs = zip(source.param_groups[0]["params"], target.param_groups[0]["params"], strict=True)
    for old, new in pairs:
        for name, value in source.state.get(old, {}).items():
            if isinstance(value, Tensor):  # a tensor of another shape, such as Adam's step, is common to all networks
                value = value[rows] if value.shape == old.shape else value.clone()
            target.state[new][name] = value
