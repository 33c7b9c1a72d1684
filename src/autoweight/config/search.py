"""How a strategy is searched, and what each agent can be told."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from autoweight.config.strict import Strict
from autoweight.errors import require

Feature = Literal["loss", "entropy", "density", "label", "margin", "history", "belief"]
LabelFeature = Literal["log_frequency", "class_frequency", "raw"]
MarginScale = Literal["own", "batch"]
HistoryScale = Literal["set", "class", "batch"]
AgentName = Literal["actor-critic", "cmaes", "constant", "trust-region"]
Reward = Literal["difference", "plain"]
Target = Literal["return", "bootstrap"]
Exploration = Literal["episode", "ornstein_uhlenbeck"]
Update = Literal["full", "sampled"]


@dataclass(frozen=True)
class ActorCriticConfig(Strict):
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
        self._require_share("discount")
        require(self.lag <= 1, f"search.actor_critic.lag goes up to 1, but is {self.lag}.")


@dataclass(frozen=True)
class SmoothTableConfig(Strict):
    """What agents share that look for a smooth table."""

    knots: int = 4
    """Points between which the table runs linearly."""
    coarse_share: float = 0.35
    """Share of the episodes that look for one theta for the whole training, from which stages then part."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "knots")
        self._require_share("coarse_share")


@dataclass(frozen=True)
class CmaesConfig(SmoothTableConfig):
    """The evolution strategy over a smooth table."""

    prefix: ClassVar[str] = "search.cmaes."

    sigma: float = 0.4
    """Initial step, as a share of the box."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_above_0("sigma")
        require(self.sigma <= 1, f"search.cmaes.sigma is a share of the box, up to 1, but is {self.sigma}.")


@dataclass(frozen=True)
class TrustRegionConfig(SmoothTableConfig):
    """The Gaussian process in a trust region."""

    prefix: ClassVar[str] = "search.trust_region."

    radius: float = 0.4
    """How far from its centre the region goes at first, as a share of the box."""
    growth: float = 1.5
    """What a success multiplies the radius by."""
    shrinkage: float = 0.7
    """What a failure multiplies it by."""
    candidates: int = 512
    """Points of the region among which proposals are chosen."""
    newest: int = 400
    """Newest tries that the model heeds; its cost grows with their cube."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "growth", "candidates", "newest")
        self._require_above_0("radius", "shrinkage")
        self._require_share("radius", "shrinkage")


@dataclass(frozen=True)
class SearchConfig(Strict):
    """How a strategy is searched; the defaults are what measured best (docs/search.md)."""

    prefix: ClassVar[str] = "search."

    agent: AgentName = "cmaes"
    """actor-critic, cmaes (evolution of a smooth table), constant (random search for one theta), or trust-region (a
    Gaussian process near the best)."""
    features: tuple[Feature, ...] = ("loss", "entropy")
    """Sample features of the strategy: loss, entropy, density, label; and, from a memory of each sample, its margin,
    the history of its loss, and belief, the log-odds that its label is right."""
    label_feature: LabelFeature = "log_frequency"
    """What the label feature is: the class's log frequency, normalised over the batch (log_frequency) or over the
    classes (class_frequency), or the paper's raw class index."""
    margin_scale: MarginScale = "own"
    """The margin on its own scale, from -1 to 1, or normalised over the batch."""
    history_scale: HistoryScale = "class"
    """What a sample's remembered loss is normalised over: the set, its class, or the batch."""
    memory_rate: float = 0.2
    """Share by which a sample's memory moves at each visit; the search also moves it, if a feature remembers."""
    normalise: bool = False
    """Scale a batch's weights to a mean of 1: they choose among samples, but cannot shrink or stop the learning."""
    within_class: bool = False
    """Scale weights to a mean of 1 within each class, followed over the training, so that none is forgotten; for
    features that remember."""
    warmup_stages: int = 2
    """First stages, which are not weighted."""
    start: dict[str, float] = field(default_factory=dict)
    """Parameters to begin around, by name: a feature, bias or memory; those not named begin at 0. Random constants
    begin nowhere. (See the presets.)"""
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
    cmaes: CmaesConfig = CmaesConfig()
    actor_critic: ActorCriticConfig = ActorCriticConfig()
    trust_region: TrustRegionConfig = TrustRegionConfig()

    def episode_stages(self, num_stages: int) -> int:
        """How many of a training's stages an episode runs."""
        return max(round(self.episode_share * num_stages), min(self.warmup_stages + 1, num_stages))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "num_episodes", "num_workers", "num_starts")
        self._require_at_least(0, "warmup_stages", "choice_rounds", "head_start", "proxy_epochs")
        self._require_above_0("reward_gain")
        require(0 < self.memory_rate < 1, f"search.memory_rate lies between 0 and 1, but is {self.memory_rate}.")
        require(abs(self.reward_growth) <= 80, f"search.reward_growth goes up to 80, but is {self.reward_growth}.")
        require(0 < self.episode_share <= 1, f"search.episode_share goes up to 1, but is {self.episode_share}.")
        require(
            self.agent != "cmaes" or self.num_workers > 4,
            f"the cmaes agent needs at least 5 workers (num_workers), but has {self.num_workers}.",
        )
        require(
            self.num_workers > 1 or self.choice_rounds == 0,
            "search.num_workers must be at least 2, so that there is something to choose from.",
        )
        require(
            self.num_workers % self.num_starts == 0,
            f"search.num_workers ({self.num_workers}) must be a multiple of search.num_starts ({self.num_starts}).",
        )
