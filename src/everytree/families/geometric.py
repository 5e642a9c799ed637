"""Failures before the first success, with a beta prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.families.base import FloatArray, NativeFamily, as_columns, hyperparameter
from everytree.families.special import log_beta_ratio


@dataclass(frozen=True, eq=False)
class Geometric(NativeFamily):
    """p(y) = theta (1 - theta)^y for y = 0, 1, 2, ...; theta ~ Beta(alpha, beta).

    y counts the failures before the first success; subtract one from a number of trials. Statistics: weight, sum of y.

    Parameters
    ----------
    alpha, beta : float or (n_nodes,) array_like
    """

    kernel: ClassVar[str] = "geometric"
    alpha: ArrayLike = 1.0
    beta: ArrayLike = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", hyperparameter("alpha", self.alpha))
        object.__setattr__(self, "beta", hyperparameter("beta", self.beta))
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        return as_columns(alpha=self.alpha, beta=self.beta)  # type: ignore[arg-type]

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        summary = self.summarise(statistics)
        return {"alpha": summary[:, 0], "beta": summary[:, 1]}

    def components(self, summary: FloatArray, **row_data: Any) -> FailureComponents:
        return FailureComponents(summary[:, 0], summary[:, 1])

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        alpha, beta = np.broadcast_to(self.at(nodes)._hyper, (len(nodes), 2)).T
        return np.asarray(rng.beta(alpha, beta))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[np.int64]:
        return rng.geometric(np.maximum(theta, 1e-15)) - 1


class FailureComponents:
    """Beta-geometric: p(y) = B(alpha + 1, beta + y) / B(alpha, beta)."""

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

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y == np.floor(y)) & (y >= 0) & np.isfinite(y)
        k = np.where(possible, y, 0.0)
        return np.where(possible, log_beta_ratio(self._alpha, self._beta, 1.0, k), -np.inf)
