"""Tables of every kind of column beside targets that do not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import everytree as et

Rng = np.random.Generator
FEWEST_FRESH = 2000


def _texts(n_categories: int, n_columns: int) -> Callable[[Rng, int], pd.DataFrame]:
    return lambda rng, n: pd.DataFrame(
        {f"c{k}": [f"v{one}" for one in rng.integers(0, n_categories, n)] for k in range(n_columns)}
    )


def _numbers(rng: Rng, n: int) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(n, 5))).add_prefix("x")


def _names(rng: Rng, n: int) -> pd.DataFrame:
    return _numbers(rng, n).assign(name=[f"name {k}" for k in rng.permutation(10 * n)[:n]])


def _dates(rng: Rng, n: int) -> pd.DataFrame:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, (n, 2)).ravel(), unit="D")
    return pd.DataFrame(days.to_numpy().reshape(n, 2)).add_prefix("day")


def _missing(rng: Rng, n: int) -> pd.DataFrame:
    table = pd.concat([_numbers(rng, n), _texts(8, 3)(rng, n)], axis=1)
    return table.mask(rng.random(table.shape) < 0.3)


COLUMNS: dict[str, Callable[[Rng, int], pd.DataFrame]] = {
    "numbers": _numbers,
    "3 categories": _texts(3, 6),
    "8 categories": _texts(8, 6),
    "30 categories": _texts(30, 6),
    "300 categories": _texts(300, 4),
    "3000 categories": _texts(3000, 3),
    "different texts": _names,
    "dates": _dates,
    "missing values": _missing,
}

TARGETS: dict[str, Callable[[Rng, int], NDArray[Any]]] = {
    "normal": lambda rng, n: rng.normal(3.0, 2.0, n),
    "linear": lambda rng, n: rng.normal(3.0, 2.0, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(0.0, 0.7, n)),
    "poisson": lambda rng, n: rng.poisson(5.0, n).astype(float),
    "exponential": lambda rng, n: rng.exponential(4.0, n),
    "survival": lambda rng, n: rng.exponential(4.0, n),
    "geometric": lambda rng, n: (rng.geometric(0.3, n) - 1).astype(float),
    "histogram": lambda rng, n: rng.normal(0.0, 0.5, n) + 4.0 * rng.integers(0, 2, n),
    "negative_binomial": lambda rng, n: rng.negative_binomial(1.0, 0.2, n).astype(float),
    "gamma": lambda rng, n: rng.gamma(3.0, 2.0, n),
    "weibull": lambda rng, n: 5.0 * rng.weibull(2.0, n),
    "hurdle_negative_binomial": lambda rng, n: np.where(
        rng.random(n) < 0.5, 0.0, rng.poisson(rng.gamma(2.0, 2.0, n)) + 1.0
    ),
    "hurdle_lognormal": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, np.exp(rng.normal(0.0, 0.7, n))),
}
"""A law of each family of numbers."""

OF_ONE_LEAF = ("survival", "negative_binomial", "gamma", "weibull", "hurdle_negative_binomial", "hurdle_lognormal")
"""Families whose constant prediction is one leaf that has all rows."""


class Rows(NamedTuple):
    """A table and its targets; `groups` of rows that belong together, None where each is its own."""

    X: pd.DataFrame
    y: NDArray[Any]
    groups: NDArray[np.int64] | None = None


def draw(rng: Rng, columns: str, target: str | int, n: int, *, times: int = 1) -> Rows:
    """Rows of noise; a target that is a number is so many classes.

    With `times` above 1, each row of the table stands for a person who is measured so many times, with targets that are
    alike.
    """
    n_persons = -(-n // times)
    X, person = COLUMNS[columns](rng, n_persons), np.repeat(np.arange(n_persons), times)[:n]
    if isinstance(target, int):
        y = rng.integers(0, target, n_persons)[person]
        y = np.where(rng.random(n) < 0.3, rng.integers(0, target, n), y) if times > 1 else y
    else:
        y = TARGETS[target](rng, n_persons)[person]
    return Rows(X.iloc[person].reset_index(drop=True), y, person if times > 1 else None)


def log_scores(model: Any, rows: Rows) -> NDArray[np.float64]:
    """Log probability or density of each target."""
    if hasattr(model, "predict_proba"):
        probs = model.predict_proba(rows.X)[np.arange(len(rows.y)), np.searchsorted(model.classes_, rows.y)]
        return np.log(np.maximum(probs, 1e-300))
    return np.asarray(model.predictive(rows.X).log_prob(rows.y))


def log_scores_without_columns(target: str | int, rows: Rows, fresh: Rows) -> NDArray[np.float64]:
    """The same of one distribution for all rows, estimated from those of fit."""
    if isinstance(target, int):
        shares = (np.bincount(rows.y, minlength=target) + 0.5) / (len(rows.y) + 0.5 * target)
        return np.log(shares[fresh.y])
    y, new = rows.y, fresh.y
    if target in OF_ONE_LEAF:
        alike = np.zeros((len(y), 1)), np.zeros((len(new), 1))
        model = et.MetaTreeRegressor(family=target, random_state=0).fit(alike[0], y)
        return model.predictive(alike[1]).log_prob(new)
    mean = float(y.mean())
    found = {
        "poisson": lambda: stats.poisson(mean).logpmf(new),
        "exponential": lambda: stats.expon(scale=mean).logpdf(new),
        "geometric": lambda: stats.geom(1.0 / (1.0 + mean), loc=-1).logpmf(new),
        "histogram": lambda: _histogram(y).log_prob(new),
        "lognormal": lambda: _student(np.log(y)).logpdf(np.log(new)) - np.log(new),
    }.get(target, lambda: _student(y).logpdf(new))
    return np.asarray(found())


def _histogram(y: NDArray[np.float64]) -> Any:
    """The shares of the cells that a model of these targets counts in."""
    family = et.Histogram.prior_search(y, None, {}, {"strength": 1.0}, 0.5).first_family
    post = et.Posterior(et.MetaTree.complete([], n_features=1), family).update(np.zeros((len(y), 1), np.uint8), y)
    return post.predictive(np.zeros((1, 1), np.uint8))


def _student(y: NDArray[np.float64]) -> Any:
    """What is known of one more normal number."""
    n = len(y)
    return stats.t(n - 1, loc=y.mean(), scale=y.std(ddof=1) * np.sqrt(1.0 + 1.0 / n))
