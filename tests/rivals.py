"""What the seams have to carry, in miniature: rivals that look ahead, train two networks or keep counts; a network.

And ways to begin or finish a training by a rival of the package.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

import autoweight as aw
from autoweight.config import TrainingConfig
from autoweight.data.corruptions import uniform_noise
from autoweight.data.loader import Batch, Loader
from autoweight.methods.method import Method
from autoweight.training.ahead import losses_at, slopes_along
from autoweight.training.loop import Training, train
from autoweight.training.steps import Slot

from .conftest import make_blobs

CONFIG = TrainingConfig(epochs=12, batch_size=16, num_stages=3, drop_stages=(), learning_rate=0.05)


class LookAhead(Method):
    """A sample counts by how much a step on it alone would lower the loss of trusted ones."""

    uses_trusted = True

    def __init__(self, rate: float = 0.1) -> None:
        self.rate, self.prepared = rate, 0

    def begin(self, setup):
        super().begin(setup)
        self.mean_weight = torch.zeros(setup.num_samples, device=setup.device)

    def prepare(self):
        self.prepared += 1
        self.mean_weight.fill_(1.0)

    def tensors(self):
        return {"mean_weight": self.mean_weight}

    def step(self, batch, progress, trusted=None):
        (model,), setup = self.networks, self.setup
        weights = self._weights(model, batch, trusted)
        kept = self.mean_weight[batch.indices]
        self.mean_weight[batch.indices] = torch.lerp(kept, weights, 0.3)
        _, losses = setup.look(model, batch.inputs, batch.labels)
        self.descend(setup.mean(losses, weights, batch.labels))
        return setup.mean(losses.detach(), None, batch.labels)

    def _weights(self, model: nn.Module, batch, trusted) -> Tensor:
        """The gradient of the trusted loss, after a step, to the weights that the step had: all 0."""
        setup, params = self.setup, dict(model.named_parameters())
        weights = torch.zeros(len(batch.labels), device=setup.device, requires_grad=True)
        losses = setup.losses(functional_call(model, params, (batch.inputs,)), batch.labels)
        gradients = torch.autograd.grad((weights * losses).sum(), list(params.values()), create_graph=True)
        pairs = zip(params.items(), gradients, strict=True)
        ahead = {name: param - self.rate * gradient for (name, param), gradient in pairs}
        outputs = functional_call(model, ahead, (trusted.inputs,))
        (gain,) = torch.autograd.grad(setup.losses(outputs, trusted.labels).mean(), weights)
        helpful = (-gain).clamp(min=0)
        return helpful * len(helpful) / helpful.sum().clamp(min=1e-12)


class Twins(Method):
    """Two networks, each taught by the half of the batch that the other finds easier."""

    def begin(self, setup):
        super().begin(setup)
        self.networks.append(setup.make_model())
        self.optimizers.append(setup.make_optimizer(self.networks[1]))

    def step(self, batch, progress, trusted=None):
        looks = [self.setup.look(network, batch.inputs, batch.labels)[1] for network in self.networks]
        easier = [losses.detach().argsort()[: len(losses) // 2] for losses in reversed(looks)]
        for number, (losses, chosen) in enumerate(zip(looks, easier, strict=True)):
            self.descend(losses[chosen].mean(), number)
        return looks[0].detach().mean()

    def evaluated(self):
        return {"twin": self.networks[1]}


class Rationed(aw.Weigher):
    """A class counts less the more often it was seen; the counts are tensors that it names."""

    capturable = True

    def reserve(self, num_samples, num_classes, device):
        self.seen = torch.zeros(num_classes, device=device)

    def tensors(self):
        return {"seen": self.seen}

    @torch.no_grad()
    def weigh(self, losses, logits, labels, progress, indices=None):
        self.seen.index_add_(0, labels, torch.ones_like(losses))
        return (self.seen.mean() / self.seen.clamp(min=1))[labels]


class WithScratch(nn.Linear):
    """A network with a running mean in a buffer that no state_dict has."""

    def __init__(self) -> None:
        super().__init__(2, 3)
        self.register_buffer("mean", torch.zeros(2), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.mean.lerp_(inputs.detach().mean(dim=0), 0.3)
        return super().forward(inputs - self.mean)


def with_norm(outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, outputs))


def double_losses(outputs, labels):
    return cross_entropy(outputs, labels, reduction="none")


def batch_of(samples, count=16, start=0):
    rows = torch.arange(start, start + count)
    return Batch(samples.inputs[rows], samples.labels[rows], rows)


def begun(method, make_model=with_norm, config=CONFIG, noise=0.6):
    """A method with a network in double precision, so that small differences can be told from rounding."""
    samples = uniform_noise(make_blobs(64), noise, seed=1)
    torch.manual_seed(3)
    slot = Slot(make_model(), Loader(samples, 16, seed=0), method, config, make_model=make_model)
    for network in method.networks:
        network.double().train()
    method.setup = replace(
        method.setup,
        look=lambda model, inputs, labels: (lambda out: (out.detach(), double_losses(out, labels)))(model(inputs)),
        ahead=lambda model, inputs, labels, params: losses_at(model, inputs, labels, params, double_losses),
        slopes=lambda model, inputs, labels, along: slopes_along(model, inputs, labels, along, double_losses),
    )
    samples = replace(samples, inputs=samples.inputs.double())
    trusted = replace(make_blobs(32, seed=9), inputs=make_blobs(32, seed=9).inputs.double())
    return slot, batch_of(samples), batch_of(trusted)


def trained(method, make_model=with_norm, noise=0.6, count=240, **changes):
    """A training on blobs of which so many labels were redrawn."""
    noisy = uniform_noise(make_blobs(count), noise, seed=1)
    training = Training(make_model, noisy, make_blobs(60, seed=9), method, seed=2, name="mine")
    (one,) = train([training], replace(CONFIG, **changes)).trained
    assert one.failure == ""
    return one.slot, noisy
