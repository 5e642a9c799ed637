"""Normal targets with unknown mean and variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.link import Added, Link, RowData
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, rounding, search_for, variance_about
from everytree.families.student import StudentComponents


@dataclass(frozen=True, eq=False)
class Normal(NativeFamily):
    """y ~ N(mu, 1 / tau); mu given tau ~ N(mean, 1 / (strength tau)); tau ~ Gamma(shape, rate=scale).

    Statistics: weight, sum of y and sum of y^2, each as a pair (value, rest) of about 32 digits, so that a spread of 1
    around 1e9 is not lost, whatever the weights.

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
    strength : float or (n_nodes,) array_like
        How many rows the prior mean is worth.
    shape, scale : float or (n_nodes,) array_like
        Parameters of the inverse-gamma prior of the variance.
    """

    kernel: ClassVar[str] = "normal"
    never_negative: ClassVar[tuple[int, ...] | None] = (0,)
    is_in_browser: ClassVar[bool] = True
    grows_standardised: ClassVar[bool] = True
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = Added()
    hyperparameters: ClassVar[tuple[str, ...]] = ("mean", "strength", "shape", "scale")
    mean: ArrayLike = 0.0
    strength: ArrayLike = 1.0
    shape: ArrayLike = 1.0
    scale: ArrayLike = 1.0

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search `noise`, the expected variance in a leaf as a share of that of y; `strength` and `shape`, in rows."""
        mean = float(np.average(y, weights=weight))
        variance = variance_about(mean, y, weight)

        def make(strength: float, shape: float, noise: float) -> Normal:
            return cls(mean, strength, shape, max(shape - 1.0, 0.5) * noise * variance)

        floor = rounding(y, weight) ** 2 / 12.0 / variance
        shares = [1e-6, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 0.8, 1.0, 1.3, 2.0, 4.0]
        ladder = [share for share in shares if share > min(floor, 0.5)]
        first = next(share for share in ladder if share >= 0.1)
        noise = [share for share in ladder if 0.003 <= share <= 0.8]
        stages: list[dict[str, Sequence[float]]] = [
            {"noise": noise[::2] if len(noise) > 2 else noise, "split_prior": SPLIT_PRIORS},
            {"strength": (0.03, 0.3)},
            {"shape": (1.25, 4.0)},
            {"noise": noise[1::2] or noise, "split_prior": SPLIT_PRIORS},
        ]
        ladders = {"noise": ladder, "strength": STRENGTHS}
        return search_for(make, {"strength": 0.1, "shape": 2.0, "noise": first}, given, split_prior, stages, ladders)

    def additive(self, statistics: FloatArray) -> FloatArray:
        """The weight, and the sums of y - m and of (y - m)**2 about the prior mean m."""
        mean, strength, _, scale, mean_rest = self.summarise(statistics).T
        prior_mean, _, _, prior_scale = self.hyper[0]
        first = (mean - prior_mean + mean_rest) * strength
        second = 2.0 * (scale - prior_scale) + first**2 / strength
        return np.stack([statistics[:, 0], first, second], axis=1)

    def components(self, summary: FloatArray, **row_data: Any) -> StudentComponents:
        mean, strength, shape, scale, mean_rest = summary.T
        scale_squared = scale / shape * (1.0 + 1.0 / strength)
        return StudentComponents(2.0 * shape, (mean, mean_rest), scale_squared, 1.0 / (1.0 + strength))

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, 2): mu and tau."""
        mean, strength, shape, scale = np.broadcast_to(self.at(nodes).hyper, (len(nodes), 4)).T
        tau = rng.gamma(shape, 1.0 / scale)
        return np.stack([rng.normal(mean, 1.0 / np.sqrt(strength * tau)), tau], axis=1)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        return rng.normal(theta[:, 0], 1.0 / np.sqrt(theta[:, 1]))
