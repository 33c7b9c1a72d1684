"""What a network is fed: a tensor, a tuple of tensors (positional arguments), or a dict of them (named ones)."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


def parts(inputs: Inputs) -> list[Tensor]:
    """The tensors, in order."""
    if isinstance(inputs, Tensor):
        return [inputs]
    return list(inputs.values() if isinstance(inputs, dict) else inputs)


def each(inputs: Inputs | Mapping[str, Tensor], change: Callable[[Tensor], Tensor]) -> Inputs:
    """The same structure, every tensor changed."""
    if isinstance(inputs, Tensor):
        return change(inputs)
    if isinstance(inputs, Mapping):  # of any kind, as data sets give it
        return {name: change(part) for name, part in inputs.items()}
    return tuple(change(part) for part in inputs)


def rows(inputs: Inputs, part: slice) -> Inputs:
    """The same structure, these rows of every tensor."""
    return each(inputs, lambda tensor: tensor[part])


def row_hashes(inputs: Inputs) -> list[int]:
    """A number for each row, the same for those that are alike to the last bit; of this process alone."""
    bytes_of = [part.reshape(len(part), -1).contiguous().view(torch.uint8) for part in parts(inputs)]
    return [hash(row.tobytes()) for row in torch.cat(bytes_of, dim=1).cpu().numpy()]


def together(many: list[Inputs], join: Callable[[list[Tensor]], Tensor]) -> Inputs:
    """Several inputs of one structure as one, their tensors joined."""
    first = many[0]
    joined = [join(list(column)) for column in zip(*(parts(one) for one in many), strict=True)]
    if isinstance(first, Tensor):
        return joined[0]
    return dict(zip(first, joined, strict=True)) if isinstance(first, dict) else tuple(joined)


def arguments(inputs: Inputs) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """How a network is called with them."""
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    return ((), inputs) if isinstance(inputs, dict) else (inputs, {})


def shapes(inputs: Inputs) -> Any:
    """The shapes without the dimension of samples: one, or one a part."""
    if isinstance(inputs, Tensor):
        return tuple(inputs.shape[1:])
    if isinstance(inputs, dict):
        return {name: tuple(part.shape[1:]) for name, part in inputs.items()}
    return [tuple(part.shape[1:]) for part in inputs]


def dtypes(inputs: Inputs) -> str:
    """The types of all parts, for messages."""
    return ", ".join(str(part.dtype) for part in parts(inputs))


def outputs_of(answer: Any) -> Tensor:
    """What a network answers: a tensor, or something with `.logits`, as Hugging Face has it."""
    if isinstance(answer, Tensor):
        return answer
    return answer["logits"] if isinstance(answer, dict) else getattr(answer, "logits", answer)
