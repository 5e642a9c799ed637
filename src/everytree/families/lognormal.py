"""Positive targets whose logarithm is normal: prices, sizes, concentrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.link import AddedToLogarithm, Link, RowData
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, search_for, variance_about
from everytree.families.student import LogStudentMixtures, Students
from everytree.families.traits import POSITIVE, Support


@dataclass(frozen=True, eq=False)
class LogNormal(NativeFamily):
    """log y ~ N(mu, sigma^2) with a known sigma; mu ~ N(mean, sigma^2 / strength).

    The spread of the logarithm is one number for all leaves, which estimators choose on rows that trees were not
    grown on (exact and sampled ones by a tree that is grown for this alone). That keeps the mean, the variance and the
    CRPS of a prediction finite: with an unknown spread the logarithm would follow Student's t, and a target whose
    logarithm does has none of them.

    Statistics: weight, sum of log y and sum of (log y)^2, each as a pair (value, rest) of about 32 digits.

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
        Prior mean of the logarithm.
    strength : float or (n_nodes,) array_like
        How many rows the prior mean is worth.
    sigma : float or (n_nodes,) array_like
        Standard deviation of the logarithm.

    Examples
    --------
    >>> import everytree as et
    >>> et.LogNormal(0.0, 1.0, 0.5).predictive([[0.0] * 6]).mean().round(4)  # exp(0.5 * 0.25 * 2)
    array([1.284])
    """

    kernel: ClassVar[str] = "lognormal"
    support: ClassVar[Support] = POSITIVE
    never_negative: ClassVar[tuple[int, ...] | None] = (0,)
    grows_standardised: ClassVar[bool] = True
    has_one_noise: ClassVar[bool] = True
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = AddedToLogarithm()
    hyperparameters: ClassVar[tuple[str, ...]] = ("mean", "strength", "sigma")
    mean: ArrayLike = 0.0
    strength: ArrayLike = 1.0
    sigma: ArrayLike = 1.0

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search `noise`, the variance of log y in a leaf as a share of that in the table, and `strength`, in rows."""
        logs = np.log(y)
        mean = float(np.average(logs, weights=weight))
        variance = variance_about(mean, logs, weight)

        def make(strength: float, noise: float) -> LogNormal:
            return cls(mean, strength, np.sqrt(noise * variance))

        ladder = [1e-6, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.3, 2.0, 4.0]
        stages: list[dict[str, Sequence[float]]] = [
            {"noise": (0.03, 0.1, 0.3, 0.8), "split_prior": SPLIT_PRIORS},
            {"strength": (0.03, 0.1, 0.3, 1.0)},
            {"noise": (0.06, 0.2, 0.5, 1.0), "split_prior": SPLIT_PRIORS},
        ]
        ladders = {"noise": ladder, "strength": STRENGTHS}
        return search_for(make, {"strength": 0.1, "noise": 0.3}, given, split_prior, stages, ladders)

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Logarithms of the targets."""
        return np.log(y), weight

    def components(self, summary: FloatArray, **row_data: Any) -> LogNormalComponents:
        mean, strength, sigma = summary.T
        return LogNormalComponents(mean, sigma, sigma / np.sqrt(strength))

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, 2): mu and sigma."""
        mean, strength, sigma = np.broadcast_to(self.at(nodes).hyper, (len(nodes), 3)).T
        return np.stack([rng.normal(mean, sigma / np.sqrt(strength)), sigma], axis=1)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        return np.exp(rng.normal(theta[:, 0], theta[:, 1]))


class LogNormalComponents:
    """log y ~ N(location, sigma^2 + unsure^2), where `unsure` is the standard deviation of the unknown location."""

    is_discrete = False
    lowest = 0.0

    def __init__(self, location: FloatArray, sigma: FloatArray, unsure: FloatArray) -> None:
        self._location, self._unsure = location, unsure
        self._scale = np.hypot(sigma, unsure)

    def mean(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(self._location + 0.5 * self._scale**2)

    def variance(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(self._scale**2) * np.exp(2.0 * self._location + self._scale**2))

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown location."""
        more = self._scale**2 - self._unsure**2  # the ratio of two expm1, without their overflow
        return np.asarray(np.exp(-more) * np.expm1(-(self._unsure**2)) / np.expm1(-(self._scale**2)))

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y > 0.0) & np.isfinite(y)
        logs = np.log(np.where(possible, y, 1.0))
        squared = ((logs - self._location) / self._scale) ** 2
        return np.where(possible, -0.5 * squared - np.log(self._scale) - 0.5 * np.log(2.0 * np.pi) - logs, -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        return np.asarray(ndtr(self._standardised(y)))

    def sf(self, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(log_ndtr(-self._standardised(y))))

    def quantile(self, p: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(self._location + self._scale * ndtri(p))

    def as_students(self) -> Students:
        """The logarithms: normal distributions."""
        location, scale = (np.ascontiguousarray(part) for part in (self._location, self._scale))
        return Students(np.full(len(scale), np.inf), location, np.zeros(len(scale)), scale, is_log=True)

    def mixture_kernel(self, start: NDArray[np.int64], weights: FloatArray) -> LogStudentMixtures:
        """Tails of mixtures at many points; see everytree.predictive.mixture."""
        return LogStudentMixtures(start, weights, self.as_students())

    def place(self) -> tuple[FloatArray, FloatArray]:
        """Location and scale of each distribution."""
        with np.errstate(over="ignore"):
            middle = np.exp(self._location)
            return middle, middle * np.minimum(self._scale, 1.0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return np.exp(rng.normal(self._location, self._scale))

    def _standardised(self, y: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray((np.log(np.maximum(y, 0.0)) - self._location) / self._scale)
