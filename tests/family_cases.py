"""What textbooks say of each family, statistics of rows together, and priors that differ from node to node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import everytree as et
import naive_families as nf

ONE_NODE = et.MetaTree.complete([])


def pooled(family: et.Family, y: Any, weight: Any = None, **row_data: Any) -> np.ndarray:
    """Statistics of all rows together, as a node that holds them has them: (1, n_statistics)."""
    post = et.Posterior(ONE_NODE, family).update(np.zeros((len(y), 0), np.uint8), y, weight, **row_data)
    return post.statistics


# ---- priors that differ from node to node ----------------------------------------------------------------------------

PerNode = Callable[[np.random.Generator, int], tuple[et.Family, list[Any]]]


def positive(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.3, 3.0, shape)


def scalars(family: type, twin: type, *constant: float, per_node: str) -> PerNode:
    """A family with `constant` hyperparameters, those marked in `per_node` replaced by one for each node."""

    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        values = [positive(rng, n) if mark == "n" else c for mark, c in zip(per_node, constant, strict=True)]
        rows = zip(*(np.broadcast_to(v, n) for v in values), strict=True)
        return family(*values), [twin(*row) for row in rows]

    return make


def classes(width: int) -> PerNode:
    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        alpha = positive(rng, n, width)
        full = np.broadcast_to(alpha, (n, 3))
        return et.Categorical(3, alpha), [nf.Categorical(3, a) for a in full]

    return make


def regressions(*names: str, matrices: bool = False) -> PerNode:
    """Linear regressions with the named hyperparameters given for each node."""

    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        given: dict[str, Any] = {"precision": 1.5, "shape": 2.0, "scale": 0.5, "mean": 0.25}
        roots = rng.normal(size=(n, 2, 2))
        own = {
            "precision": roots @ roots.transpose(0, 2, 1) + np.eye(2) if matrices else positive(rng, n),
            "shape": positive(rng, n),
            "scale": positive(rng, n),
            "mean": rng.normal(size=(n, 2)),
        }
        given |= {name: own[name] for name in names}
        of_node = [{k: v[s] if k in names else v for k, v in given.items()} for s in range(n)]
        return et.LinearRegression(2, **given), [nf.LinearRegression(2, **values) for values in of_node]

    return make


PER_NODE: dict[str, tuple[str, PerNode]] = {
    "bernoulli alpha": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="n-")),
    "bernoulli beta": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="-n")),
    "bernoulli both": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="nn")),
    "categorical by class": ("categorical", classes(3)),
    "categorical one number": ("categorical", classes(1)),
    "poisson shape": ("poisson", scalars(et.Poisson, nf.Poisson, 2.0, 1.5, per_node="n-")),
    "poisson both": ("poisson", scalars(et.Poisson, nf.Poisson, 2.0, 1.5, per_node="nn")),
    "exponential rate": ("exponential", scalars(et.Exponential, nf.Exponential, 3.0, 1.5, per_node="-n")),
    "exponential both": ("exponential", scalars(et.Exponential, nf.Exponential, 3.0, 1.5, per_node="nn")),
    "geometric alpha": ("geometric", scalars(et.Geometric, nf.Geometric, 3.0, 0.75, per_node="n-")),
    "geometric both": ("geometric", scalars(et.Geometric, nf.Geometric, 3.0, 0.75, per_node="nn")),
    "normal mean": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="n---")),
    "normal strength": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="-n--")),
    "normal all": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="nnnn")),
    "linear mean": ("linear", regressions("mean")),
    "linear precision": ("linear", regressions("precision")),
    "linear matrices": ("linear", regressions("precision", matrices=True)),
    "linear all": ("linear", regressions("precision", "shape", "scale", "mean", matrices=True)),
}


# ---- textbooks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Textbook:
    """Posterior hyperparameters from rows, and the predictive from them, as textbooks give them."""

    posterior: Callable[..., dict[str, Any]]  # y, weight, row data
    predictive: Callable[..., Any]  # posterior, row data of the new row -> a frozen SciPy distribution
    impossible: tuple[float, ...]


def normal_posterior(y: np.ndarray, w: np.ndarray) -> dict[str, Any]:
    mean, strength, shape, scale, n = 0.5, 0.25, 2.0, 1.5, w.sum()
    average = (w @ y) / n
    spread = w @ (y - average) ** 2 + strength * n / (strength + n) * (average - mean) ** 2
    return {
        "mean": (strength * mean + w @ y) / (strength + n),
        "strength": strength + n,
        "shape": shape + n / 2,
        "scale": scale + spread / 2,
    }


def linear_posterior(y: np.ndarray, w: np.ndarray, inputs: np.ndarray) -> dict[str, Any]:
    prior, mean = np.array([[1.0, 0.25], [0.25, 0.5]]), np.array([0.5, -1.0])
    precision = prior + (inputs.T * w) @ inputs
    coef = np.linalg.solve(precision, prior @ mean + inputs.T @ (w * y))
    residual = w @ (y - inputs @ coef) ** 2 + (coef - mean) @ prior @ (coef - mean)
    return {"mean": coef, "precision": precision, "shape": 2.0 + w.sum() / 2, "scale": 1.5 + residual / 2}


def linear_predictive(p: dict[str, Any], inputs: np.ndarray) -> Any:
    spread = 1 + inputs @ np.linalg.solve(p["precision"], inputs)
    return stats.t(2 * p["shape"], inputs @ p["mean"], np.sqrt(p["scale"] / p["shape"] * spread))


def histogram_posterior(y: np.ndarray, w: np.ndarray) -> dict[str, Any]:
    """Shares of six cells: below -1, to 0, to 1, to 1.5, to 2.5, beyond; halved after the third, then after one."""
    n = np.array([w @ (y <= -1), w @ ((y > -1) & (y <= 0)), w @ ((y > 0) & (y <= 1)), w @ ((y > 1) & (y <= 1.5))])
    n = np.append(n, [w @ ((y > 1.5) & (y <= 2.5)), w @ (y > 2.5)])
    prior = np.array([0.5, 2.0, 3.0, 2.0, 2.0, 0.5])

    def of(part: slice, whole: slice, strength: float) -> float:
        return (strength * prior[part].sum() / prior[whole].sum() + n[part].sum()) / (strength + n[whole].sum())

    half = [of(slice(0, 3), slice(0, 6), 1.5), of(slice(3, 6), slice(0, 6), 1.5)]
    shares = [half[0] * of(slice(0, 1), slice(0, 3), 3.0), half[1] * of(slice(3, 4), slice(3, 6), 3.0)]
    for k, (whole, first) in enumerate(((slice(0, 3), 1), (slice(3, 6), 4))):
        rest = half[k] * of(slice(first, whole.stop), whole, 3.0)
        pair = slice(first, first + 2)
        shares += [rest * of(slice(first + j, first + j + 1), pair, 6.0) for j in (0, 1)]
    return {"shares": np.array([shares[0], shares[2], shares[3], shares[1], shares[4], shares[5]])}


class HistogramOf:
    """The distribution of a share for each cell, as SciPy's frozen ones are asked."""

    def __init__(self, p: dict[str, Any]) -> None:
        self.shares = np.asarray(p["shares"])
        self.parts = [
            stats.expon(1.0, 0.5), stats.uniform(-1.0, 1.0), stats.uniform(0.0, 1.0), stats.uniform(1.0, 0.5),
            stats.uniform(1.5, 1.0), stats.expon(2.5, 1.0),
        ]  # fmt: skip

    def cdf(self, y: Any) -> Any:
        y = np.asarray(y, dtype=float)
        each = [part.sf(-y) if k == 0 else part.cdf(y) for k, part in enumerate(self.parts)]
        return sum(share * one for share, one in zip(self.shares, each, strict=True))

    def sf(self, y: Any) -> Any:
        return 1.0 - self.cdf(y)

    def logpdf(self, y: Any) -> Any:
        y = np.asarray(y, dtype=float)
        each = [part.pdf(-y) if k == 0 else part.pdf(y) for k, part in enumerate(self.parts)]
        return np.log(sum(share * one for share, one in zip(self.shares, each, strict=True)))

    def mean(self) -> float:
        return float(self.shares @ [-1.5, -0.5, 0.5, 1.25, 2.0, 3.5])

    def var(self) -> float:
        means = np.array([-1.5, -0.5, 0.5, 1.25, 2.0, 3.5])
        own = np.array([0.25, 1.0 / 12.0, 1.0 / 12.0, 0.25 / 12.0, 1.0 / 12.0, 1.0])
        return float(self.shares @ (own + (means - self.mean()) ** 2))


NOT_COUNTS = (-1.0, 0.5, np.nan, np.inf, -np.inf)
TEXTBOOK = {
    "bernoulli": Textbook(
        lambda y, w: {"alpha": 0.5 + w @ (y == 1), "beta": 0.7 + w @ (y == 0)},
        lambda p: stats.bernoulli(p["alpha"] / (p["alpha"] + p["beta"])),
        (2.0, *NOT_COUNTS),
    ),
    "categorical": Textbook(
        lambda y, w: {"alpha": [0.5 + w @ (y == 0), 1.0 + w @ (y == 1), 0.25 + w @ (y == 2)]},
        lambda p: stats.rv_discrete(values=(range(3), p["alpha"] / np.sum(p["alpha"]))),
        (3.0, *NOT_COUNTS),
    ),
    "poisson": Textbook(
        lambda y, w, exposure: {"shape": 2.0 + w @ y, "rate": 1.5 + w @ exposure},
        lambda p, exposure: stats.nbinom(p["shape"], p["rate"] / (p["rate"] + exposure)),
        NOT_COUNTS,
    ),
    "exponential": Textbook(
        lambda y, w, censored: {"shape": 3.0 + w @ (1 - censored), "rate": 1.5 + w @ y},
        lambda p, censored: stats.lomax(p["shape"], scale=p["rate"]),
        (-1e-9, np.nan, np.inf, -np.inf),
    ),
    "geometric": Textbook(
        lambda y, w: {"alpha": 3.0 + w.sum(), "beta": 0.75 + w @ y},
        lambda p: stats.betanbinom(1, p["alpha"], p["beta"]),
        NOT_COUNTS,
    ),
    "normal": Textbook(
        normal_posterior,
        lambda p: stats.t(2 * p["shape"], p["mean"], np.sqrt(p["scale"] / p["shape"] * (1 + 1 / p["strength"]))),
        (np.nan, np.inf, -np.inf),
    ),
    "linear": Textbook(linear_posterior, linear_predictive, (np.nan, np.inf, -np.inf)),
    "histogram": Textbook(histogram_posterior, HistogramOf, (np.nan, np.inf, -np.inf)),
    "lognormal": Textbook(
        lambda y, w: {
            "mean": (0.25 * 0.5 + w @ np.log(y)) / (0.25 + w.sum()),
            "strength": 0.25 + w.sum(),
            "sigma": 0.7,
        },
        lambda p: stats.lognorm(p["sigma"] * np.sqrt(1 + 1 / p["strength"]), scale=np.exp(p["mean"])),
        (0.0, -1.0, np.nan, np.inf, -np.inf),
    ),
}
