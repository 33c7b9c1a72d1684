"""Learn a mentor for `mentornet` on a data set whose wrong labels are known."""

from dataclasses import replace

import torch

from autoweight.config import RunConfig
from autoweight.methods.mentor import Mentor, Seen, fit_mentor
from autoweight.methods.mentornet import MentorNet
from autoweight.methods.method import Weighted
from autoweight.runs.compare import prepare
from autoweight.training.device import isolated
from autoweight.training.loop import StageReport, Training, train


def learn_mentor(config: RunConfig, seed: int = 0, percentile: float = 0.6, steps: int = 500) -> Mentor:
    """Train a network by the predefined curriculum, watch how losses go, and learn to tell whose label is right.

        from autoweight.recipes import get_recipe
        learn_mentor(get_recipe("digits-noise"), seed=100).save("mentor.safetensors")

    Then `autoweight compare RECIPE --methods mentornet --knob mentornet.mentor=mentor.safetensors`, on any data set.
    What the mentor learns from, in so many steps, is every sample's history at the end of every stage.
    """
    comparison = prepare(replace(config, methods=("mentornet",), knobs={}, strategy=None))
    splits = comparison.splits(seed).to(config.device)
    weigher, shots = MentorNet(percentile=percentile), []

    def watch(report: StageReport) -> None:
        assert weigher.history is not None
        shots.append((weigher.history.cpu().clone(), (report.stage + 1) / config.training.num_stages))

    training = Training(
        comparison.make_model,
        splits.train,
        splits.val,
        Weighted(weigher),
        seed,
        config.data.augmentation,
        on_stage=watch,
    )
    with isolated(config.device):
        train([training], config.training)
    labels, right = splits.train.labels.cpu(), splits.train.clean.cpu()
    seen = [Seen(losses, labels, torch.full((len(labels),), share)) for losses, share in shots]
    together = Seen(*(torch.cat(parts) for parts in zip(*seen, strict=True)))
    visited = together.losses[:, -1, 0] >= 0  # not so where the first stages are short
    known = Seen(*(part[visited] for part in together))
    return fit_mentor(known, right.repeat(len(shots))[visited], splits.train.num_classes, seed, steps)
