"""A Gaussian process over smooth tables: a table's return, apart from the luck of its training and of its start."""

from math import log, sqrt

import torch
from torch import Tensor

# Where the settings are looked for, as natural logarithms: prior mean and deviation of a length (the box goes from -1
# to 1), and of the deviations of what is modelled, of a try's own luck, and of the luck that tries of a start share.
LENGTH, SIGNAL, OWN_LUCK, SHARED_LUCK = (0.0, 0.5), (0.0, 0.5), (log(0.3), 1.0), (log(0.3), 1.0)
FIT_STEPS = 60


class GaussianProcess:
    """Matern-5/2, with a length for each parameter's level and one for how it differs between the knots.

    Tries that share a start share its luck, which is modelled apart from what their tables are worth.
    """

    def __init__(self, points: Tensor, values: Tensor, starts: Tensor) -> None:
        """Fit to points `[n, knots, P]` in the box from -1 to 1, their values `[n]`, and which start each had `[n]`.

        The settings are those that, with their prior, explain the values best. They do not depend on earlier fits.
        """
        self.points = points
        self.values = (values - values.mean()) / values.std(correction=0).clamp(min=1e-12)
        self.same_start = (starts[:, None] == starts).double()
        self.priors = torch.tensor([LENGTH] * 2 * points.shape[-1] + [SIGNAL, OWN_LUCK, SHARED_LUCK]).double()
        self.settings = self._fitted(_distances(points, points))
        self.lengths = self.settings[:-3].view(2, -1)
        """Of the levels and of the differences between knots, `[2, P]`."""
        self.factor = self._factor(self.settings, _distances(points, points))

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `[m]` and covariance `[m, m]` of these tables' returns without luck, in standard deviations."""
        known = _matern(self.settings, _distances(self.points, points))
        mean = known.T @ torch.cholesky_solve(self.values[:, None], self.factor)
        explained = torch.linalg.solve_triangular(self.factor, known, upper=False)
        return mean[:, 0], _matern(self.settings, _distances(points, points)) - explained.T @ explained

    def _fitted(self, distances: Tensor) -> Tensor:
        """The most probable settings, given their prior and the values: found by gradient descent on their logs."""
        mean, deviation = self.priors.unbind(dim=1)
        logs = mean.clone().requires_grad_()
        optimizer = torch.optim.Adam([logs], lr=0.1)
        for _ in range(FIT_STEPS):
            factor = self._factor(logs.exp(), distances)
            residual = torch.linalg.solve_triangular(factor, self.values[:, None], upper=False)
            surprise = residual.square().sum() / 2 + factor.diagonal().log().sum()
            loss = surprise + ((logs - mean) / deviation).square().sum() / 2
            (logs.grad,) = torch.autograd.grad(loss, [logs])
            optimizer.step()
        return logs.detach().exp()

    def _factor(self, settings: Tensor, distances: Tensor) -> Tensor:
        """The Cholesky factor of the values' covariance, luck included."""
        own, shared = settings[-2:].square()
        luck = (own + 1e-6) * torch.eye(len(self.values), dtype=torch.float64) + shared * self.same_start
        factor: Tensor = torch.linalg.cholesky(_matern(settings, distances) + luck)
        return factor


def _distances(some: Tensor, others: Tensor) -> Tensor:
    """Squared distances `[2 P, n, m]`: of each parameter's level, and of its differences from it over the knots."""
    return torch.cdist(_parts(some), _parts(others), compute_mode="donot_use_mm_for_euclid_dist").square()


def _parts(points: Tensor) -> Tensor:
    """Each parameter's mean over the knots, and its differences from that, `[2 P, n, knots]`."""
    level = points.mean(dim=1, keepdim=True)
    both = torch.cat([level.expand_as(points), points - level], dim=2) / sqrt(points.shape[1])
    return both.permute(2, 0, 1)


def _matern(settings: Tensor, distances: Tensor) -> Tensor:
    squared = 5 * (distances / settings[:-3, None, None].square()).sum(dim=0)
    root = (squared + 1e-12).sqrt()
    return settings[-3].square() * (1 + root + squared / 3) * (-root).exp()
