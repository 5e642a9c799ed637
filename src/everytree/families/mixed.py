"""Predictive distributions that are themselves mixtures of a few parts each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray


class MixedComponents:
    """Mixtures of as many parts each.

    Parameters
    ----------
    parts : Components
        n times n_parts distributions, those of one mixture after those of another.
    log_weights : (n, n_parts) float64
        The weights sum to 1 over each mixture.
    """

    lowest = 0.0

    def __init__(self, parts: Any, log_weights: FloatArray) -> None:
        self._parts, self._log_weights, self._weights = parts, log_weights, np.exp(log_weights)
        self.is_discrete = parts.is_discrete

    def apart(self) -> tuple[Any, FloatArray, int]:
        """The parts, the log of the weight of each, and their number in a mixture."""
        return self._parts, self._log_weights.ravel(), self._log_weights.shape[1]

    def mean(self) -> FloatArray:
        return self._average(self._parts.mean())

    def variance(self) -> FloatArray:
        return self._average(self._parts.variance()) + self._between()

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to unknown parameters, which part is the right one among them."""
        known = self._average(self._parts.variance() * (1.0 - self._parts.parameter_share()))
        return np.asarray(1.0 - known / self.variance())

    def _between(self) -> FloatArray:
        """Variance of the means of the parts."""
        means = self._parts.mean().reshape(self._weights.shape)
        away = means - self.mean()[:, None]
        return np.asarray((self._weights * away**2).sum(axis=1))

    def log_prob(self, y: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            values = self._of_parts(self._parts.log_prob(self._spread(y))) + self._log_weights
            top = values.max(axis=1, initial=-np.inf)
            safe = np.where(np.isfinite(top), top, 0.0)
            return np.asarray(safe + np.log(np.exp(values - safe[:, None]).sum(axis=1)))

    def cdf(self, y: FloatArray) -> FloatArray:
        return self._average(self._parts.cdf(self._spread(y)))

    def sf(self, y: FloatArray) -> FloatArray:
        return self._average(self._parts.sf(self._spread(y)))

    def sample(self, rng: np.random.Generator) -> FloatArray:
        drawn = self._of_parts(self._parts.sample(rng))
        upto = np.cumsum(self._weights, axis=1)
        part = (upto < rng.random(len(upto))[:, None] * upto[:, -1:]).sum(axis=1)
        return np.asarray(drawn[np.arange(len(part)), part])

    def _average(self, values: FloatArray) -> FloatArray:
        return np.asarray((self._weights * self._of_parts(values)).sum(axis=1))

    def _of_parts(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(self._weights.shape)

    def _spread(self, values: FloatArray) -> FloatArray:
        return np.repeat(values, self._weights.shape[1])
