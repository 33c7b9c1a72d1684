"""Strategy files: safetensors with a JSON header. Tensors and text only, so that loading one runs nothing."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from autoweight.errors import UserError
from autoweight.storage.atomic import write_bytes

FORMAT = "autoweight-strategy"
VERSION = 2
_READ = ("1", "2")  # what has come since has defaults
RUN_FILE = "strategy.safetensors"
"""What the file is called in a run's folder."""


def write(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and header; the file appears whole or not at all."""
    metadata = {"format": FORMAT, "version": str(VERSION), "header": json.dumps(header)}
    write_bytes(path, _in_order(safetensors.torch.save(tensors, metadata)))


def _in_order(content: bytes) -> bytes:
    """The same file, its header's keys in order: they come in any, and the same strategy is to be the same bytes."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the format aligns tensors so
    return len(header).to_bytes(8, "little") + header + content[end:]


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and header of a strategy file, or one sentence on why it is none; a run's folder is enough."""
    try:
        if path.is_dir():
            path /= RUN_FILE
        with path.open("rb") as opened:
            start = opened.read(2)
    except FileNotFoundError as error:
        raise UserError(f"there is no strategy file {path}.") from error
    except OSError as error:
        raise UserError(f"cannot read the strategy file {path}: {error.strerror}.") from error
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except SafetensorError as error:
        # Only now, since a strategy's first bytes are the length of its header and may be these too.
        if start[:1] == b"\x80" or start == b"PK":
            message = f"{path} is a pickle or a PyTorch checkpoint, not a strategy; pickles are never loaded."
            raise UserError(message) from error
        raise UserError(f"{path} is truncated or not a strategy file: copy or search it again.") from error
    if metadata.get("format") != FORMAT:
        raise UserError(f"{path} is a safetensors file, but not an autoweight strategy.")
    if metadata.get("version") not in _READ:
        raise UserError(
            f"{path} has strategy format version {metadata.get('version')}, but this autoweight reads {VERSION}: "
            "use the autoweight release that wrote it."
        )
    try:
        header = json.loads(metadata["header"])
    except (KeyError, ValueError, RecursionError) as error:
        raise UserError(f"{path} has a damaged header: copy or search it again.") from error
    if not isinstance(header, dict):
        kind = type(header).__name__
        raise UserError(f"{path} has a damaged header, {kind} instead of names and values: copy or search it again.")
    return tensors, header
