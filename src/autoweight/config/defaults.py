"""How to train on data that nobody has tuned for: AdamW, a cosine, and a length that suits the number of samples."""

from autoweight.config.training import TaskName, TrainingConfig

_STEPS = 3000
"""About as many steps as a small network needs to learn a set, wherever the bounds of the epochs allow it."""
_FEWEST_EPOCHS = 20
_BATCH_SIZES = ((32, 2000), (64, 10_000), (128, 40_000))
"""Samples a step, for sets of fewer samples than these."""
_LARGEST_BATCH = 256


def sensible_training(num_samples: int, task: TaskName = "classification", most_epochs: int = 60) -> TrainingConfig:
    """A training for that many samples; where they are not known, for some thousands."""
    samples = max(num_samples, 1) if num_samples else 3000
    batch_size = next((size for size, below in _BATCH_SIZES if samples < below), _LARGEST_BATCH)
    batch_size = max(min(batch_size, samples // 5), 2)  # of one, batch norm can make nothing
    epochs = min(max(round(_STEPS * batch_size / samples), _FEWEST_EPOCHS), most_epochs)
    return TrainingConfig(
        task=task,
        epochs=epochs,
        batch_size=batch_size,
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=0.01,
        schedule="cosine",
    )
