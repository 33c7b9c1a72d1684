"""What each command takes; the texts are its help."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from autoweight.config import AgentName, DataConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import PresetName


@dataclass(frozen=True)
class Common:
    """What every command that runs something takes."""

    out: Path | None = None
    """Folder to write to; by default a fresh one under runs/."""
    resume: bool = False
    """Go on with the interrupted run in the folder --out."""
    config: Path | None = None
    """Run a saved config.yaml again, or one that init wrote, in place of a recipe."""
    seed: int = 0
    """First seed: of data split, noise, network start and batch order."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    log: str = ""
    """Where to log metrics besides metrics.jsonl: tensorboard."""
    report: bool = True
    """Make report.html at the end."""


@dataclass(frozen=True)
class AboutOwn:
    """What is said about data of one's own."""

    label: str | None = None
    """Own data: column of a table that holds the labels; short for --data.label."""
    text: str | None = None
    """Own data: column of a table that holds texts; short for --data.text."""
    trusted: str | None = None
    """Own data: column that marks samples whose labels were checked, or a file that holds or lists them."""
    test: str | None = None
    """Own data: file or folder to test on; by default a part is split off."""


@dataclass(frozen=True)
class InitArguments(AboutOwn):
    """Write a commented YAML file to start from."""

    out: Path | None = None
    """File to write; by default autoweight.yaml."""
    seed: int = 0
    """First seed: of data split, noise, network start and batch order."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""


@dataclass(frozen=True)
class Own(AboutOwn, Common):
    """What the commands take that run on data of one's own, too."""


@dataclass(frozen=True)
class Trained(Own):
    """What the commands that train methods take."""

    data_dir: Path | None = None
    """Where the data set's files are; short for --data.folder."""
    strategy: Path | None = None
    """Strategy file that law uses; or auto, noise or rare, which come with the package and are methods of that name."""
    knob: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A method's setting, such as focal.gamma=3; 'autoweight list' names them."""
    network: str = "mlp"
    """Name of the network; or torchvision:NAME, timm:NAME, module:function or file.py:function of yours."""
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()


@dataclass(frozen=True)
class TrainArguments(Trained):
    """Train one network with one method."""

    method: str = "uniform"
    """Name of the method."""


@dataclass(frozen=True)
class CompareArguments(Trained):
    """Train several methods over several seeds and show them in one table."""

    methods: str = "uniform"
    """Names of the methods, separated by commas."""
    seeds: int = 1
    """How many seeds, from --seed on."""
    side_by_side: int = 1
    """Trainings that share a GPU at a time."""


@dataclass(frozen=True)
class AuditArguments(Trained):
    """Train once, without search or trusted samples, and list the training labels that look wrong."""

    method: str = "auto"
    """What weighs, and remembers samples."""
    threshold: float | None = None
    """A label looks wrong where its score, from 0 to 1, is below; higher finds more. By default 0.5 at most."""


@dataclass(frozen=True)
class AuditRunArguments:
    """List the training labels of a run that look wrong."""

    method: str | None = None
    """The training to audit by; by default the first that remembered samples."""
    seed: int | None = None
    """Its seed."""
    threshold: float | None = None
    """A label looks wrong where its score, from 0 to 1, is below; higher finds more. By default 0.5 at most."""
    out: Path | None = None
    """Folder to write to; by default the run's."""
    report: bool = True
    """Make report.html anew."""


@dataclass(frozen=True)
class ReportArguments:
    """One page, report.html, from what runs wrote; also while they run, or after they were killed."""

    out: Path | None = None
    """Folder to write report.html to, or a file, NAME.html; by default the run's folder, or this one for several."""


@dataclass(frozen=True)
class SearchArguments(Own):
    """Find a strategy and write it to strategy.safetensors."""

    data_dir: Path | None = None
    """Where the data set's files are; short for --data.folder."""
    agent: AgentName | None = None
    """What searches; short for --search.agent."""
    finish: bool = False
    """With --resume: run no more episodes, but choose among those that are done."""
    preset: PresetName = "default"
    """default is the recipe's own; noise is for wrong labels, rare for rare classes; paper follows the paper, authors
    its authors' code."""
    network: str = "mlp"
    """Name of the network; or torchvision:NAME, timm:NAME, module:function or file.py:function of yours."""
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()


@dataclass(frozen=True)
class DemoArguments(Common):
    """The whole story on embedded data: search a strategy, train with it, compare."""

    seeds: int = 3
    """How many seeds, from --seed on."""
