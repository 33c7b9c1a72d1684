"""mwnet: a small network learns from trusted samples which loss deserves which weight.

Idea    A weight net of one hidden layer turns a sample's loss into its weight in (0, 1). At every step the training's
        network takes a trial step with those weights; how the loss of trusted samples then depends on the weight net's
        parameters is the gradient that the weight net learns by.
Source  Shu et al., Meta-Weight-Net: learning an explicit mapping for sample weighting, NeurIPS 2019.
Told    Trusted samples, at most 1,000.
Knobs   hidden: the weight net's hidden units; rate: its learning rate (Adam); trusted: how many samples of the
        validation set it may learn from, 0 for all; trusted_batch: how many of them a step takes, 0 for the training's
        batch size; exact: take the step with the weights after the weight net's own, as published; normalise: scale a
        batch's weights to a mean of 1, lest the weight net learn first of all that larger steps are better.
Cost    A forward and a backward pass for the trusted batch, and a forward-mode pass: about 3 plain steps, by processor
        time 3.4 to 3.6 (docs/rivals.md); with exact, a forward and a backward pass more. In bfloat16 a forward pass
        stands for the forward-mode one.

The gradient of the trusted loss after the trial step is a sum over samples: the dot product of the trusted gradient
there with the sample's own gradient here, times the gradient of its weight. Forward-mode differentiation gives all dot
products in one pass, without second derivatives. The trial step is plain SGD with the training's learning rate. Unless
`exact`, its gradient is also that of the real step: the weight net's step shows in the next batch's weights.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from autoweight.data.loader import Batch
from autoweight.errors import require
from autoweight.methods.look_ahead import LookAhead
from autoweight.methods.method import Setup, trainable


class MWNet(LookAhead):
    """Weights from a network that learns by looking ahead."""

    def __init__(
        self,
        hidden: int = 100,
        rate: float = 1e-3,
        trusted: int = 1000,
        trusted_batch: int = 0,
        exact: bool = False,
        normalise: bool = False,
    ) -> None:
        super().__init__("mwnet", trusted, trusted_batch)
        require(hidden >= 1, f"mwnet.hidden is a number of units, at least 1, but is {hidden}.")
        require(rate > 0, f"mwnet.rate is a learning rate above 0, but is {rate}.")
        self.hidden, self.rate, self.exact, self.normalise = hidden, rate, exact, normalise

    def begin(self, setup: Setup) -> None:
        """Make the weight net, whose start the training's seed fixes."""
        super().begin(setup)
        layers = nn.Linear(1, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1), nn.Sigmoid(), nn.Flatten(0)
        weight_net = nn.Sequential(*layers).to(setup.device)
        on_gpu = setup.device.type == "cuda"
        self.networks.append(weight_net)
        self.optimizers.append(torch.optim.Adam(weight_net.parameters(), self.rate, fused=on_gpu, capturable=on_gpu))

    def scheduled(self) -> list[torch.optim.Optimizer]:
        """The weight net keeps its learning rate."""
        return self.optimizers[:1]

    def step(self, batch: Batch, progress: float | Tensor, trusted: Batch | None = None) -> Tensor:
        """A trial step, a step of the weight net, and a step of the network."""
        model, setup = self.networks[0], self.setup
        losses, gradient = self._trial(batch)
        self.note(batch, losses, self.weigh(losses).detach())
        self._learn_to_weigh(batch, losses, gradient, trusted)
        if self.exact:
            _, again = setup.look(model, batch.inputs, batch.labels)
            self.descend(setup.mean(again, self.weigh(losses).detach(), batch.labels))
        else:
            self.optimizers[0].step()
        return setup.mean(losses, None, batch.labels)

    def weigh(self, losses: Tensor) -> Tensor:
        """The weight of each loss of a batch, with its gradient to the weight net."""
        weights: Tensor = self.networks[1](losses.unsqueeze(-1))
        return weights / weights.mean().clamp(min=1e-12) if self.normalise else weights

    def _trial(self, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """Losses, and the gradient of the trial step; unless exact, of the real step, too."""
        model, setup, params = self.networks[0], self.setup, trainable(self.networks[0])
        if self.exact:
            losses = setup.ahead(model, batch.inputs, batch.labels, params)
        else:
            _, losses = setup.look(model, batch.inputs, batch.labels)
        self.optimizers[0].zero_grad(set_to_none=True)
        setup.mean(losses, self.weigh(losses.detach()).detach(), batch.labels).backward()
        gradient = [torch.zeros_like(param) if param.grad is None else param.grad for param in params]
        return losses.detach(), gradient

    def _learn_to_weigh(self, batch: Batch, losses: Tensor, gradient: Sequence[Tensor], trusted: Batch | None) -> None:
        """One step of the weight net, on what the trial step did to the trusted loss."""
        model, rate = self.networks[0], self.optimizers[0].param_groups[0]["lr"]
        here = trainable(model)
        there = [param.detach() - rate * own for param, own in zip(here, gradient, strict=True)]
        slopes = self.setup.slopes(model, batch.inputs, batch.labels, self.trusted_gradient(trusted, there), losses)
        self.descend(-rate * (slopes * self.weigh(losses)).mean(), number=1)
