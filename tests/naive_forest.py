"""The slow, obvious twin of a forest: one row, one tree and one node at a time.

forest : anything with `posteriors`, `weights` and `n_codes`
X : (n_rows, n_features) integer codes; their dtype tells the missing code
row_data : the family's columns by name, one entry a row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
from scipy import stats
from scipy.special import logsumexp

import everytree as et
from naive import Tree, is_terminal, missing_code_of, next_node

# Where a row ends, and what waits there


def end(tree: Tree, row: Any, known: Sequence[int]) -> int:
    """The terminal of a row, or the node that asks what the row has no answer to."""
    missing_code, s = missing_code_of(row), 0
    while not is_terminal(tree, s):
        code = int(row[tree.feature[s]])
        is_answer = tree.missing_child[s] >= 0 if code == missing_code else code < known[tree.feature[s]]
        following = next_node(tree, s, code, missing_code) if is_answer else None
        if following is None:
            return s
        s = following
    return s


def ends(trees: Sequence[Tree], X: Any, known: Sequence[int]) -> np.ndarray:
    """(n_rows, n_trees); rows that are equal are walked once."""
    rows, of_row = np.unique(X, axis=0, return_inverse=True)
    walked = np.array([[end(tree, row, known) for tree in trees] for row in rows], dtype=int)
    return walked.reshape(len(rows), len(trees))[of_row.ravel()]


def path_weights(post: et.Posterior, last: int) -> dict[int, float]:
    """Probability that each node from the root to `last` is the leaf of a row that knows nothing of what is below."""
    over = post.tree_distribution()
    nodes = [last]
    while nodes[-1] != 0:
        nodes.append(int(post.tree.parent[nodes[-1]]))
    weights, log_reached = {}, 0.0
    for s in reversed(nodes):
        weights[s] = float(np.exp(log_reached + (0.0 if s == last else over.log_stop[s])))
        log_reached += over.log_split[s]
    return weights


@dataclass(frozen=True)
class Mixture:
    """For each row, a weighted sum of distributions.

    Attributes
    ----------
    n_rows : int
    parts : list of (rows, weights, components)
        Entry j of the components belongs to row rows[j] and has weight weights[j].
    """

    n_rows: int
    parts: list[tuple[np.ndarray, np.ndarray, Any]]

    def _sum(self, of: Callable[[Any, np.ndarray], np.ndarray]) -> np.ndarray:
        total = None
        for rows, weights, components in self.parts:
            values = np.asarray(of(components, rows), dtype=float)
            total = np.zeros((self.n_rows, *values.shape[1:])) if total is None else total
            np.add.at(total, rows, weights.reshape(-1, *[1] * (values.ndim - 1)) * values)
        assert total is not None
        return total

    def probs(self) -> np.ndarray:
        return self._sum(lambda components, rows: components.probs())

    def mean(self) -> np.ndarray:
        return self._sum(lambda components, rows: components.mean())

    def variance(self) -> np.ndarray:
        """The mean of the variances, and the variance of the means."""
        mean = self.mean()
        return self._sum(lambda components, rows: components.variance() + (components.mean() - mean[rows]) ** 2)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return self._sum(lambda components, rows: components.cdf(y[rows]))

    def sf(self, y: np.ndarray) -> np.ndarray:
        return self._sum(lambda components, rows: components.sf(y[rows]))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self._sum(lambda components, rows: np.exp(components.log_prob(y[rows]))))

    def quantile(self, p: float) -> np.ndarray:
        """By bisection of the cdf alone; the smallest whole number where the distribution is over whole numbers."""
        low, high = np.full(self.n_rows, -1.0), np.ones(self.n_rows)
        for _ in range(200):
            low, high = np.where(self.cdf(low) >= p, 2.0 * low, low), np.where(self.cdf(high) < p, 2.0 * high, high)
        is_discrete = self.parts[0][2].is_discrete
        for _ in range(200):
            middle = np.floor(0.5 * (low + high)) if is_discrete else 0.5 * (low + high)
            reached = self.cdf(middle) >= p
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def crps(self, y: np.ndarray) -> np.ndarray:
        """The integral of (cdf(x) - 1[x >= y])^2, numerically; of counts, the sum over unit steps."""
        if self.parts[0][2].is_discrete:  # the steps of the cdf are whole numbers; y must be one too
            last = int(self.quantile(1.0 - 1e-13).max(initial=0.0)) + 2
            steps = [np.full(self.n_rows, float(k)) for k in range(last)]
            return sum((np.where(k >= y, self.sf(k), self.cdf(k)) ** 2 for k in steps), np.zeros(self.n_rows))
        width, far = np.sqrt(self.variance()), np.full(self.n_rows, 10.0)
        lowest = getattr(self.parts[0][2], "lowest", -np.inf)  # below it there is nothing, and a step at it
        down = np.minimum(far, np.arcsinh((y - lowest) / width))
        return self._beyond(y, -width, self.cdf, down) + self._beyond(y, width, self.sf, far)

    def _beyond(
        self, y: np.ndarray, width: np.ndarray, tail: Callable[[np.ndarray], np.ndarray], reach: np.ndarray
    ) -> np.ndarray:
        """The integral of a squared tail from y outwards, in panels that grow with the distance."""
        nodes, node_weights = np.polynomial.legendre.leggauss(6)
        edges, total = np.linspace(0.0, 1.0, 201)[:, None] * reach, np.zeros(self.n_rows)
        for left, right in pairwise(edges):
            for node, weight in zip(nodes, node_weights, strict=True):
                at = 0.5 * (left + right) + 0.5 * (right - left) * node
                slope = 0.5 * (right - left) * weight * np.abs(width) * np.cosh(at)
                total += slope * tail(y + width * np.sinh(at)) ** 2
        return total


def mixture(forest: Any, X: np.ndarray, **row_data: np.ndarray) -> Mixture:
    """The average over trees of the average over the nodes on each row's path."""
    parts = []
    for weight, post in zip(forest.weights, forest.posteriors, strict=True):
        last = [end(post.tree, row, forest.n_codes) for row in X]
        shares = {s: path_weights(post, s) for s in set(last)}
        entries = [(i, weight * share, s) for i, at in enumerate(last) for s, share in shares[at].items()]
        rows, weights, nodes = (np.array(column) for column in zip(*entries, strict=True))
        columns = {name: values[rows] for name, values in row_data.items()}
        components = post.family.at(nodes).predictive(post.statistics[nodes], **columns)
        parts.append((rows.astype(int), weights, components))
    return Mixture(len(X), parts)


# Rows left out


@dataclass(frozen=True)
class Rows:
    """The rows of a fit: codes, targets, weights or None, row data."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    row_data: dict[str, np.ndarray]

    def at(self, kept: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[kept]
        return Rows(self.X[kept], self.y[kept], weight, {name: values[kept] for name, values in self.row_data.items()})

    def fit(self, tree: et.MetaTree, family: et.Family, split_prior: Any) -> et.Posterior:
        return et.Posterior(tree, family, split_prior).update(self.X, self.y, self.weight, **self.row_data)


def without_row(tree: et.MetaTree, family: et.Family, split_prior: Any, rows: Rows, i: int) -> np.ndarray:
    """What the posterior of all other rows says of row i: probabilities of classes, or the log density of its y."""
    others, own = rows.at(np.arange(len(rows.y)) != i), rows.at(np.array([i]))
    dist = others.fit(tree, family, split_prior).predictive(own.X, **own.row_data)
    return dist.probs()[0] if family.kernel == "categorical" else dist.log_prob(own.y)


def held_out_predictions(
    trees: Sequence[et.MetaTree], asked: Sequence[np.ndarray], family: et.Family, split_prior: Any, rows: Rows
) -> np.ndarray:
    """(n_rows, n_values): the average over the trees that may be asked about a row; NaN where none may."""
    of_row: list[list[np.ndarray]] = [[] for _ in rows.y]
    for tree, which in zip(trees, asked, strict=True):
        for i in which:
            of_row[i].append(without_row(tree, family, split_prior, rows, int(i)))
    if family.kernel == "categorical":
        return np.array([np.mean(one, axis=0) if one else np.full(family.size, np.nan) for one in of_row])
    return np.array([logsumexp(np.array(one), axis=0) - np.log(len(one)) if one else [np.nan] for one in of_row])


def sharpened_score(
    probs: np.ndarray, y: np.ndarray, weight: np.ndarray | None, sharpness: float, spread: float = np.inf
) -> float:
    """Mean log probability of y under probs ** sharpness, scaled to sum to 1; over the rows that were asked about.

    spread : of the normal prior of log(sharpness), whose log density counts as one more row would
    """
    there = ~np.isnan(probs[:, 0])
    of_row = np.ones(there.sum()) if weight is None else weight[there]
    powers = probs[there] ** sharpness
    of_y = (powers / powers.sum(axis=1, keepdims=True))[np.arange(there.sum()), y[there].astype(int)]
    return float((of_row @ np.log(of_y) - 0.5 * (np.log(sharpness) / spread) ** 2) / of_row.sum())


def scores_on_grid(
    trees: Sequence[et.MetaTree],
    asked: Sequence[np.ndarray],
    make: Callable[..., et.Family],
    grid: dict[str, Sequence[Any]],
    rows: Rows,
    sharpnesses: Sequence[float] = (1.0,),
    spread: float = np.inf,
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Best score and sharpness of every combination of the grid, by refitting without each row."""
    found = {}
    for values in product(*grid.values()):
        parameters = dict(zip(grid, values, strict=True))
        split_prior = parameters.pop("split_prior")
        family = make(**parameters)
        predicted = held_out_predictions(trees, asked, family, split_prior, rows)
        if family.kernel == "categorical":
            found[values] = max((sharpened_score(predicted, rows.y, rows.weight, k, spread), k) for k in sharpnesses)
        else:
            there = ~np.isnan(predicted[:, 0])
            weight = None if rows.weight is None else rows.weight[there]
            found[values] = float(np.average(predicted[there, 0], weights=weight)), 1.0
    return found


def stacking_score(
    weights: np.ndarray, log_probs: np.ndarray, asked: np.ndarray, of_row: np.ndarray | None = None
) -> float:
    """Mean log score of the mixture of the trees that may be asked; all arrays (n_trees, n_rows)."""
    shares = np.where(asked, weights[:, None], 0.0)
    scores = np.log((shares * np.exp(log_probs)).sum(axis=0)) - np.log(shares.sum(axis=0))
    return float(np.average(scores, weights=of_row))


# Mixtures of Student's t


@dataclass(frozen=True)
class StudentMixture:
    """One unit: weights, degrees of freedom, locations and scales of its parts."""

    weight: np.ndarray
    freedom: np.ndarray
    location: np.ndarray
    scale: np.ndarray

    def _standard(self, y: Any) -> np.ndarray:
        return (np.asarray(y)[..., None] - self.location) / self.scale

    def below(self, y: Any) -> np.ndarray:
        return (self.weight * stats.t.cdf(self._standard(y), self.freedom)).sum(axis=-1)

    def above(self, y: Any) -> np.ndarray:
        return (self.weight * stats.t.sf(self._standard(y), self.freedom)).sum(axis=-1)

    def crps(self, y: float) -> float:
        """The integral of P(Y <= x)^2 up to y and of P(Y > x)^2 from there: panels around every part and around y."""
        reach = np.concatenate([[0.0], 2.0 ** np.arange(-3, 40)])
        away = np.concatenate([-reach[:0:-1], reach])
        edges = np.unique(np.append(self.location[:, None] + self.scale[:, None] * away, y))
        nodes, node_weights = np.polynomial.legendre.leggauss(24)
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        x = middle[:, None] + half[:, None] * nodes
        tail = np.where(x < y, self.below(x), self.above(x))
        return float((half[:, None] * node_weights * tail**2).sum())

    def mean_distance(self, y: float) -> float:
        """E|Y - y|, for more than one degree of freedom: E|T - z| = z (2 cdf - 1) + 2 density (nu + z^2) / (nu - 1)."""
        z, nu = self._standard(y), self.freedom
        centred = stats.t.cdf(z, nu) - stats.t.sf(z, nu)
        distance = z * centred + 2.0 * stats.t.pdf(z, nu) * (nu + z**2) / (nu - 1.0)
        return float((self.weight * self.scale * distance).sum())


def student_tail(freedom: float, z: float) -> mpmath.mpf:
    """P(T > z) of Student's t for z >= 0, to 30 digits: by whichever of two hypergeometric series converges."""
    half = mpmath.mpf(1) / 2
    with mpmath.workdps(40 + int(z * z if z * z < freedom else 0)):
        nu, at = mpmath.mpf(freedom), mpmath.mpf(z)
        if at * at > nu:
            return mpmath.betainc(nu / 2, half, 0, nu / (nu + at * at), regularized=True) / 2
        constant = mpmath.exp(mpmath.loggamma(nu / 2 + half) - mpmath.loggamma(nu / 2)) / mpmath.sqrt(mpmath.pi * nu)
        return half - constant * at * mpmath.hyp2f1(half, (nu + 1) / 2, mpmath.mpf(3) / 2, -at * at / nu)
