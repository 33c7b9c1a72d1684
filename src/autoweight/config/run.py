"""A whole run: what a recipe holds and what a command does."""

import re
from dataclasses import dataclass, field
from typing import Literal

from autoweight.config.data import DataConfig
from autoweight.config.search import SearchConfig
from autoweight.config.strict import Strict
from autoweight.config.training import TrainingConfig
from autoweight.errors import require

Command = Literal["train", "compare", "search", "demo", "audit", "any"]
Knob = bool | int | float | str


@dataclass(frozen=True)
class TaskConfig(Strict):
    """A further task of a search; what it does not name is the run's own."""

    data: DataConfig
    network: str = ""
    """Name of the network; empty takes the run's."""
    training: TrainingConfig | None = None
    """How networks train; none takes the run's."""


@dataclass(frozen=True)
class RunConfig(Strict):
    """A whole run: what a recipe holds, what a run's config.yaml says, and what --config FILE runs again."""

    recipe: str
    """Name of the recipe that it started from."""
    command: Command = "compare"
    """The command that runs it; any leaves that open."""
    data: DataConfig = DataConfig()
    network: str = "mlp"
    """Name of the network; or torchvision:NAME, timm:NAME, module:function or file.py:function of yours."""
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()
    tasks: tuple[TaskConfig, ...] = ()
    """Tasks that a search trains on beside the run's own, for one strategy that serves them all."""
    methods: tuple[str, ...] = ("uniform",)
    """Methods to train, in the table's order."""
    knobs: dict[str, dict[str, Knob]] = field(default_factory=dict)
    """Settings of methods, such as {focal: {gamma: 2.0}}."""
    strategy: str | None = None
    """Strategy file that law uses."""
    seed: int = 0
    """First seed: of data split, noise, network start and batch order."""
    num_seeds: int = 1
    """How many seeds, from the first on."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    side_by_side: int = 1
    """Trainings that share a GPU at a time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "side_by_side", "num_seeds")
        require(bool(re.fullmatch(r"[\w.-]*", self.recipe)), f"'{self.recipe}' is no name of a recipe.")
        require(len(self.methods) > 0, "name at least one method.")
        twice = [name for name in self.methods if self.methods.count(name) > 1]
        require(not twice, f"the method '{''.join(twice[:1])}' is named twice: name it once.")
        last = self.seed + self.num_seeds - 1
        require(
            self.seed >= 0 and last < 2**31, f"seeds go from 0 to 2147483647, but these from {self.seed} to {last}."
        )

    @property
    def seeds(self) -> list[int]:
        """The seeds of the run."""
        return list(range(self.seed, self.seed + self.num_seeds))
