"""How to train on data that nobody has tuned for: AdamW, a cosine, and a length that suits the number of samples."""

from autoweight.config.training import TaskName, TrainingConfig

_STEPS = 3000
"""About as many steps as a small network needs to learn a set, wherever the bounds of the epochs allow it."""
_FEWEST_EPOCHS = 20


def sensible_training(num_samples: int, task: TaskName = "classification", most_epochs: int = 60) -> TrainingConfig:
    """A training for that many samples; where they are not known, for some thousands."""
    samples = max(num_samples, 1) if num_samples else 3000
    batch_size = 32 if samples < 2000 else 64 if samples < 10_000 else 128 if samples < 40_000 else 256
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
