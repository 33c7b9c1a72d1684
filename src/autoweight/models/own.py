"""The user's own network: `module:function`, or `file.py:function`, looked for where the command runs."""

import inspect
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from autoweight.errors import UserError, first_line, require, unknown


def own_network(module: str, function: str, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Call the user's function; of `input_shape` and `num_classes` it gets those that it has a parameter for."""
    require(bool(module and function), f"'{module}:{function}' names no network: write module:function of yours.")
    found, module = _module(module), Path(module).name
    make = getattr(found, function, None)
    if make is None:
        raise unknown(f"function of {module}", function, [name for name in vars(found) if not name.startswith("_")])
    require(callable(make), f"{module}:{function} is no function that makes a network.")
    known = {"input_shape": input_shape, "num_classes": num_classes}
    try:
        network = make(**{name: known[name] for name in _parameters(make) if name in known})
    except UserError:
        raise
    except Exception as error:  # whatever it raises
        raise UserError(f"{module}:{function} does not build a network: {first_line(error)}.") from error
    require(
        isinstance(network, nn.Module), f"{module}:{function} must return an nn.Module, not {type(network).__name__}."
    )
    return network


def _parameters(make: Any) -> list[str]:
    try:
        return list(inspect.signature(make).parameters)
    except (ValueError, TypeError):
        return []


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it
    try:
        return _file(Path(name)) if name.endswith(".py") else import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not name.startswith(error.name):
            raise UserError(f"{name} needs {error.name}, which is missing: pip install {error.name}.") from error
        raise UserError(
            f"there is no module '{name}' here: --network takes a name, torchvision:NAME, timm:NAME, or "
            "module:function of yours."
        ) from error
    except UserError:
        raise
    except Exception as error:  # whatever it raises
        raise UserError(f"{Path(name).name} cannot be imported: {first_line(error)}.") from error


def _file(path: Path) -> ModuleType:
    require(
        path.is_file(),
        f"there is no file {path.name} in {path.absolute().parent}: --network takes file.py:function of yours.",
    )
    name = path.stem
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path.absolute()):
        return sys.modules[name]
    spec = spec_from_file_location(name, path.absolute())
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
