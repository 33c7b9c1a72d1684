"""coteaching: two networks, each learns from what the other finds easy.

Idea    Networks learn what is right before what is wrong, and two that started apart err differently. At every step
        each names the samples of the batch with the smallest losses, and the other learns from these alone. The share
        that is left out rises from 0 to the share of wrong labels.
Source  Han et al., Co-teaching: robust training of deep neural networks with extremely noisy labels, NeurIPS 2018.
Told    Nothing; where drop is set, the noise rate.
Knobs   drop: the share of samples to leave out in the end, as a rule the share of wrong labels; estimated where it is
        not set. rise: the share of the training over which it rises, the source's 10 of 200 epochs.
Cost    Two networks: two plain steps, and twice the memory. One network is evaluated; beside it the mean of both,
        which is an ensemble and so no fair rival of one network.

The estimate: of the samples about which both networks say the same, the share whose label is another. It is a running
mean over about an epoch, for as long as a rise takes, during which nothing is left out; then the share rises. Networks
that leave out too much from the start never learn some classes, which makes the estimate rise further. What both get
wrong alike counts as wrong label, so that on clean data a little is left out, too.
"""

import torch
from torch import Tensor, nn

from autoweight.data.inputs import outputs_of
from autoweight.data.loader import Batch
from autoweight.errors import require
from autoweight.methods.method import Method, Setup


class CoTeaching(Method):
    """Two networks that choose each other's samples."""

    capturable = True

    def __init__(self, drop: float | None = None, rise: float = 0.05) -> None:
        require(drop is None or 0 <= drop < 1, f"coteaching.drop goes from 0 to below 1, but is {drop}.")
        require(0 <= rise <= 1, f"coteaching.rise is a share of the training, from 0 to 1, but is {rise}.")
        self.drop, self.rise = drop, rise

    def begin(self, setup: Setup) -> None:
        """Make the other network, and room for the counts behind the estimate."""
        super().begin(setup)
        self.networks.append(setup.make_model())
        self.optimizers.append(setup.make_optimizer(self.networks[1]))
        self.seen = torch.zeros(2, device=setup.device)

    def tensors(self) -> dict[str, Tensor]:
        """Running means: how many samples both networks agree about, and how many of these contradict their label."""
        return {"seen": self.seen}

    def evaluated(self) -> dict[str, nn.Module]:
        """Both networks as one."""
        return {"mean_of_both": MeanOfBoth(self.networks)}

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """One step of each network on the samples that the other chose."""
        looks = [self.setup.look(network, batch.inputs, batch.labels) for network in self.networks]
        progress = torch.as_tensor(progress, dtype=torch.float64, device=self.setup.device)
        if self.drop is None:
            self._count(looks[0][0], looks[1][0], batch.labels, progress)
        share = self.dropped(progress)
        chosen = [smallest(losses.detach(), share) for _, losses in reversed(looks)]
        self.note(batch, looks[0][1].detach(), chosen[0])
        for number, ((_, losses), own) in enumerate(zip(looks, chosen, strict=True)):
            self.descend((losses * own).sum() / own.sum(), number)
        return looks[0][1].detach().mean()

    def dropped(self, progress: Tensor) -> Tensor:
        """The share of a batch that is left out at this point of the training."""
        begins = 0.0 if self.drop is not None else self.rise
        final = self.seen[1] / self.seen[0].clamp(min=1e-6) if self.drop is None else self.drop
        return final * ((progress - begins) / self.rise).clamp(0, 1) if self.rise > 0 else final + 0 * progress

    def _count(self, one: Tensor, other: Tensor, labels: Tensor, progress: Tensor) -> None:
        said = one.argmax(dim=-1)
        agreed = said == other.argmax(dim=-1)
        counts = torch.stack([agreed.float().mean(), (agreed & (said != labels)).float().mean()])
        share = min(len(labels) / self.setup.num_samples, 1.0)
        open_still = (progress <= self.rise).float()  # without a rise, the first step tells
        self.seen.lerp_(counts, share * open_still)


class MeanOfBoth(nn.Module):
    """Says the logarithm of the sum of several networks' probabilities: that of their mean, but for a constant."""

    def __init__(self, networks: list[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Probabilities are averaged, so that networks of different scale count the same."""
        outputs = [outputs_of(network(*inputs, **named)).float() for network in self.networks]
        return torch.stack([one.log_softmax(dim=-1) for one in outputs]).logsumexp(dim=0)


def smallest(losses: Tensor, dropped: Tensor) -> Tensor:
    """1 for the samples of the smallest losses, 0 for the share that is dropped; at least one stays."""
    places = torch.arange(len(losses), device=losses.device)
    ranks = torch.empty_like(places).scatter_(0, losses.argsort(stable=True), places)
    count = ((1 - dropped) * len(losses)).round().clamp(min=1)
    return (ranks < count).to(losses.dtype)
