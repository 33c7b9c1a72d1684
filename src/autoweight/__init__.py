"""autoweight learns how much every training sample should count."""

from autoweight.audit import datalab
from autoweight.audit.find import find_label_issues
from autoweight.config import SearchConfig, TrainingConfig, presets
from autoweight.data.indexed import Indexed
from autoweight.data.shards import ImageShards
from autoweight.errors import RunError, UserError
from autoweight.finding import SearchTask, search
from autoweight.integrations.out_of_fold import sample_weights
from autoweight.methods.class_balanced import ClassBalanced
from autoweight.methods.constant import Constant
from autoweight.methods.focal import Focal
from autoweight.methods.gce import GCE
from autoweight.methods.mentornet import MentorNet
from autoweight.methods.oracle import Oracle
from autoweight.methods.self_paced import SelfPaced
from autoweight.methods.uniform import Uniform
from autoweight.report.words import describe
from autoweight.runs.fit import Fitted, fit
from autoweight.strategy import Rule, Strategy, Weigher, weighted_mean
from autoweight.strategy.shipped import load

__version__ = "0.2.0"

__all__ = [
    "GCE",
    "ClassBalanced",
    "Constant",
    "Fitted",
    "Focal",
    "ImageShards",
    "Indexed",
    "MentorNet",
    "Oracle",
    "Rule",
    "RunError",
    "SearchConfig",
    "SearchTask",
    "SelfPaced",
    "Strategy",
    "TrainingConfig",
    "Uniform",
    "UserError",
    "Weigher",
    "datalab",
    "describe",
    "find_label_issues",
    "fit",
    "load",
    "presets",
    "sample_weights",
    "search",
    "weighted_mean",
]
