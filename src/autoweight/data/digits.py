"""scikit-learn's handwritten digits: 1,797 grey images of 8 x 8 pixels, ten classes; part of its installation."""

import torch

from autoweight.data.dataset import Samples
from autoweight.errors import UserError


def digits() -> Samples:
    """All digits, standardised over the set, `[1797, 1, 8, 8]`."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UserError("the digits data set comes with scikit-learn: pip install 'autoweight[cli]'.") from error
    images, labels = load_digits(return_X_y=True)
    inputs = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8)
    return Samples.of((inputs - inputs.mean()) / inputs.std(), torch.tensor(labels), num_classes=10)
