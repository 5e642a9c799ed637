"""Student's t, the predictive of both families with an unknown variance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.families.special import log_rising

FAR = 1e100
"""Distance in scales from which a tail equals its power law to the last digit; its square is still finite."""


class Students(NamedTuple):
    """Arrays of t distributions as the kernels take them, of targets or of their logarithms.

    Infinite degrees of freedom stand for the normal distribution; the location is a pair (value, rest).
    """

    freedom: FloatArray
    location: FloatArray
    location_rest: FloatArray
    scale: FloatArray
    is_log: bool


class LogStudentMixtures:
    """Mixtures of distributions whose logarithms are Student's t, one after another from each `start` on."""

    def __init__(self, start: NDArray[np.int64], weights: FloatArray, logs: Students) -> None:
        self._kernel = _kernels.StudentMixtures(
            start=start, weight=weights, freedom=logs.freedom, location=logs.location, scale=logs.scale
        )

    def tails(
        self, unit: NDArray[np.int64], y: FloatArray, is_above: NDArray[np.bool_], n_jobs: int
    ) -> NDArray[np.float64]:
        """P(Y > y) of a unit where `is_above`, else P(Y <= y), point by point."""
        with np.errstate(divide="ignore"):
            return self._kernel.tails(unit, np.log(np.maximum(y, 0.0)), is_above, n_jobs)


class StudentComponents:
    """y = location + sqrt(scale_squared) * t with the given degrees of freedom.

    The location is a pair (value, rest): near 1e9 a double leaves out up to 1e-7, which changes densities.
    """

    is_discrete = False

    def __init__(
        self,
        freedom: FloatArray,
        location: tuple[FloatArray, FloatArray],
        scale_squared: FloatArray,
        parameter_share: FloatArray,
    ) -> None:
        self._freedom, self._scale_squared = freedom, scale_squared
        self._location, self._location_rest = location
        self._parameter_share = parameter_share

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown location."""
        return self._parameter_share

    def mean(self) -> FloatArray:
        """The location; undefined (NaN) up to one degree of freedom."""
        return np.where(self._freedom > 1.0, self._location, np.nan)

    def mean_less(self, centre: FloatArray | float) -> FloatArray:
        """The mean less numbers near it, to all digits."""
        return (self.mean() - centre) + self._location_rest

    def variance(self) -> FloatArray:
        """Infinite up to two degrees of freedom."""
        factor = np.divide(
            self._freedom, self._freedom - 2.0, out=np.full(self._freedom.shape, np.inf), where=self._freedom > 2.0
        )
        return np.asarray(self._scale_squared * factor)

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = np.isfinite(y)
        squared = self._away(np.where(possible, y, 0.0)) ** 2 / self._scale_squared
        log_prob = self._log_top - (0.5 * self._freedom + 0.5) * np.log1p(squared / self._freedom)
        return np.where(possible, log_prob, -np.inf)

    @cached_property
    def _log_top(self) -> FloatArray:
        """The log density at the location."""
        log_scale = 0.5 * np.log(np.pi * self._freedom * self._scale_squared)
        return np.asarray(log_rising(0.5 * self._freedom, 0.5) - log_scale)

    def cdf(self, y: FloatArray) -> FloatArray:
        return _lower_tail(self._freedom, self._standardised(y))

    def sf(self, y: FloatArray) -> FloatArray:
        return _lower_tail(self._freedom, -self._standardised(y))

    def quantile(self, p: FloatArray) -> FloatArray:
        # The smaller tail has all the digits; the other one is its mirror image.
        tail = stdtrit(self._freedom, np.minimum(p, 1.0 - p))
        return np.asarray(self._location + np.sqrt(self._scale_squared) * np.where(p > 0.5, -tail, tail))

    # Mixtures of these, many at a time; see everytree.predictive.mixture.

    def mixture_quantile(self, start: NDArray[np.int64], weights: FloatArray, p: FloatArray) -> FloatArray:
        return _kernels.student_quantiles(start=start, **self._parts(weights), p=_plain(p), n_jobs=1)[:, 0]

    def mixture_kernel(self, start: NDArray[np.int64], weights: FloatArray) -> _kernels.StudentMixtures:
        return _kernels.StudentMixtures(start=start, **self._parts(weights))

    def as_students(self) -> Students:
        freedom, location, scale = (_plain(part) for part in (self._freedom, *self.place()))
        return Students(freedom, location, _plain(self._location_rest), scale, is_log=False)

    def extra_distance(self, y: FloatArray, origin: FloatArray) -> FloatArray:
        """E|Y - y| - E|Y - origin|, which exists whether or not there is a mean.

        Its closed form divides by freedom - 1; where that is 0, the limit is its value at the next number.
        """
        freedom = np.where(self._freedom == 1.0, np.nextafter(1.0, 2.0), self._freedom)
        parts = self._parts(np.ones(len(y))) | {"freedom": _plain(freedom)}
        kernel = _kernels.StudentMixtures(start=np.arange(len(y) + 1), **parts)
        return kernel.extra_distances(_plain(y), _plain(origin), 1)

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of both tails and a size: they fall off as |y|^-index far more than that size from the location."""
        return self._freedom, np.sqrt(self._freedom * self._scale_squared)

    def place(self) -> tuple[FloatArray, FloatArray]:
        """Location and scale of each distribution."""
        return self._location, np.sqrt(self._scale_squared)

    def _parts(self, weights: FloatArray) -> dict[str, FloatArray]:
        """The entries of the kernels' mixtures."""
        scale = np.sqrt(self._scale_squared)
        parts = {"weight": weights, "freedom": self._freedom, "location": self._location, "scale": scale}
        return {name: _plain(part) for name, part in parts.items()}

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return np.asarray(self._location + np.sqrt(self._scale_squared) * rng.standard_t(self._freedom))

    def _standardised(self, y: FloatArray) -> FloatArray:
        return np.asarray(self._away(y) / np.sqrt(self._scale_squared))

    def _away(self, y: FloatArray) -> FloatArray:
        """y - location; the difference of two doubles near each other is exact."""
        return (y - self._location) - self._location_rest


def _lower_tail(freedom: FloatArray, t: FloatArray) -> FloatArray:
    """P(T <= t); beyond `FAR` by the power law of the tail."""
    tail = np.asarray(stdtr(freedom, np.maximum(t, -FAR)))
    is_far = t < -FAR
    if is_far.any():
        tail[is_far] *= (t[is_far] / -FAR) ** -freedom[is_far]
    return tail


def _plain(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)
