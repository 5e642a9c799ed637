"""Link functions of boosted numbers: from the centre, which a sum of trees predicts, to the distribution of the target.

A boosted model of numbers predicts the centre of each row: a mean, or the logarithm of one. A forest then models the
residuals, and its predictive distributions are shifted and scaled by the centre.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray

RowData = Mapping[str, NDArray[Any]]


class Link(ABC):
    """Link between centres and targets: with centre c, a target has the mean of a leaf times exp(sign * c)."""

    sign: ClassVar[int] = 0  # 0 where the centre is added to the mean instead
    averages_logs: ClassVar[bool] = False  # whether trees that average targets see their logarithms
    in_exposure: ClassVar[bool] = False  # whether leaves see the centre as a factor of the exposure
    # whether the variance of a target given its leaf's parameters is the mean, as that of Poisson counts is
    noise_is_mean: ClassVar[bool] = False
    # Whether distributions are moved by the centre. If not, it is a column of the trees of the leaves and no more.
    is_moved: ClassVar[bool] = True
    # family of the forest whose means ensembles mix with boosted centres; that of the targets where it is empty
    forest_family: ClassVar[str] = ""

    @abstractmethod
    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        """Loss of the scores, its targets and their exposures."""

    def to_leaf(self, y: FloatArray, centre: FloatArray) -> FloatArray:
        """Residuals: targets relative to their centres, as leaves count them."""
        shift, scale = self.shift_and_scale(centre)
        return np.asarray((y - shift) / scale)

    def row_data_of_leaf(self, row_data: RowData, centre: FloatArray) -> dict[str, NDArray[Any]]:
        """Row data of the residuals."""
        del centre
        return dict(row_data)

    def shift_and_scale(self, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shift and scale that turn a residual into a target."""
        return np.zeros(len(centre)), np.exp(self.sign * centre)

    def centre_of(self, mean: FloatArray) -> FloatArray:
        """Centres from what trees average: means, or means of logarithms."""
        if self.averages_logs or not self.sign:
            return mean
        with np.errstate(divide="ignore"):
            return np.asarray(self.sign * np.log(mean))


class Added(Link):
    """y = c + residual."""

    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        return "squared", y, None

    def shift_and_scale(self, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        return centre, np.ones(len(centre))


class AsColumn(Link):
    """y is near c; leaves see y itself, in trees that have c as a column."""

    is_moved = False
    forest_family = "normal"

    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        return "squared", y, None

    def to_leaf(self, y: FloatArray, centre: FloatArray) -> FloatArray:
        return y


class AddedToLogarithm(Link):
    """y = exp(c) times residual."""

    sign = 1
    averages_logs = True
    forest_family = "normal"

    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        return "squared", np.log(y), None


class LogRateOfCounts(Link):
    """y is a count in an exposure that is exp(c) times as large for the leaf."""

    sign = 1
    in_exposure = True
    noise_is_mean = True
    is_moved = False

    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        return "rate", y, row_data.get("exposure")

    def to_leaf(self, y: FloatArray, centre: FloatArray) -> FloatArray:
        return y

    def row_data_of_leaf(self, row_data: RowData, centre: FloatArray) -> dict[str, NDArray[Any]]:
        return {**row_data, "exposure": row_data.get("exposure", np.ones(len(centre))) * np.exp(centre)}


class LogRateOfOverdispersedCounts(LogRateOfCounts):
    """The same for counts that vary more than their mean."""

    noise_is_mean = False


class LogRateOfTimes(Link):
    """y exp(c) is the time that a leaf sees: c is the logarithm of a rate."""

    sign = -1

    def likelihood(self, y: FloatArray, row_data: RowData) -> tuple[str, FloatArray, FloatArray | None]:
        censored = row_data.get("censored", np.zeros(len(y)))
        return "rate", np.where(censored > 0.0, 0.0, 1.0), y
