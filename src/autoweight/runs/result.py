"""The result of a run: the content of result.json."""

import platform
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

import autoweight
from autoweight.config import RunConfig
from autoweight.training.task import TASKS


def score_key(config: RunConfig) -> str:
    """The key of a method's scores on the test part, such as test_accuracy."""
    return f"test_{TASKS[config.training.task].score_name}"


def make_result(config: RunConfig, *, methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The content of result.json."""
    score = score_key(config)
    return {
        "recipe": config.recipe,
        "seeds": config.seeds,
        "score": score,
        "methods": methods,
        "recovered": recovered_fractions({name: values[score] for name, values in methods.items()}),
        **more,
        "environment": {
            "device": torch.cuda.get_device_name(config.device) if config.device.startswith("cuda") else "cpu",
            "cpu": _cpu(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "autoweight": autoweight.__version__,
        },
    }


def _cpu() -> str:
    """The processor's model, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def recovered_fractions(scores: dict[str, list[float]]) -> dict[str, float]:
    """How much of the gap between no weighting and the oracle each method closes, where both ran and differ."""
    if not {"uniform", "oracle"} <= scores.keys():
        return {}
    means = {name: fmean(values) for name, values in scores.items()}
    gap = means["oracle"] - means["uniform"]
    return {name: (mean - means["uniform"]) / gap for name, mean in means.items()} if gap > 0 else {}
