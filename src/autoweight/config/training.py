"""How one network is trained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from autoweight.config.strict import Strict
from autoweight.errors import require

TaskName = Literal["classification", "multilabel", "regression", "huber", "tokens"]
OptimizerName = Literal["sgd", "adam", "adamw"]
Schedule = Literal["stages", "cosine", "linear", "constant"]
Precision = Literal["float32", "bfloat16"]

IGNORED = -100
"""The label of tokens that do not count, as PyTorch and Hugging Face have it."""

PAPER_STAGES = 20
PAPER_DROPS = (10, 13, 16)
"""Stages of 20 at whose start the paper's learning rate falls."""

ScheduleFunction = Callable[[float], float]
"""From the share of the training that is done to the share of the learning rate that is used."""

if TYPE_CHECKING:
    _AnySchedule = Schedule | ScheduleFunction
else:
    _AnySchedule = Schedule  # what the command line and files can say


@dataclass(frozen=True)
class TrainingConfig(Strict):
    """How one network is trained; learning rate, momentum and stages are the paper's, which decays by 2e-5."""

    prefix: ClassVar[str] = "training."
    free: ClassVar[tuple[str, ...]] = ("schedule",)

    task: TaskName = "classification"
    """What a sample's loss and the score are: classification (accuracy), multilabel (macro-F1), regression by squared
    loss or by Huber's (R2), tokens (accuracy over the tokens whose label is not -100)."""
    epochs: int = 60
    """Passes over the training set."""
    batch_size: int = 64
    """Samples a step."""
    optimizer: OptimizerName = "sgd"
    """sgd (with momentum), adam, or adamw (with decoupled decay)."""
    learning_rate: float = 0.1
    """Initial learning rate."""
    momentum: float = 0.9
    """Momentum of SGD, and the first of Adam's two."""
    nesterov: bool = False
    """Nesterov's momentum for SGD."""
    weight_decay: float = 0.0
    """Decay of the network's parameters: L2, or decoupled for adamw."""
    num_stages: int = PAPER_STAGES
    """Equal parts that the training is cut into (3SM)."""
    schedule: _AnySchedule = "stages"
    """stages divides the learning rate by 10 at drop_stages; cosine and linear let it fall to 0; constant keeps it.
    From Python also a function of the share done."""
    warmup_epochs: float = 0.0
    """First epochs, in which the learning rate rises linearly to what the schedule says."""
    drop_stages: tuple[int, ...] = PAPER_DROPS
    """Stages, counted from 0, at whose start the learning rate is divided by 10. Where the command line sets num_stages
    alone, they keep their place in the training, to the nearest stage; 10, 13 and 16 are always of 20 stages."""
    average: float = 0.0
    """Also evaluate an exponential mean of the parameters, which keeps this share at every step, such as 0.999; 0
    keeps none."""
    precision: Precision = "float32"
    """Arithmetic on a GPU; bfloat16 keeps the parameters in float32. CPUs always use float32."""
    compile: bool = False
    """Compile networks on a GPU: a minute at the start, faster steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "epochs", "batch_size", "num_stages")
        self._require_at_least(0, "weight_decay", "warmup_epochs")
        self._require_above_0("learning_rate")
        require(0 <= self.momentum < 1, f"training.momentum goes from 0 to below 1, but is {self.momentum}.")
        require(0 <= self.average < 1, f"training.average goes from 0 to below 1, but is {self.average}.")
        require(
            self.warmup_epochs <= self.epochs,
            f"a training.warmup_epochs of {self.warmup_epochs:g} is longer than the training's {self.epochs} epochs.",
        )
        require(
            not self.nesterov or (self.optimizer == "sgd" and self.momentum > 0),
            "training.nesterov is for sgd with momentum.",
        )
        first = min(self.drop_stages, default=0)
        require(first >= 0, f"training.drop_stages are counted from 0, but one of them is {first}.")
