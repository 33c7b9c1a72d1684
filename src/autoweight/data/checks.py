"""Whether a network can be trained on data, found out before anything else is done."""

from autoweight.data.inputs import dtypes
from autoweight.data.labelled import Labelled
from autoweight.errors import require


def check_training_data(train: Labelled, val: Labelled | None, batch_size: int) -> None:
    """Raise `UserError` where a training on these sets could not give a meaningful network."""
    require(len(train) > 0, "the training set is empty.")
    if val is not None:
        _check_alike(train, val)
    require(
        not train.has_classes or train.num_classes > 1,
        f"there is one class only ('{train.class_name(0)}'): there is nothing to tell apart.",
    )
    missing = (train.class_counts == 0).nonzero().flatten().tolist()
    require(
        not missing,
        f"class {train.class_name(missing[0]) if missing else ''} has no training sample, but labels go up to "
        f"{train.num_classes - 1}: add samples, drop the class, or correct labels that are too large or do not count "
        "from 0.",
    )
    require(
        batch_size <= len(train),
        f"a batch of {batch_size} is larger than the training set of {len(train)}: use a smaller one "
        "(--training.batch-size, in Python batch_size).",
    )


def _check_alike(train: Labelled, val: Labelled) -> None:
    require(len(val) > 0, "the validation set is empty: hold out some trusted samples.")
    require(
        train.num_classes == val.num_classes,
        f"the training set has {train.num_classes} classes, but the validation set has {val.num_classes}.",
    )
    kinds = [f"{dtypes(part.head(1))} of shape {part.input_shape}" for part in (train, val)]
    require(kinds[0] == kinds[1], f"training inputs are {kinds[0]}, but validation inputs {kinds[1]}: make them alike.")
