"""Online forests for numbers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.families import Normal
from everytree.online.base import OnlineForest
from everytree.online.river_base import MiniBatchRegressor
from everytree.online.rows import Range, Row, as_dicts
from everytree.online.tables import column_like, rows_of
from everytree.online.trees import OnlineTrees

NEGLIGIBLE_PROB = 2**62
MIN_PERIOD = 100


class OnlineForestRegressor(OnlineForest, MiniBatchRegressor):
    """Streaming regression by random trees averaged over all their prunings.

    Where river is installed this is a river regressor. Targets in a leaf are normal with unknown mean and variance.

    Parameters
    ----------
    n_models
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    split_prior
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    max_nodes
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    half_life
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    ranges
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    seed
        As in `OnlineForestClassifier`; a node takes 48 bytes for its statistics.
    prior : (mean, strength, shape, scale) or None
        Of the leaves, as in `Normal`. None takes it from the rows seen: the mean of the targets, worth
        `strength` = 0.01 rows, and an expected variance of a tenth of theirs. It is updated when their number has
        doubled, and after each half-life.

    Examples
    --------
    >>> import everytree as et
    >>> model = et.OnlineForestRegressor(seed=1)
    >>> for i in range(300):
    ...     model.learn_one({"hour": i % 24}, 10.0 * (i % 24 > 12))
    >>> round(model.predict_one({"hour": 20}))
    10
    """

    def __init__(
        self,
        n_models: int = 10,
        split_prior: float = 0.5,
        prior: tuple[float, float, float, float] | None = None,
        max_nodes: int | None = 20_000,
        half_life: float | None = None,
        ranges: dict[Hashable, Range] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_models = n_models
        self.split_prior = split_prior
        self.prior = prior
        self.max_nodes = max_nodes
        self.half_life = half_life
        self.ranges = ranges
        self.seed = seed
        self._start(Normal() if prior is None else _normal_of(prior))

    def checked_target(self, y: Any, where: str) -> float:
        """Return the number, or raise an error that says where it is."""
        try:
            value = math.nan if isinstance(y, str | bytes) else float(y)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if math.isnan(value) and not isinstance(y, numbers.Real):
            raise TypeError(f"{where} must be a number, but is {y!r} of type {type(y).__name__}")
        if not abs(value) <= 1e30:  # its square is a variance, and those of priors are at most 1e60
            raise ValueError(f"{where} must be a finite number of at most 1e30 in size, but is {y!r}")
        return value

    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        """Learn rows up to the next update of the prior, update it, and so on."""
        y, begin = np.array(targets), 0
        while begin < len(y):
            due = self._next_renewal(self.trees.n_rows)
            end = min(len(y), begin + due - self.trees.n_rows)
            self.trees.learn(values[begin:end], y[begin:end])
            if self.trees.n_rows == due:
                self.trees.use_leaves(_prior_of(self.trees))
            begin = end

    def _next_renewal(self, n_seen: int) -> int:
        """After 1, 2, 4, 8, ... rows: amortised, that is two nodes per row and tree. With decay, also after each
        half-life, unless deriving all evidence again would then be too frequent."""
        if self.prior is not None:
            return NEGLIGIBLE_PROB
        doubled = 1 << n_seen.bit_length()
        if self.trees.half_life is None or self.trees.half_life >= doubled:
            return doubled
        period = max(MIN_PERIOD, math.ceil(self.trees.half_life))
        return min(doubled, (n_seen // period + 1) * period)

    def predict_one(self, x: Row) -> float:
        """The mean; 0 before any row."""
        return float(self._predict(as_dicts([x]))[0, 0])

    def predict_many(self, X: Any) -> Any:
        """Column of means."""
        return column_like(X, "mean", self._predict(rows_of(X))[:, 0].tolist())


def _normal_of(prior: Any) -> Normal:
    try:
        mean, strength, shape, scale = prior
    except (TypeError, ValueError):
        raise TypeError(f"prior must be (mean, strength, shape, scale) or None, but is {prior!r}") from None
    return Normal(float(mean), float(strength), float(shape), float(scale))


def _prior_of(trees: OnlineTrees) -> Normal:
    """From the statistics at the root, which all trees share: the sums are pairs and are added without rounding."""
    pairs = map(Fraction, trees.arrays["statistics"][trees.roots[0, 0]].tolist())
    weight, total, squares = (value + next(pairs) for value in pairs)
    mean, square = total / weight, squares / weight
    variance = max(float(square - mean * mean), (1e-13 * float(mean)) ** 2, 1e-50)
    return Normal(float(mean), strength=0.01, shape=1.5, scale=0.5 * 0.1 * variance)
