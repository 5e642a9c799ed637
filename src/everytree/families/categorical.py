"""Classes with a Dirichlet prior, and two of them with a beta prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.families.base import NativeFamily, hyperparameter
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, search_for
from everytree.families.traits import COUNTS, Seen, Support

USUAL_ALPHA, ALPHA_SPREAD = 0.1, 2.0
"""Prior guess of `alpha`, in rows per class, and the standard deviation of its logarithm."""


class _Classes(NativeFamily):
    """Base class of Bernoulli and Categorical. Statistics: the weight of each class."""

    kernel: ClassVar[str] = "categorical"
    has_classes: ClassVar[bool] = True
    is_sharpened_by_power: ClassVar[bool] = True
    support: ClassVar[Support] = COUNTS
    mass: ClassVar[slice | None] = slice(None)
    is_in_browser: ClassVar[bool] = True

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics.sum(axis=1), "rows")

    def components(self, summary: FloatArray, **row_data: Any) -> ClassComponents:
        return ClassComponents(summary)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[np.int64]:
        probs = theta if theta.ndim == 2 else np.stack([1.0 - theta, theta], axis=1)
        edges = np.cumsum(probs, axis=1)[:, :-1]
        return np.asarray((rng.random((len(edges), 1)) >= edges).sum(axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Bernoulli(_Classes):
    """y is 1 with probability theta, else 0; theta ~ Beta(alpha, beta).

    Statistics: weight of y = 0, weight of y = 1.

    Parameters
    ----------
    alpha, beta : float or (n_nodes,) array_like
        Prior weight of ones and of zeros.

    Examples
    --------
    >>> import everytree as et
    >>> et.Bernoulli().log_evidence([[1.0, 1.0]])  # one of each: 1/8
    array([-2.07944154])
    """

    size = 2  # no parameter
    hyperparameters: ClassVar[tuple[str, ...]] = ("beta", "alpha")
    alpha: ArrayLike = 0.5
    beta: ArrayLike = 0.5

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        beta, alpha = np.broadcast_to(self.at(nodes).hyper, (len(nodes), 2)).T
        return np.asarray(rng.beta(alpha, beta))


@dataclass(frozen=True, eq=False)
class Categorical(_Classes):
    """y is class c with probability theta_c; theta ~ Dirichlet(alpha).

    Statistics: the weight of each class.

    Parameters
    ----------
    n_classes : int
        Targets are 0 .. n_classes - 1.
    alpha : float, (n_classes,) or (n_nodes, n_classes) array_like
        Prior weight of each class; (n_nodes, 1) gives each node one for all classes.
    """

    size_parameter: ClassVar[tuple[str, int, int] | None] = ("n_classes", 2, 1_000_000)
    n_classes: int
    alpha: ArrayLike = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", whole_number("n_classes", self.n_classes, 2, 1_000_000))
        object.__setattr__(self, "alpha", hyperparameter("alpha", self.alpha))
        object.__setattr__(self, "size", self.n_classes)
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        alpha = np.atleast_2d(np.asarray(self.alpha))
        if alpha.ndim > 2 or alpha.shape[1] not in (1, self.size):
            raise ValueError(
                f"alpha must have one entry for each of {self.size} classes, but has shape {np.shape(self.alpha)}"
            )
        return np.broadcast_to(alpha, (len(alpha), self.size))

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        return {"alpha": self.summarise(statistics)}

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        draws = rng.standard_gamma(np.broadcast_to(self.at(nodes).hyper, (len(nodes), self.size)))
        # All draws underflow to zero where every alpha is tiny; such a Dirichlet puts its mass on one class.
        lost = draws.sum(axis=1) == 0.0
        draws[lost, rng.integers(self.size, size=int(lost.sum()))] = 1.0
        return np.asarray(draws / draws.sum(axis=1, keepdims=True))


class ClassComponents:
    """Class c has probability alpha_c / sum(alpha)."""

    is_discrete = True

    def __init__(self, alpha: FloatArray) -> None:
        self._total: FloatArray = alpha.sum(axis=1)
        self._probs: FloatArray = alpha / alpha.sum(axis=1, keepdims=True)

    def probs(self) -> FloatArray:
        return self._probs

    def mean(self) -> FloatArray:
        """Mean of the class number; for two classes, the probability of class 1."""
        return np.asarray(self._probs @ np.arange(self._probs.shape[1]))

    def variance(self) -> FloatArray:
        away = np.arange(self._probs.shape[1]) - self.mean()[:, None]
        return np.asarray((self._probs * away**2).sum(axis=1))

    def parameter_share(self) -> FloatArray:
        """Share of the variance of the class number that is due to the unknown probabilities."""
        return 1.0 / (1.0 + self._total)

    def cdf(self, y: FloatArray) -> FloatArray:
        """Cumulative distribution of the class number."""
        return self._up_to(np.cumsum(self._probs, axis=1), y)

    def sf(self, y: FloatArray) -> FloatArray:
        beyond = np.cumsum(self._probs[:, ::-1], axis=1)[:, ::-1]  # P(Y >= c): sums of small numbers stay exact
        return np.where(y < 0.0, 1.0, self._up_to(np.column_stack([beyond[:, 1:], np.zeros(len(beyond))]), y))

    def _up_to(self, sums: FloatArray, y: FloatArray) -> FloatArray:
        last = sums.shape[1] - 1
        which = np.clip(np.floor(np.nan_to_num(y)), 0, last).astype(np.int64)
        return np.where(y < 0.0, 0.0, sums[np.arange(len(sums)), which])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        edges = np.cumsum(self._probs, axis=1)[:, :-1]
        return np.asarray((rng.random((len(edges), 1)) >= edges).sum(axis=1), dtype=np.float64)

    def log_prob(self, y: FloatArray) -> FloatArray:
        n_classes = self._probs.shape[1]
        possible = (y == np.floor(y)) & (y >= 0) & (y < n_classes)
        which = np.where(possible, y, 0).astype(np.int64)
        with np.errstate(divide="ignore"):
            return np.where(possible, np.log(self._probs[np.arange(len(y)), which]), -np.inf)


def class_search(
    y: NDArray[np.int64], weight: FloatArray | None, n_classes: int, alpha: Any, split_prior: Any
) -> Search:
    """Dirichlet priors whose mean is the class frequencies, worth `alpha` rows per class.

    Half a row is added to each class before frequencies are taken, so that none is impossible.
    """
    counts = np.bincount(y, weights=weight, minlength=n_classes) + 0.5
    mean = counts / counts.sum()

    def make(alpha: float) -> NativeFamily:
        each = alpha * n_classes * mean
        return Bernoulli(each[1], each[0]) if n_classes == 2 else Categorical(n_classes, each)

    grids = {"alpha": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), "split_prior": SPLIT_PRIORS}
    search = search_for(make, {"alpha": 0.3}, {"alpha": alpha}, split_prior, [grids], {"alpha": STRENGTHS})
    return replace(search, log_prior=lambda one: -0.5 * (np.log(one["alpha"] / USUAL_ALPHA) / ALPHA_SPREAD) ** 2)
