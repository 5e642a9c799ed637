"""Failures before the first success, with a beta prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.link import RowData
from everytree.families.prior_search import STRENGTHS, Search, search_for, strengths
from everytree.families.special import log_beta_ratio
from everytree.families.traits import COUNTS, Support


@dataclass(frozen=True, eq=False)
class Geometric(NativeFamily):
    """p(y) = theta (1 - theta)^y for y = 0, 1, 2, ...; theta ~ Beta(alpha, beta).

    y counts the failures before the first success; subtract one from a number of trials. Statistics: weight, sum of y.

    Parameters
    ----------
    alpha, beta : float or (n_nodes,) array_like
    """

    kernel: ClassVar[str] = "geometric"
    support: ClassVar[Support] = COUNTS
    is_scored_by_log: ClassVar[bool] = True
    is_in_browser: ClassVar[bool] = True
    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    alpha: ArrayLike = 1.0
    beta: ArrayLike = 1.0

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search priors around the overall mean, worth `shape` rows; above 2 the variance of a new row is finite."""
        mean = max(float(np.average(y, weights=weight)), 1e-3)

        def make(shape: float) -> Geometric:
            return cls(1.0 + shape, shape * mean)  # the mean of y given theta ~ Beta(a, b) is b / (a - 1)

        return search_for(make, {"shape": 2.0}, given, split_prior, [strengths()], {"shape": STRENGTHS})

    def components(self, summary: FloatArray, **row_data: Any) -> FailureComponents:
        return FailureComponents(summary[:, 0], summary[:, 1])

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        alpha, beta = np.broadcast_to(self.at(nodes).hyper, (len(nodes), 2)).T
        return np.asarray(rng.beta(alpha, beta))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[np.int64]:
        return rng.geometric(np.maximum(theta, 1e-15)) - 1


class FailureComponents:
    """Beta-geometric: p(y) = B(alpha + 1, beta + y) / B(alpha, beta)."""

    is_discrete = True

    def __init__(self, alpha: FloatArray, beta: FloatArray) -> None:
        self._alpha, self._beta = alpha, beta

    def mean(self) -> FloatArray:
        """beta / (alpha - 1), infinite up to alpha = 1."""
        a, b = self._alpha, self._beta
        return np.asarray(np.divide(b, a - 1.0, out=np.full(a.shape, np.inf), where=a > 1.0))

    def variance(self) -> FloatArray:
        """Infinite up to alpha = 2."""
        a, b = self._alpha, self._beta
        top = a * b * (a + b - 1.0)
        return np.asarray(np.divide(top, (a - 1.0) ** 2 * (a - 2.0), out=np.full(a.shape, np.inf), where=a > 2.0))

    def mode(self) -> FloatArray:
        """Probabilities fall from 0 on: p(y + 1) / p(y) = (beta + y) / (alpha + beta + y + 1)."""
        return np.zeros(self._alpha.shape)

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown probability."""
        return 1.0 / self._alpha

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y == np.floor(y)) & (y >= 0) & np.isfinite(y)
        k = np.where(possible, y, 0.0)
        return np.where(possible, log_beta_ratio(self._alpha, self._beta, 1.0, k), -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        return -np.expm1(self._log_sf(y))

    def sf(self, y: FloatArray) -> FloatArray:
        return np.exp(self._log_sf(y))

    def _log_sf(self, y: FloatArray) -> FloatArray:
        """P(Y > y) = E (1 - theta)^(y + 1) = B(alpha, beta + y + 1) / B(alpha, beta)."""
        more = np.floor(np.clip(y, -1.0, 1e300)) + 1.0
        log_sf = log_beta_ratio(self._alpha, self._beta, 0.0, more)
        return np.where(y < 0.0, 0.0, np.where(np.isposinf(y), -np.inf, log_sf))

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        return self._alpha, self._alpha + self._beta + 1.0

    def sample(self, rng: np.random.Generator) -> FloatArray:
        theta = np.maximum(rng.beta(self._alpha, self._beta), 1e-300)
        # The geometric distribution by inversion, in floats: heavy tails reach beyond every integer type.
        return np.floor(np.log(rng.random(theta.shape)) / np.log1p(-np.minimum(theta, 1.0 - 1e-16)))
