"""class_balanced: samples of rare classes count more.

Idea    A class of n samples covers `(1 - beta**n) / (1 - beta)` of its variety, its effective number; weights are the
        inverse of that, scaled so that their mean over the classes is 1.
Source  Cui et al., Class-balanced loss based on effective number of samples, CVPR 2019.
Knobs   beta: 0 is plain training, towards 1 inverse class frequency; the source tries 0.9, 0.99, 0.999, 0.9999.
Told    The size of each class.
Cost    One look-up a step.
"""

from torch import Tensor

from autoweight.errors import require, require_numbers
from autoweight.strategy import Weigher, check_batch
from autoweight.strategy.weigher import tensor_of


class ClassBalanced(Weigher):
    """Weights by the effective number of samples of the label's class."""

    capturable = True
    tasks = ("classification",)

    def __init__(self, class_counts: Tensor, beta: float = 0.999) -> None:
        require_numbers("class_balanced", beta=beta)
        require(0 <= beta < 1, f"class_balanced's beta goes from 0 to below 1, but is {beta}.")
        wanted = "class_balanced needs how many samples each class has, all above 0."
        class_counts = tensor_of(class_counts, wanted)
        require(class_counts.dim() == 1 and len(class_counts) > 0 and bool((class_counts > 0).all()), wanted)
        counts = class_counts.double()
        inverse = (1 - beta) / (1 - beta**counts)
        self.class_weights = (inverse / inverse.mean()).float()

    def weigh(
        self, losses: Tensor, logits: Tensor, labels: Tensor, progress: float | Tensor, indices: Tensor | None = None
    ) -> Tensor:
        """The weight of each sample's class."""
        check_batch(losses, logits, labels, len(self.class_weights))
        if self.class_weights.device != losses.device:
            self.class_weights = self.class_weights.to(losses.device)
        return self.class_weights[labels].to(losses.dtype)
