"""Methods by name. A new one is a file here and a line in `METHODS`."""

import inspect
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import NamedTuple

from torch import Tensor

from autoweight.config import Knob
from autoweight.errors import UserError, look_up, unknown
from autoweight.methods.class_balanced import ClassBalanced
from autoweight.methods.constant import Constant
from autoweight.methods.coteaching import CoTeaching
from autoweight.methods.early_stop import EARLY_STOP, EarlyStop
from autoweight.methods.elr import ELR
from autoweight.methods.focal import Focal
from autoweight.methods.gce import GCE
from autoweight.methods.l2rw import L2RW
from autoweight.methods.law import law
from autoweight.methods.mentornet import MentorNet
from autoweight.methods.method import Method, Weighted
from autoweight.methods.mwnet import MWNet
from autoweight.methods.oracle import Oracle
from autoweight.methods.self_paced import SelfPaced
from autoweight.methods.uniform import Uniform
from autoweight.strategy import Weigher
from autoweight.strategy.shipped import SHIPPED

METHODS: dict[str, Callable[..., Weigher | Method]] = {
    "uniform": Uniform,
    EARLY_STOP: EarlyStop,
    "oracle": Oracle,
    "law": law,
    **SHIPPED,
    "constant": Constant,
    "focal": Focal,
    "class_balanced": ClassBalanced,
    "self_paced": SelfPaced,
    "mentornet": MentorNet,
    "l2rw": L2RW,
    "mwnet": MWNet,
    "coteaching": CoTeaching,
    "gce": GCE,
    "elr": ELR,
}


class TrainingFacts(NamedTuple):
    """What methods may know of the training set; an argument of that name in a constructor is filled in."""

    class_counts: Tensor
    clean: Tensor


def told_of(name: str) -> str:
    """What a method is told besides the training set, from its card: nothing, the noise rate, trusted samples."""
    card = inspect.getdoc(inspect.getmodule(look_up("method", name, METHODS))) or ""
    told = re.search(r"^Told\s+(.+?)(?=^\S|\Z)", card, re.MULTILINE | re.DOTALL)
    assert told is not None, f"the card of {name} does not say what it is told"
    return " ".join(told[1].split())


def knobs_of(name: str) -> dict[str, inspect.Parameter]:
    """The arguments of a method that users set."""
    parameters = inspect.signature(look_up("method", name, METHODS)).parameters
    return {knob: parameter for knob, parameter in parameters.items() if knob not in TrainingFacts._fields}


def check_knobs(name: str, knobs: Mapping[str, Knob]) -> None:
    """Raise `UserError` for a knob that the method does not have, or a value of the wrong kind."""
    known = knobs_of(name)
    for knob, value in knobs.items():
        if knob not in known:
            raise unknown(f"knob of {name}", knob, known) if known else UserError(f"{name} has no knobs.")
        default = known[knob].default
        wanted = (int, float) if isinstance(default, float | None) else type(default)
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            like = "number" if default is None else f"value like {default!r}"
            raise UserError(f"{name}.{knob} takes a {like}, but got {value!r}.")
        if isinstance(value, float) and not isfinite(value):
            raise UserError(f"{name}.{knob} must be a finite number, but is {value}.")


def make_method(name: str, facts: TrainingFacts, knobs: Mapping[str, Knob]) -> Method:
    """The named method, set up for a training set; a weigher becomes the method that weighs by it."""
    check_knobs(name, knobs)
    wanted = inspect.signature(METHODS[name]).parameters
    given = {fact: value for fact, value in facts._asdict().items() if fact in wanted}
    made = METHODS[name](**given, **knobs)
    return made if isinstance(made, Method) else Weighted(made)
