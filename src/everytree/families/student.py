"""Student's t, the predictive of both families with an unknown variance."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from everytree.families.base import FloatArray


class StudentComponents:
    """y = location + sqrt(scale_squared) * t with the given degrees of freedom."""

    def __init__(self, freedom: FloatArray, location: FloatArray, scale_squared: FloatArray) -> None:
        self._freedom, self._location, self._scale_squared = freedom, location, scale_squared

    def mean(self) -> FloatArray:
        """The location; undefined (NaN) up to one degree of freedom."""
        return np.where(self._freedom > 1.0, self._location, np.nan)

    def variance(self) -> FloatArray:
        """Infinite up to two degrees of freedom."""
        factor = np.divide(
            self._freedom,
            self._freedom - 2.0,
            out=np.full(self._freedom.shape, np.inf),
            where=self._freedom > 2.0,
        )
        return np.asarray(self._scale_squared * factor)

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = np.isfinite(y)
        half = 0.5 * self._freedom
        squared = (np.where(possible, y, 0.0) - self._location) ** 2 / self._scale_squared
        log_prob = (
            gammaln(half + 0.5) - gammaln(half) - 0.5 * np.log(np.pi * self._freedom * self._scale_squared)
            - (half + 0.5) * np.log1p(squared / self._freedom)
        )  # fmt: skip
        return np.where(possible, log_prob, -np.inf)
