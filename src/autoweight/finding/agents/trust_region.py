"""A Gaussian process inside a trust region, over one theta first and then over a smooth table, by Thompson sampling."""

from typing import Any

import torch
from torch import Tensor

from autoweight.config import SearchConfig
from autoweight.errors import require
from autoweight.finding.agents.agent import TableAgent
from autoweight.finding.gaussian import GaussianProcess
from autoweight.finding.smooth import interpolate
from autoweight.strategy import Rule

_LEAST_RADIUS = 0.04  # of the box: below, nothing is left to find there, and the region begins anew


class TrustRegion(TableAgent):
    """Proposes what is best in draws from a model of all returns, near the best try; worker 0 runs the model's best.

    The region around that try grows where it was left for a better one, and shrinks otherwise, until it is so small
    that it begins anew. As in CMA-ES, the first episodes have one theta for the whole training; what they showed stays
    known when stages part.
    """

    def __init__(self, search: SearchConfig, rule: Rule, num_stages: int, seed: int) -> None:
        require(search.num_workers > 1, "the trust-region agent needs at least 2 workers.")
        self.config = config = search.trust_region
        self.episode_stages, self.warmup_stages = search.episode_stages(num_stages), search.warmup_stages
        self.bounds, self.num_workers, self.num_starts = rule.bounds, search.num_workers, search.num_starts
        self.knots = config.knots if search.stagewise else 1
        self.coarse_episodes = round(config.coarse_share * search.num_episodes) if search.stagewise else 0
        self.generator = torch.Generator().manual_seed(seed)
        self.centre = (rule.place(search.start) / rule.bounds).double().expand(self.knots, -1).clone()
        self.radius = config.radius
        self.episode = 0
        self.points = torch.zeros(0, *self.centre.shape).double()
        self.returns = torch.zeros(0).double()
        self.luck = torch.zeros(0, dtype=torch.long)
        self.model: GaussianProcess | None = None

    def begin_episode(self, progress: float, explore: bool = True) -> None:
        """Draw what is tried: any points of the region at first, and then those that may be best by the model."""
        candidates = self._candidates()
        tries = self.num_workers - 1
        if self.model is None:
            proposed = torch.cat([self.centre[None], candidates[:tries]])
        else:
            mean, covariance = self.model.posterior(candidates)
            chosen = [int(mean.argmax()), *self._thompson(mean, covariance, tries)]
            proposed = candidates[chosen]
        self.proposed = proposed if explore else proposed[:1].expand(self.num_workers, -1, -1)
        knots = self.proposed[:, :1] if self._coarse else self.proposed
        self.tables = interpolate(knots.float() * self.bounds, self.episode_stages, self.warmup_stages)

    def end_episode(self, returns: Tensor) -> None:
        """Fit the model anew and move the region; a training that blew up counts as the worst."""
        self.episode += 1
        if self.episode == self.coarse_episodes:  # from here on stages part, for which there has to be room
            self.radius = max(self.radius, self.config.radius / 2)
        sound = returns.isfinite()
        if not bool(sound.any()):
            return
        returns = torch.where(sound, returns, returns[sound].min()).double()
        newest = -self.config.newest
        starts = torch.arange(self.num_workers) % self.num_starts + self.episode * self.num_starts
        self.points = torch.cat([self.points, self.proposed])[newest:]
        self.returns = torch.cat([self.returns, returns])[newest:]
        self.luck = torch.cat([self.luck, starts])[newest:]
        self._fit()
        self._move()

    @property
    def _coarse(self) -> bool:
        return self.episode < self.coarse_episodes

    def _fit(self) -> None:
        # Returns far below the median are cut off: else they would hide how good tries differ.
        usual = self.returns.median()
        values = self.returns.clamp(min=float(usual - 2 * (self.returns.max() - usual)))
        self.model = GaussianProcess(self.points, values, self.luck)

    def _move(self) -> None:
        """Move to the best try by the model: a success if it beats the centre by more than a deviation of doubt."""
        assert self.model is not None
        mean, _ = self.model.posterior(self.points)
        best = self.points[mean.argmax()]
        (new, old), covariance = self.model.posterior(torch.stack([best, self.centre]))
        doubt = (covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]).clamp(min=0).sqrt()
        self.radius *= self.config.growth if bool(new - old > doubt) else self.config.shrinkage
        self.radius = min(self.radius, 1.0) if self.radius >= _LEAST_RADIUS else self.config.radius
        self.centre = best

    def _candidates(self) -> Tensor:
        """Points of the region, `[candidates, knots, P]`, the first of them its centre.

        The region is longer along parameters on which returns depend less, by the model. Most points lie near the
        centre, and differ from it more by their level than between the knots.
        """
        count, (knots, size) = max(self.config.candidates, self.num_workers), self.centre.shape
        lengths = torch.ones(2, size).double() if self.model is None else self.model.lengths
        levels, own = self.radius * lengths / lengths.log().mean(dim=1, keepdim=True).exp()
        moved = levels * self._uniform(count, 1, size)
        if not self._coarse and knots > 1:
            moved = moved + own / 2 * self._uniform(count, knots, size)
        moved = moved * torch.rand(count, 1, 1, generator=self.generator).double()
        moved[0] = 0
        return (self.centre + moved).clamp(-1, 1)

    def _thompson(self, mean: Tensor, covariance: Tensor, count: int) -> list[int]:
        """The best candidate of each of so many functions drawn from the model, none of them twice."""
        noise = torch.randn(len(mean), count, generator=self.generator).double()
        factor = torch.linalg.cholesky(covariance + 1e-6 * torch.eye(len(mean)).double())
        chosen: list[int] = []
        for drawn in (mean[:, None] + factor @ noise).T:
            drawn[chosen] = float("-inf")
            chosen.append(int(drawn.argmax()))
        return chosen

    def _uniform(self, *shape: int) -> Tensor:
        return 2 * torch.rand(shape, generator=self.generator).double() - 1

    def state_dict(self) -> dict[str, Any]:
        """All tries, the region, and the random state; the model follows from the tries."""
        names = ("points", "returns", "luck", "centre", "radius", "episode", "coarse_episodes")
        return {name: getattr(self, name) for name in names} | {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.generator.set_state(state["generator"])
        for name in state.keys() - {"generator"}:
            setattr(self, name, state[name])
        if len(self.returns):
            self._fit()
