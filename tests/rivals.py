"""What the seams have to carry, in miniature: rivals that look ahead, train two networks or keep counts; a network."""

import torch
from torch import Tensor, nn
from torch.func import functional_call

import autoweight as aw
from autoweight.methods.method import Method


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
