"""Frozen, typed configurations that check themselves. `config_files.py` reads and writes them as YAML.

The text under each field is its documentation, and the help of the command line.
"""

import re
from dataclasses import dataclass, field, fields
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args, get_origin

from autoweight.errors import require, unknown

Feature = Literal["loss", "entropy", "density", "label"]
LabelFeature = Literal["log_frequency", "class_frequency", "raw"]
Augmentation = Literal["none", "crop_flip"]
Noise = Literal["none", "uniform", "uniform_other", "asymmetric"]
Imbalance = Literal["none", "step", "longtail"]
Precision = Literal["float32", "bfloat16"]
Schedule = Literal["stages", "cosine"]
AgentName = Literal["actor-critic", "cmaes", "constant"]
Reward = Literal["difference", "plain"]
Target = Literal["return", "bootstrap"]
Exploration = Literal["episode", "ornstein_uhlenbeck"]
Update = Literal["full", "sampled"]
Command = Literal["train", "compare", "search", "demo"]
Knob = bool | int | float | str


_KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
    tuple: (tuple, "a tuple"),
}


class _Strict:
    """Refuses wrong types, names that are no choice and NaN; pydantic, where it reads a file, refuses unknown keys."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    prefix: ClassVar[str] = ""
    """What stands before a field's name in messages."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if get_origin(one.type) is Literal and value not in get_args(one.type):
                raise unknown(one.name.replace("_", " "), str(value), get_args(one.type))
            kind, words = _KINDS.get(get_origin(one.type) or one.type, (object, ""))
            fits = isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))
            require(fits, f"{self.prefix}{one.name} takes {words}, but is {value!r}.")
            if get_args(one.type)[:1] == (int,):
                whole = all(isinstance(item, Integral) for item in value)
                require(whole, f"{self.prefix}{one.name} takes whole numbers, but is {value!r}.")
            if isinstance(value, Real):
                require(isfinite(value), f"{self.prefix}{one.name} must be a finite number, but is {value}.")

    def _require_at_least(self, least: int, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(value >= least, f"{self.prefix}{name} must be at least {least}, but is {value}.")

    def _require_above_0(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(value > 0, f"{self.prefix}{name} must be above 0, but is {value}.")


@dataclass(frozen=True)
class DataConfig(_Strict):
    """Which data, how they are split, and what bias is put into the training part."""

    prefix: ClassVar[str] = "data."

    dataset: str = "digits"
    """Name of the data set."""
    folder: str = ""
    """Where the data set's files are, for sets that are read from files."""
    train_size: int = 1000
    """Samples to train on, before rare classes are cut."""
    val_size: int = 250
    """Trusted samples, held out of training, that searches and choices look at."""
    train_on_all: bool = False
    """Final trainings use all samples but the test part, as the paper does; searches keep to train_size."""
    noise: Noise = "none"
    """Wrong labels: uniform (the true class may be drawn again), uniform_other (never), asymmetric (the next class)."""
    noise_rate: float = 0.0
    """Probability that a training label is redrawn."""
    imbalance: Imbalance = "none"
    """Rare classes: step (rare_classes are cut) or longtail (class sizes fall geometrically)."""
    imbalance_factor: float = 1.0
    """Size of the largest class over that of the smallest."""
    rare_classes: tuple[int, ...] = (0, 1)
    """The classes that step imbalance cuts."""
    augmentation: Augmentation = "none"
    """crop_flip shifts training images by up to 4 pixels and flips half of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "train_size", "val_size", "imbalance_factor")
        require(0 <= self.noise_rate <= 1, f"data.noise_rate goes from 0 to 1, but is {self.noise_rate}.")
        require(
            self.noise != "none" or self.noise_rate == 0,
            f"a data.noise_rate of {self.noise_rate} does nothing while data.noise is none: set one of them.",
        )
        require(
            self.imbalance != "none" or self.imbalance_factor == 1,
            f"a data.imbalance_factor of {self.imbalance_factor:g} does nothing while data.imbalance is none: set one "
            "of them.",
        )


@dataclass(frozen=True)
class TrainingConfig(_Strict):
    """How one network is trained; the defaults are the paper's, but for epochs and batch."""

    prefix: ClassVar[str] = "training."

    epochs: int = 60
    """Passes over the training set."""
    batch_size: int = 64
    """Samples a step."""
    learning_rate: float = 0.1
    """Initial learning rate of SGD."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """L2 decay of the network's parameters."""
    num_stages: int = 20
    """Equal parts that the training is cut into (3SM)."""
    schedule: Schedule = "stages"
    """stages divides the learning rate by 10 at drop_stages; cosine lets it fall to 0 along half a cosine."""
    drop_stages: tuple[int, ...] = (10, 13, 16)
    """Stages, counted from 0, at whose start the learning rate is divided by 10."""
    precision: Precision = "float32"
    """Arithmetic on a GPU; bfloat16 keeps the parameters in float32. CPUs always use float32."""
    compile: bool = False
    """Compile networks on a GPU: a minute at the start, faster steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "epochs", "batch_size", "num_stages")
        self._require_at_least(0, "weight_decay")
        self._require_above_0("learning_rate")
        require(0 <= self.momentum < 1, f"training.momentum goes from 0 to below 1, but is {self.momentum}.")
        first = min(self.drop_stages, default=0)
        require(first >= 0, f"training.drop_stages are counted from 0, but one of them is {first}.")


@dataclass(frozen=True)
class ActorCriticConfig(_Strict):
    """The actor-critic agent."""

    prefix: ClassVar[str] = "search.actor_critic."

    hidden: tuple[int, ...] = (64, 64, 64)
    """Sizes of the hidden layers of actor and critic; three make four layers."""
    embedding_size: int = 16
    """Size of the stage's embedding."""
    bounded: bool = True
    """Keep strategy parameters inside a box; without it the actor runs off to infinity."""
    num_critics: int = 2
    """Critics, of which the actor and the targets believe the least optimistic."""
    target: Target = "return"
    """What critics learn: the rest of the episode's return, or reward plus discounted lagged critic (bootstrap)."""
    discount: float = 1.0
    """Discount of later rewards."""
    actor_learning_rate: float = 1e-3
    """Learning rate of the actor's Adam."""
    critic_learning_rate: float = 3e-3
    """Learning rate of the critics' Adam."""
    weight_decay: float = 0.0
    """Decay of both."""
    gradient_clip: float = 5.0
    """Largest gradient norm; 0 does not clip."""
    lag: float = 0.05
    """Share by which the lagged copies follow at every update; 1 does without lagged copies."""
    exploration: Exploration = "episode"
    """episode: noise drawn for a whole episode; ornstein_uhlenbeck: now and then, about 1 % of the parameters."""
    noise_start: float = 0.5
    """Exploration noise at the search's beginning, as a share of the box."""
    noise_end: float = 0.25
    """The same at its end."""
    noise_knots: int = 3
    """Points between which an episode's noise runs linearly; 1 keeps it through the episode."""
    stage_noise: float = 0.1
    """Size of each stage's own noise, relative to the episode's."""
    update: Update = "full"
    """full: the whole buffer, every transition once an epoch (FDU); sampled: one mini-batch a stage."""
    update_epochs: int = 2
    """Epochs over the buffer at every stage's end."""
    update_batch_size: int = 32
    """Transitions of each worker in a mini-batch."""
    buffer_size: int = 0
    """Newest transitions of each worker that are kept; 0 keeps all."""
    action_penalty: float = 0.0
    """Weight of the strategy parameters' norm in the actor's loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "embedding_size", "num_critics", "noise_knots", "update_epochs", "update_batch_size")
        self._require_at_least(
            0,
            "weight_decay",
            "gradient_clip",
            "noise_start",
            "noise_end",
            "stage_noise",
            "buffer_size",
            "action_penalty",
        )
        self._require_above_0("actor_learning_rate", "critic_learning_rate", "lag")
        require(min(self.hidden, default=1) > 0, f"search.actor_critic.hidden names an empty layer: {self.hidden}.")
        require(0 <= self.discount <= 1, f"search.actor_critic.discount goes from 0 to 1, but is {self.discount}.")
        require(self.lag <= 1, f"search.actor_critic.lag goes up to 1, but is {self.lag}.")


@dataclass(frozen=True)
class SearchConfig(_Strict):
    """How a strategy is searched; the defaults are what measured best (docs/search.md)."""

    prefix: ClassVar[str] = "search."

    agent: AgentName = "cmaes"
    """actor-critic, cmaes (evolution of a smooth table), or constant (random search for one theta)."""
    features: tuple[Feature, ...] = ("loss", "entropy")
    """Sample features of the strategy."""
    label_feature: LabelFeature = "log_frequency"
    """What the label feature is: the class's log frequency, normalised over the batch (log_frequency) or over the
    classes (class_frequency), or the paper's raw class index."""
    normalise: bool = False
    """Scale a batch's weights to a mean of 1: they choose among samples, but cannot shrink or stop the learning."""
    warmup_stages: int = 2
    """First stages, which are not weighted."""
    proxy_network: str = ""
    """Network to search with; empty takes the run's own."""
    proxy_epochs: int = 0
    """Epochs of a training in the search; 0 takes the run's own. Too few to memorise leave nothing to find."""
    head_start: int = 0
    """Times that an episode's first stage is trained beforehand, unweighted, by the reference alone and so at little
    cost: weighting then begins with a network that knows as much as one in a full training does by then."""
    augment_stages: bool = True
    """Augment an episode's stages, not its head start alone; without, networks memorise within few epochs."""
    num_episodes: int = 12
    """Episodes that each worker runs."""
    num_workers: int = 31
    """Weighted networks that train side by side."""
    num_starts: int = 1
    """Different starts among the workers of an episode; those that start alike share a reference."""
    episode_share: float = 0.7
    """Share of a training that an episode runs, after which the last parameters stay. Late stages tell little."""
    choice_rounds: int = 3
    """Fresh starts on which the best candidates train again to choose the strategy; 0 takes the last guess."""
    reward: Reward = "difference"
    """difference: to the reference's accuracy (DNR); plain: the accuracy itself."""
    reward_growth: float = 5.0
    """How fast the weight of rewards grows along a training: exp(reward_growth x progress) x reward_gain."""
    reward_gain: float = 0.0067
    """Scale of the weight of rewards."""
    stagewise: bool = True
    """A strategy parameter for every stage (3SM); without it, one for the whole training."""
    knots: int = 4
    """cmaes: points between which the table runs linearly."""
    sigma: float = 0.4
    """cmaes: initial step, as a share of the box."""
    start_loss: float = 0.0
    """cmaes: theta of the loss to begin around; below 0, small losses count more at once (see the preset noise)."""
    start_bias: float = 0.0
    """cmaes: bias to begin around; far below 0 is for normalised weights (see the preset rare)."""
    coarse_share: float = 0.35
    """cmaes: share of the episodes that look for one theta for the whole training, from which stages then part."""
    actor_critic: ActorCriticConfig = ActorCriticConfig()

    def episode_stages(self, num_stages: int) -> int:
        """How many of a training's stages an episode runs."""
        return max(round(self.episode_share * num_stages), min(self.warmup_stages + 1, num_stages))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "num_episodes", "num_workers", "num_starts", "knots")
        self._require_at_least(0, "warmup_stages", "choice_rounds", "head_start", "proxy_epochs")
        self._require_above_0("sigma", "reward_gain")
        require(self.sigma <= 1, f"search.sigma is a share of the box, up to 1, but is {self.sigma}.")
        require(abs(self.reward_growth) <= 80, f"search.reward_growth goes up to 80, but is {self.reward_growth}.")
        require(0 <= self.coarse_share <= 1, f"search.coarse_share goes from 0 to 1, but is {self.coarse_share}.")
        require(0 < self.episode_share <= 1, f"search.episode_share goes up to 1, but is {self.episode_share}.")
        require(
            self.num_workers > 1 or self.choice_rounds == 0,
            "search.num_workers must be at least 2, so that there is something to choose from.",
        )
        require(
            self.num_workers % self.num_starts == 0,
            f"search.num_workers ({self.num_workers}) must be a multiple of search.num_starts ({self.num_starts}).",
        )


@dataclass(frozen=True)
class RunConfig(_Strict):
    """A whole run: what a recipe holds, what a run's config.yaml says, and what --config FILE runs again."""

    recipe: str
    """Name of the recipe that it started from."""
    command: Command = "compare"
    """The command that runs it."""
    data: DataConfig = DataConfig()
    network: str = "mlp"
    """Name of the network."""
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()
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
        require(bool(re.fullmatch(r"[\w-]*", self.recipe)), f"'{self.recipe}' is no name of a recipe.")
        require(len(self.methods) > 0, "name at least one method.")
        require(len(set(self.methods)) == len(self.methods), "a method is named twice.")
        last = self.seed + self.num_seeds - 1
        require(
            self.seed >= 0 and last < 2**31, f"seeds go from 0 to 2147483647, but these from {self.seed} to {last}."
        )

    @property
    def seeds(self) -> list[int]:
        """The seeds of the run."""
        return list(range(self.seed, self.seed + self.num_seeds))
