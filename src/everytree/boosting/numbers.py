"""Boosted numbers with full predictive distributions; they have the methods of a forest that predict.

Boosting predicts the centre of each row: a mean, or the logarithm of one. A forest then learns how targets lie about
the centres that chains gave to rows which they had left out, with the centre as one more column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.chains import Likelihood
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.predictive.moved import MovedPredictive
from everytree.predictive.predictive import Predictive
from everytree.tables.schema import Schema

BOOSTED_FAMILIES = ("normal", "lognormal", "poisson", "exponential")


class AboutCentre(NamedTuple):
    """Targets of a family about their centres, by its link.

    With centre c and target y, leaves see y - c (normal), y / e^c (lognormal), y in an exposure times e^c (poisson), or
    y e^c (exponential: c is the logarithm of a rate).
    """

    family: str

    def likelihood(self, rows: Rows) -> Likelihood:
        """Return the targets as scores predict them."""
        y = np.asarray(rows.y, dtype=np.float64)
        if self.family == "poisson":
            return Likelihood("rate", y, rows.row_data.get("exposure"))
        if self.family == "exponential":
            censored = rows.row_data.get("censored", np.zeros(len(y)))
            return Likelihood("rate", np.where(censored > 0.0, 0.0, 1.0), y)
        return Likelihood("squared", np.log(y) if self.family == "lognormal" else y)

    def target(self, y: FloatArray, centre: FloatArray) -> FloatArray:
        """Return the targets as leaves see them."""
        if self.family == "poisson":
            return y
        shift, scale = self.moved_by(centre)
        return np.asarray((y - shift) / scale)

    def row_data(self, row_data: dict[str, NDArray[Any]], centre: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the row data as leaves see them."""
        if self.family != "poisson":
            return row_data
        return {**row_data, "exposure": row_data.get("exposure", np.ones(len(centre))) * np.exp(centre)}

    def centre_of_mean(self, mean: FloatArray) -> FloatArray:
        """Return centres from means of targets, which for lognormal ones are means of logarithms."""
        if self.family in ("normal", "lognormal"):
            return mean
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mean) if self.family == "poisson" else -np.log(mean))

    def moved_by(self, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shift and scale that lead from what leaves see to targets."""
        if self.family == "normal":
            return centre, np.ones(len(centre))
        return np.zeros(len(centre)), np.exp(centre if self.family == "lognormal" else -centre)


class Centres(Protocol):
    """What predicts the centres of rows."""

    def scores(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, 1) centre of each row."""


@dataclass(frozen=True)
class BoostedNumbers:
    """Distributions of numbers about boosted centres.

    Attributes
    ----------
    trees : AdditiveTrees or MixedCentres
        Of centres.
    about : AboutCentre
    centre_codes : Schema
        Of the centre as a column.
    residuals : Forest
        Of targets about their centres; its last column is the centre.
    gains : (n_features,) float64
        Expected gain in log evidence by the splits of the centres on each column.
    split_prior : float
        Of the trees: given or chosen.
    n_steps : list of int
        Of each chain.
    """

    trees: Centres
    about: AboutCentre
    centre_codes: Schema
    residuals: Forest
    gains: FloatArray
    split_prior: float
    n_steps: list[int]

    @property
    def family(self) -> NativeFamily:
        family: NativeFamily = self.residuals.family
        return family

    @property
    def n_rows(self) -> int:
        """Rows that it was fitted to."""
        return int(self.residuals.n_rows)

    def feature_importances(self) -> FloatArray:
        """(n_features,) the gains, scaled to sum to 1."""
        total = self.gains.sum()
        return self.gains / total if total > 0.0 else self.gains.copy()

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target."""
        centre, codes = self._centres(X, n_jobs)
        if self.about.family == "poisson":
            dist = self.predictive(X, n_jobs=n_jobs)
            return dist.mean(), dist.variance()
        mean, variance = self.residuals.moments(codes, n_jobs=n_jobs)
        shift, scale = self.about.moved_by(centre)
        return shift + scale * mean, scale**2 * variance

    def means(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows,) mean of each row's target, of counts in one unit of exposure: without their variances, faster."""
        centre, codes = self._centres(X, n_jobs)
        mean, _ = self.residuals.moments(codes, n_jobs=n_jobs)
        if self.about.family == "poisson":  # means are proportional to exposures
            return np.asarray(np.exp(centre) * mean)
        shift, scale = self.about.moved_by(centre)
        return np.asarray(shift + scale * mean)

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row."""
        centre, codes = self._centres(X, n_jobs)
        dist = self.residuals.predictive(codes, n_jobs=n_jobs, **self.about.row_data(row_data, centre))
        return dist if self.about.family == "poisson" else MovedPredictive(dist, *self.about.moved_by(centre))

    def _centres(self, X: NDArray[Any], n_jobs: int | None) -> tuple[FloatArray, NDArray[Any]]:
        centre = self.trees.scores(X, n_jobs=n_jobs)[:, 0]
        return centre, with_centre(X, centre, self.centre_codes)


def with_centre(codes: NDArray[Any], centre: FloatArray, centre_codes: Schema) -> NDArray[Any]:
    """Codes with those of the centre as one more column."""
    own = centre_codes.encode(centre[:, None])
    return np.ascontiguousarray(np.concatenate([codes, own.astype(codes.dtype)], axis=1))
