"""Scores of held-out predictions: of class probabilities, and of forecasts of a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import stats

COVERAGE = 0.9
LEVELS = (np.arange(1, 101) - 0.5) / 100
ENDS = np.array([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])


@dataclass(frozen=True)
class Score:
    """A score, what it measures, and how far from the best a value is (no such rule: it is not ranked)."""

    name: str
    remark: str
    distance: Callable[[float], float] | None


def _as_it_is(value: float) -> float:
    """Rank by the value: lower is better."""
    return value


CLASS_SCORES = (
    Score(
        "log-loss", "Mean of -log of the probability of the true class, clipped at 1e-15; lower is better.", _as_it_is
    ),
    Score("accuracy", "Share of rows whose likeliest class is the true one; higher is better.", lambda value: -value),
    Score("Brier", "Mean squared error of the probabilities, summed over the classes; lower is better.", _as_it_is),
    Score(
        "ECE",
        "Expected calibration error: gap between confidence and accuracy of the likeliest class, in 15 bins of equal "
        "width; lower is better.",
        _as_it_is,
    ),
)
NUMBER_SCORES = (
    Score(
        "CRPS",
        "Mean continuous ranked probability score; lower is better. For a model that gives a point it is the absolute "
        "error, for one that gives quantiles twice the mean pinball loss of 100 of them.",
        _as_it_is,
    ),
    Score("RMSE", "Root of the mean squared error of the predicted mean; lower is better.", _as_it_is),
    Score("NLL", "Mean of -log of the predicted density at the target; lower is better.", _as_it_is),
    Score("coverage", "Share of targets inside the 90% interval; 0.9 is best.", lambda value: abs(value - COVERAGE)),
    Score(
        "width",
        "Mean width of the 90% interval. To be read beside the coverage: an interval that misses is easily narrow, "
        "therefore there is no ranking.",
        None,
    ),
)


def class_scores(y: np.ndarray, probs: np.ndarray) -> dict[str, float]:
    """Score class probabilities, one row each for class numbers `y`."""
    true = probs[np.arange(len(y)), y]
    return {
        "log-loss": float(-np.log(np.maximum(true, 1e-15)).mean()),
        "accuracy": float((probs.argmax(axis=1) == y).mean()),
        "Brier": float(((probs - np.eye(probs.shape[1])[y]) ** 2).sum(axis=1).mean()),
        "ECE": calibration_error(probs.max(axis=1), probs.argmax(axis=1) == y),
    }


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Average the gap between confidence and accuracy over bins of equal width, weighted by their rows."""
    bin_of = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(bin_of, weights=confidence - correct, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


class Forecast(Protocol):
    """What a model says about the targets of some rows; nothing, where it does not say."""

    def mean(self) -> np.ndarray: ...
    def crps(self, y: np.ndarray) -> np.ndarray: ...
    def log_prob(self, y: np.ndarray) -> np.ndarray | None: ...
    def interval(self) -> np.ndarray | None: ...


@dataclass(frozen=True)
class Point:
    """A forecast of one number a row."""

    value: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the number itself."""
        return self.value

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the absolute error, which is the score of all mass in one point."""
        return np.abs(y - self.value)

    def log_prob(self, y: np.ndarray) -> None:
        """Return nothing: a point has no density."""

    def interval(self) -> None:
        """Return nothing: a point has no width."""


@dataclass(frozen=True)
class Quantiles:
    """A forecast of the quantiles at `LEVELS`, of the two `ENDS` of the interval, and of the mean."""

    average: np.ndarray
    quantiles: np.ndarray
    ends: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the mean."""
        return self.average

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return twice the mean pinball loss."""
        above = y[:, None] - self.quantiles
        return 2 * np.maximum(LEVELS * above, (LEVELS - 1) * above).mean(axis=1)

    def log_prob(self, y: np.ndarray) -> None:
        """Return nothing: quantiles alone have no density."""

    def interval(self) -> np.ndarray:
        """Return the two ends, one row each."""
        return self.ends


@dataclass(frozen=True)
class Normal:
    """A forecast of a normal distribution."""

    loc: np.ndarray
    scale: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the mean."""
        return self.loc

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the score in closed form."""
        z = (y - self.loc) / self.scale
        return self.scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density."""
        return stats.norm.logpdf(y, self.loc, self.scale)

    def interval(self) -> np.ndarray:
        """Return the interval of equal tails."""
        return self.loc[:, None] + self.scale[:, None] * stats.norm.ppf(ENDS)


Rows = dict[str, np.ndarray | None]


def number_rows(y: np.ndarray, forecast: Forecast) -> Rows:
    """Score each row of a forecast."""
    ends = forecast.interval()
    density = forecast.log_prob(y)
    return {
        "CRPS": forecast.crps(y),
        "RMSE": (y - forecast.mean()) ** 2,
        "NLL": None if density is None else -density,
        "coverage": None if ends is None else ((ends[:, 0] <= y) & (y <= ends[:, 1])).astype(float),
        "width": None if ends is None else ends[:, 1] - ends[:, 0],
    }


def number_scores(folds: Sequence[Rows]) -> dict[str, float | None]:
    """Average the rows of all folds together."""
    scores: dict[str, float | None] = {}
    for name in folds[0]:
        parts = [rows[name] for rows in folds]
        scores[name] = None if parts[0] is None else float(np.concatenate(parts).mean())
    scores["RMSE"] = float(np.sqrt(scores["RMSE"]))
    return scores
