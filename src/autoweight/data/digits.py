"""scikit-learn's handwritten digits: 1,797 grey images of 8 x 8 pixels in ten classes, part of its installation."""

from pathlib import Path

import torch

from autoweight.data.dataset import Samples
from autoweight.data.splits import stratified_split
from autoweight.errors import UserError

_TEST_SIZE = 547
_TEST_SEED = 0  # the test part is always the same: no search or choice ever looks at it


def digits(folder: Path | None = None) -> tuple[Samples, Samples]:
    """1,250 digits to train on and 547 to test on, `[n, 1, 8, 8]`; needs no folder.

    They are standardised by one mean and one deviation over the pixels of all of them, those to test on too.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UserError("the digits data set comes with scikit-learn: pip install 'autoweight[cli]'.") from error
    images, labels = load_digits(return_X_y=True)
    inputs = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8)
    samples = Samples.of((inputs - inputs.mean()) / inputs.std(), torch.tensor(labels), num_classes=10)
    test, pool = stratified_split(samples, (_TEST_SIZE,), _TEST_SEED)
    return pool, test
