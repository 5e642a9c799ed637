"""Which priors of the leaves to try, for each family: centred on the data (empirical Bayes), of several strengths.

The prior mean of a leaf is what the table as a whole says: the class frequencies, the mean of y, the overall rate. How
much that counts against the rows of a leaf is searched, or given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number
from everytree.families import Bernoulli, Categorical, Exponential, Geometric, LinearRegression, Normal, Poisson
from everytree.families.base import NativeFamily
from everytree.fitting.search import Search
from everytree.posterior.split_prior import SplitPriorLike

USUAL_ALPHA, ALPHA_SPREAD = 0.1, 2.0
"""Rows a class that a leaf's prior is thought to be worth before any are seen, and how sure that is, in logs."""

SPLIT_PRIORS = (0.5, 0.8, 0.95, 0.99)
"""Tried first; those of the ladder beyond them where the best lies at an end."""

SPLIT_PRIOR_LADDER = (1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
"""From hardly ever splitting, which is what pure noise asks for, to hardly any pruning."""

STRENGTHS = tuple(float(f"{digit}e{power}") for power in range(-5, 5) for digit in (1, 3))
"""1e-5, 3e-5, ..., 1e4, 3e4: rows that a prior may be worth."""


SHAPES = (1.25, 2.0, 4.0, 8.0, 16.0, 50.0, 200.0, 1e3, 1e4)
"""Of the prior of a variance; above 1, so that a new row has one."""


def class_search(
    y: NDArray[np.int64], weight: FloatArray | None, n_classes: int, alpha: Any, split_prior: Any
) -> Search:
    """Dirichlet priors whose mean is the class frequencies, of `alpha` rows a class.

    Half a row is added to each class before frequencies are taken, so that none is impossible.
    """
    counts = np.bincount(y, weights=weight, minlength=n_classes) + 0.5
    mean = counts / counts.sum()

    def make(alpha: float) -> NativeFamily:
        each = alpha * n_classes * mean
        return Bernoulli(each[1], each[0]) if n_classes == 2 else Categorical(n_classes, each)

    grids = {"alpha": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), "split_prior": SPLIT_PRIORS}
    search = _search(make, {"alpha": 0.3}, {"alpha": alpha}, split_prior, [grids], {"alpha": STRENGTHS})
    return replace(search, log_prior=lambda one: -0.5 * (np.log(one["alpha"] / USUAL_ALPHA) / ALPHA_SPREAD) ** 2)


def number_search(
    family: str,
    y: FloatArray,
    weight: FloatArray | None,
    row_data: Mapping[str, NDArray[Any]],
    prior: Mapping[str, Any],
    split_prior: Any,
) -> Search:
    """Conjugate priors centred on the data, for each family of numbers; `prior` fixes some of their parameters."""
    return _SEARCHES[family](y, weight, row_data, dict(prior), split_prior)


def numbers_to_grow_on(
    family: str, y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, NDArray[Any]]
) -> tuple[FloatArray, FloatArray | None]:
    """What trees that minimise squares follow so that leaves of this family come out apart, and the weights of rows.

    Rates for counts, what the overall rate leaves unexplained for times, what one line leaves for lines. Centred and
    scaled, since scikit-learn's trees see no variance below 2e-16 and lose digits far from zero: by one of the values
    and by a power of two, so that nothing is rounded and splits that were equally good still are.
    """
    follow = y
    if family == "poisson" and "exposure" in row_data:
        follow = y / row_data["exposure"]
        weight = row_data["exposure"] if weight is None else weight * row_data["exposure"]
    elif family == "exponential":
        events = 1.0 - row_data.get("censored", np.zeros(len(y)))
        follow = events - _overall_rate(events, y, weight) * y
    elif family == "linear":
        follow = y - row_data["inputs"] @ one_line(row_data["inputs"], y, weight)
    mean = float(np.average(follow, weights=weight))
    centre = follow[np.argmin(np.abs(follow - mean))]
    return (follow - centre) * 2.0 ** -np.round(0.5 * np.log2(_variance(follow, mean, weight))), weight


def _normal(
    y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, Any], prior: dict[str, Any], split: Any
) -> Search:
    """`noise` is the expected variance in a leaf as a share of that of y; `strength` and `shape` are rows in worth."""
    mean = float(np.average(y, weights=weight))
    variance = _variance(y, mean, weight)

    def make(strength: float, shape: float, noise: float) -> Normal:
        return Normal(mean, strength, shape, max(shape - 1.0, 0.5) * noise * variance)

    floor = _rounding(y) ** 2 / 12.0 / variance
    shares = [1e-6, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 0.8, 1.0, 1.3, 2.0, 4.0]
    ladder = [share for share in shares if share > min(floor, 0.5)]
    noise = [share for share in ladder if 0.003 <= share <= 0.8]
    stages: list[dict[str, Sequence[float]]] = [
        {"noise": noise[::2] if len(noise) > 2 else noise, "split_prior": SPLIT_PRIORS},
        {"strength": (0.03, 0.3), "shape": (1.25, 2.0, 4.0)},
        {"noise": noise[1::2] or noise, "split_prior": SPLIT_PRIORS},
    ]
    ladders = {"noise": ladder, "strength": STRENGTHS}
    return _search(make, {"strength": 0.1, "shape": 2.0, "noise": 0.1}, prior, split, stages, ladders)


def _linear(
    y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, Any], prior: dict[str, Any], split: Any
) -> Search:
    """Coefficients around those of one ridge regression over all rows; the inputs are scaled, the last is 1."""
    inputs = np.asarray(row_data["inputs"], dtype=np.float64)
    centre = one_line(inputs, y, weight)
    residuals = y - inputs @ centre
    variance = _variance(residuals, 0.0, weight)

    def make(precision: float, shape: float, noise: float) -> LinearRegression:
        scale = max(shape - 1.0, 0.5) * noise * variance
        return LinearRegression(inputs.shape[1], precision=precision, shape=shape, scale=scale, mean=centre)

    stages = [
        {"precision": (0.1, 1.0, 10.0, 100.0), "noise": (0.1, 0.5, 1.0), "split_prior": SPLIT_PRIORS},
        {"shape": (1.25, 2.0, 4.0), "noise": (0.03, 0.1, 0.3, 0.6, 1.0)},
    ]
    ladders = {
        "precision": STRENGTHS,
        "shape": SHAPES,
        "noise": (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.6, 1.0, 1.5, 3.0),
    }
    return _search(make, {"precision": 10.0, "shape": 2.0, "noise": 0.5}, prior, split, stages, ladders)


def _poisson(
    y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, Any], prior: dict[str, Any], split: Any
) -> Search:
    """A rate around the overall one, worth `shape` events."""
    exposure = np.ones(len(y)) if row_data.get("exposure") is None else np.asarray(row_data["exposure"], dtype=float)
    rate = _overall_rate(y, exposure, weight)

    def make(shape: float) -> Poisson:
        return Poisson(shape, shape / rate)

    return _search(make, {"shape": 1.0}, prior, split, [_strengths()], {"shape": STRENGTHS})


def _exponential(
    y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, Any], prior: dict[str, Any], split: Any
) -> Search:
    """A rate around the overall one, worth `shape` events: above 2, so that a new row has a variance."""
    censored = np.zeros(len(y)) if row_data.get("censored") is None else np.asarray(row_data["censored"], dtype=float)
    rate = _overall_rate(1.0 - censored, y, weight)

    def make(shape: float) -> Exponential:
        return Exponential(shape, shape / rate)

    grids = {"shape": (2.1, 4.0, 8.0, 16.0), "split_prior": SPLIT_PRIORS}
    return _search(make, {"shape": 2.1}, prior, split, [grids], {"shape": (*grids["shape"], 32.0, 100.0, 1e3, 1e4)})


def _geometric(
    y: FloatArray, weight: FloatArray | None, row_data: Mapping[str, Any], prior: dict[str, Any], split: Any
) -> Search:
    """A mean around the overall one, worth `shape` rows; above 2 the variance of a new row is finite."""
    mean = max(float(np.average(y, weights=weight)), 1e-3)

    def make(shape: float) -> Geometric:
        return Geometric(1.0 + shape, shape * mean)  # the mean of y given theta ~ Beta(a, b) is b / (a - 1)

    return _search(make, {"shape": 2.0}, prior, split, [_strengths()], {"shape": STRENGTHS})


_SEARCHES: dict[str, Callable[..., Search]] = {
    "normal": _normal,
    "linear": _linear,
    "poisson": _poisson,
    "exponential": _exponential,
    "geometric": _geometric,
}
FAMILIES = tuple(_SEARCHES)


def _strengths() -> dict[str, tuple[float, ...]]:
    return {"shape": (0.3, 1.0, 3.0, 10.0, 30.0), "split_prior": SPLIT_PRIORS}


def _search(
    make: Callable[..., NativeFamily],
    start: dict[str, float],
    given: Mapping[str, Any],
    split_prior: SplitPriorLike | str,
    stages: Sequence[Mapping[str, Sequence[float]]],
    ladders: Mapping[str, Sequence[float]],
) -> Search:
    """Parameters that are given, not "auto", are fixed: no stage tries others."""
    unknown = sorted(set(given) - set(start))
    if unknown:
        raise ValueError(f"prior has {unknown}, but the parameters of this family are {sorted(start)}")
    fixed = {name: value for name, value in given.items() if not _is_auto(value)}
    for name, value in fixed.items():
        positive_number(name, value, " or 'auto'")
    if not _is_auto(split_prior):
        fixed["split_prior"] = split_prior
    tried = [{name: grid for name, grid in stage.items() if name not in fixed} for stage in stages]
    return Search(
        make,
        {"split_prior": 0.8} | start | fixed,
        [stage for stage in tried if stage],
        ladders={"split_prior": SPLIT_PRIOR_LADDER, **ladders},
    )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _variance(y: FloatArray, mean: float, weight: FloatArray | None) -> float:
    """Of y, never quite zero: a constant column has a prior too."""
    return max(float(np.average((y - mean) ** 2, weights=weight)), (1e-13 * mean) ** 2, 1e-50)


def one_line(inputs: FloatArray, y: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Coefficients of one ridge regression over all rows; the last input is the constant, which is not shrunk."""
    scaled = inputs if weight is None else inputs * weight[:, None]
    ridge = np.eye(inputs.shape[1])
    ridge[-1, -1] = 0.0
    mean = float(np.average(y, weights=weight))  # goes into the constant alone: targets far from zero lose no digits
    coefficients = np.linalg.solve(scaled.T @ inputs + ridge, scaled.T @ (y - mean))
    coefficients[-1] += mean
    return np.asarray(coefficients)


def _rounding(y: FloatArray) -> float:
    """To how much the targets are rounded: the smallest step between them where most values come several times, else 0.

    Densities know no ties: where targets are rounded, a spike at each of their values would win any log score. A leaf
    is therefore never expected to have less variance than rounding itself brings.
    """
    values = np.unique(y)
    return float(np.diff(values).min()) if 1 < len(values) <= len(y) / 5 else 0.0


def _overall_rate(events: FloatArray, time: FloatArray, weight: FloatArray | None) -> float:
    """Events over time, half an event added so that it is never zero."""
    total = float(np.sum(time if weight is None else weight * time))
    return (float(np.sum(events if weight is None else weight * events)) + 0.5) / max(total, 1e-300)
