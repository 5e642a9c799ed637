"""Leaf families of the slow oracle: each evidence is the textbook formula, on the raw rows, at 60 digits.

``exact_*`` methods return 60-digit numbers, so that differences of evidences lose nothing; the methods of the
same name without the prefix round the answer to a float. A weight is a power of the row's likelihood.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np
from mpmath import MPContext

# A context of our own: the precision of anybody else's mpmath stays as it is.
mp = MPContext()
mp.dps = 60

Real = Any  # an mp.mpf
Column = Sequence[Any]


def exact(value: Any) -> Real:
    """A float, integer or Fraction as a 60-digit number."""
    if isinstance(value, mp.mpf):
        return value
    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return mp.mpf(float(value))


def exact_all(values: Iterable[Any]) -> list[Real]:
    """`exact` of every value."""
    return [exact(value) for value in values]


def dot(left: Iterable[Any], right: Iterable[Any]) -> Real:
    """The sum of products of two columns."""
    return mp.fsum(a * b for a, b in zip(left, right, strict=True))


def log_rising(start: Real, count: Real) -> Real:
    """log Gamma(start + count) / Gamma(start): a rising factorial, for a real count too."""
    return mp.loggamma(start + count) - mp.loggamma(start)


def rising(start: Any, count: int) -> Fraction:
    """start (start + 1) ... (start + count - 1), exactly."""
    return prod((Fraction(start) + j for j in range(count)), start=Fraction(1))


def integer_weights(ys: Column, weights: Column | None) -> list[int]:
    """Weights for the exact rationals, where only whole numbers keep the evidence rational."""
    whole = [1] * len(ys) if weights is None else [int(w) for w in weights]
    if weights is not None and any(w != given for w, given in zip(whole, weights, strict=True)):
        raise ValueError(f"weights: {list(weights)}, but the evidence is rational for whole weights only")
    return whole


class Family(ABC):
    """The integral of p(y_s | x_s, theta_s) p(theta_s), and the predictives that follow from it."""

    defaults: ClassVar[dict[str, Any]] = {}  # row data that may be left out, and the value it then has

    @abstractmethod
    def _log_evidence(self, ys: list[Real], weights: list[Real], **row_data: Column) -> Real:
        """Log evidence of complete columns."""

    @abstractmethod
    def _moments(
        self, ys: list[Real], weights: list[Real], new: dict[str, Any], **row_data: Column
    ) -> tuple[Real, Real]:
        """Mean and variance of the predictive of a row with data `new`, from complete columns."""

    def _complete(self, ys: Column, weights: Column | None, row_data: dict[str, Column]) -> tuple[Any, Any, Any]:
        """The columns with unit weights and default row data filled in."""
        filled = {name: [value] * len(ys) for name, value in self.defaults.items()} | row_data
        return exact_all(ys), exact_all([1] * len(ys) if weights is None else weights), filled

    def exact_log_evidence(self, ys: Column, weights: Column | None = None, **row_data: Column) -> Real:
        """Log of the integral that Theorem 1 calls q at a leaf; 0 for no rows (the empty product)."""
        ys, weights, row_data = self._complete(ys, weights, row_data)
        return self._log_evidence(ys, weights, **row_data)

    def with_row(
        self,
        y_new: Any,
        ys: Column,
        weights: Column | None = None,
        row_data_new: dict[str, Any] | None = None,
        weight_new: Any = 1,
        **row_data: Column,
    ) -> dict[str, list[Any]]:
        """All columns, with one more row at their end."""
        ys, weights, row_data = self._complete(ys, weights, row_data)
        new = {"ys": y_new, "weights": weight_new, **self.defaults, **(row_data_new or {})}
        old = {"ys": ys, "weights": weights, **row_data}
        return {name: [*old.get(name, []), value] for name, value in new.items()}

    def exact_log_predictive(
        self,
        y_new: Any,
        ys: Column,
        weights: Column | None = None,
        row_data_new: dict[str, Any] | None = None,
        weight_new: Any = 1,
        **row_data: Column,
    ) -> Real:
        """The integral of p(y_i | theta) p(theta | earlier rows) (Proposition 1), by two evidences."""
        longer = self.with_row(y_new, ys, weights, row_data_new, weight_new, **row_data)
        return self.exact_log_evidence(**longer) - self.exact_log_evidence(ys, weights, **row_data)

    def exact_moments(
        self,
        ys: Column,
        weights: Column | None = None,
        row_data_new: dict[str, Any] | None = None,
        **row_data: Column,
    ) -> tuple[Real, Real]:
        """Mean and variance of the predictive of one more row; infinite or nan where they do not exist."""
        ys, weights, row_data = self._complete(ys, weights, row_data)
        return self._moments(ys, weights, self.defaults | (row_data_new or {}), **row_data)

    def log_evidence(self, ys: Column, weights: Column | None = None, **row_data: Column) -> float:
        """`exact_log_evidence` as a float."""
        return float(self.exact_log_evidence(ys, weights, **row_data))

    def log_predictive(self, y_new: Any, ys: Column, weights: Column | None = None, **rest: Any) -> float:
        """`exact_log_predictive` as a float."""
        return float(self.exact_log_predictive(y_new, ys, weights, **rest))

    def predictive_mean(self, ys: Column, weights: Column | None = None, **rest: Any) -> float:
        """Mean of `exact_moments` as a float."""
        return float(self.exact_moments(ys, weights, **rest)[0])

    def predictive_variance(self, ys: Column, weights: Column | None = None, **rest: Any) -> float:
        """Variance of `exact_moments` as a float."""
        return float(self.exact_moments(ys, weights, **rest)[1])


class Categorical(Family):
    """theta ~ Dirichlet(alpha), P(y = c) = theta_c for c = 0, 1, ...; alpha one number or one per class."""

    def __init__(self, n_classes: int, alpha: Any) -> None:
        self.alpha = list(alpha) if isinstance(alpha, Iterable) else [alpha] * n_classes
        if len(self.alpha) != n_classes:
            raise ValueError(f"alpha: {len(self.alpha)} values, but there are {n_classes} classes")

    def _posterior(self, ys: list[Real], weights: list[Real]) -> list[Real]:
        """Dirichlet parameters given the rows."""
        counts = [mp.fsum(w for y, w in zip(ys, weights, strict=True) if y == c) for c in range(len(self.alpha))]
        return [exact(a) + count for a, count in zip(self.alpha, counts, strict=True)]

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """Product over classes of alpha_c rising n_c, over (sum of alpha) rising n."""
        prior, posterior = exact_all(self.alpha), self._posterior(ys, weights)
        classes = (log_rising(a, b - a) for a, b in zip(prior, posterior, strict=True))
        return mp.fsum(classes) - log_rising(mp.fsum(prior), mp.fsum(weights))

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Moments of the class number, from the class probabilities."""
        probs = self.exact_probs(ys, weights)
        mean = mp.fsum(c * p for c, p in enumerate(probs))
        return mean, mp.fsum((c - mean) ** 2 * p for c, p in enumerate(probs))

    def exact_probs(self, ys: Column, weights: Column | None = None) -> list[Real]:
        """P(y_new = c) for each class: the mean of the Dirichlet posterior."""
        ys, weights, _ = self._complete(ys, weights, {})
        posterior = self._posterior(ys, weights)
        return [a / mp.fsum(posterior) for a in posterior]

    def predictive_probs(self, ys: Column, weights: Column | None = None) -> np.ndarray:
        """`exact_probs` as floats."""
        return np.array([float(p) for p in self.exact_probs(ys, weights)])

    def evidence_fraction(self, ys: Column, weights: Column | None = None) -> Fraction:
        """The evidence as an exact rational; whole weights only."""
        whole = integer_weights(ys, weights)
        counts = [sum(w for y, w in zip(ys, whole, strict=True) if int(y) == c) for c in range(len(self.alpha))]
        classes = prod(rising(a, count) for a, count in zip(self.alpha, counts, strict=True))
        return classes / rising(sum(map(Fraction, self.alpha)), sum(whole))


class Bernoulli(Categorical):
    """theta ~ Beta(alpha, beta), P(y = 1) = theta: two classes, class 1 having parameter alpha."""

    def __init__(self, alpha: Any, beta: Any) -> None:
        super().__init__(2, [beta, alpha])


class Poisson(Family):
    """lambda ~ Gamma(shape, rate), y ~ Poisson(lambda * exposure)."""

    defaults: ClassVar[dict[str, Any]] = {"exposure": 1}

    def __init__(self, shape: Any, rate: Any) -> None:
        self.shape, self.rate = exact(shape), exact(rate)

    def _log_evidence(self, ys: list[Real], weights: list[Real], exposure: Column) -> Real:
        """Product of (exposure^y / y!)^w, times rate^shape Gamma(shape') / (Gamma(shape) rate'^shape')."""
        exposure = exact_all(exposure)
        count, total = dot(weights, ys), dot(weights, exposure)
        rows = dot(weights, [mp.log(e**y / mp.factorial(y)) for e, y in zip(exposure, ys, strict=True)])
        powers = self.shape * mp.log(self.rate) - (self.shape + count) * mp.log(self.rate + total)
        return rows + log_rising(self.shape, count) + powers

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any], exposure: Column) -> tuple[Real, Real]:
        """Moments of the negative binomial: y is Poisson given a Gamma lambda * exposure."""
        shape, rate = self.shape + dot(weights, ys), self.rate + dot(weights, exact_all(exposure))
        factor = exact(new["exposure"])
        return factor * shape / rate, factor * shape / rate + factor**2 * shape / rate**2


class Exponential(Family):
    """lambda ~ Gamma(shape, rate), density lambda exp(-lambda y), exp(-lambda y) for a censored row."""

    defaults: ClassVar[dict[str, Any]] = {"censored": 0}

    def __init__(self, shape: Any, rate: Any) -> None:
        self.shape, self.rate = exact(shape), exact(rate)

    def _posterior(self, ys: list[Real], weights: list[Real], censored: Column) -> tuple[Real, Real]:
        """Gamma parameters given the rows: events add to the shape, time to the rate."""
        events = mp.fsum(w for w, c in zip(weights, censored, strict=True) if not c)
        return self.shape + events, self.rate + dot(weights, ys)

    def _log_evidence(self, ys: list[Real], weights: list[Real], censored: Column) -> Real:
        """rate^shape Gamma(shape') / (Gamma(shape) rate'^shape')."""
        shape, rate = self._posterior(ys, weights, censored)
        powers = self.shape * mp.log(self.rate) - shape * mp.log(rate)
        return log_rising(self.shape, shape - self.shape) + powers

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any], censored: Column) -> tuple[Real, Real]:
        """Moments of the Lomax distribution of an uncensored new y."""
        shape, rate = self._posterior(ys, weights, censored)
        mean = rate / (shape - 1) if shape > 1 else mp.inf
        variance = shape * rate**2 / ((shape - 1) ** 2 * (shape - 2)) if shape > 2 else mp.inf
        return mean, variance


class Survival(Family):
    """Hazards in cells of time: the sum over all ways to halve the cells, halves of halves included."""

    defaults: ClassVar[dict[str, Any]] = {"censored": 0, "entry": 0, "log_hazard": 0}

    def __init__(self, lengths: Column, shape: Any, time_prior: Any) -> None:
        self.lengths, self.shape, self.time_prior = exact_all(lengths), exact(shape), exact(time_prior)

    def _divisions(self, cells: list[int]) -> list[tuple[Real, list[list[int]]]]:
        """Every way to divide cells into parts that have one factor, with its prior probability."""
        if len(cells) == 1:
            return [(mp.mpf(1), [cells])]
        half = len(cells) // 2
        found = [(1 - self.time_prior, [cells])]
        for p, first in self._divisions(cells[:half]):
            found += [(self.time_prior * p * q, first + second) for q, second in self._divisions(cells[half:])]
        return found

    def _all_divisions(self) -> list[tuple[Real, list[list[int]]]]:
        return self._divisions(list(range(len(self.lengths))))

    def _observed(self, y: Real, entry: Real, cell: int) -> Real:
        """How much of a cell lies between the entry and y; the last cell has no end."""
        end = mp.inf if cell == len(self.lengths) - 1 else mp.mpf(cell + 1)
        return max(min(y, end) - max(entry, mp.mpf(cell)), mp.mpf(0))

    def _cell(self, y: Real) -> int:
        return int(min(max(mp.ceil(y) - 1, 0), len(self.lengths) - 1))

    def _counts(self, ys: list[Real], weights: list[Real], columns: dict[str, Column]) -> tuple[list[Real], list[Real]]:
        """Events and accumulated baseline hazard of each cell."""
        events, exposed = [mp.mpf(0)] * len(self.lengths), [mp.mpf(0)] * len(self.lengths)
        rows = zip(ys, weights, columns["censored"], columns["entry"], columns["log_hazard"], strict=True)
        for y, w, censored, entry, log_hazard in rows:
            for cell, length in enumerate(self.lengths):
                exposed[cell] += w * mp.exp(exact(log_hazard)) * length * self._observed(y, exact(entry), cell)
            if not censored:
                events[self._cell(y)] += w
        return events, exposed

    def _log_terms(self, events: list[Real], exposed: list[Real]) -> list[Real]:
        """The log of the prior times the evidence of each division."""
        a, found = self.shape, []
        for p, parts in self._all_divisions():
            total = mp.log(p)
            for part in parts:
                d, e = mp.fsum(events[k] for k in part), mp.fsum(exposed[k] for k in part)
                total += a * mp.log(a) + log_rising(a, d) - (a + d) * mp.log(a + e)
            found.append(total)
        return found

    def _log_evidence(self, ys: list[Real], weights: list[Real], **columns: Column) -> Real:
        events, exposed = self._counts(ys, weights, columns)
        density = mp.mpf(0)
        for y, w, censored, log_hazard in zip(ys, weights, columns["censored"], columns["log_hazard"], strict=True):
            if not censored:
                density += w * (exact(log_hazard) + mp.log(self.lengths[self._cell(y)]))
        return mp.log(mp.fsum(mp.exp(term) for term in self._log_terms(events, exposed))) + density

    def _moments(
        self, ys: list[Real], weights: list[Real], new: dict[str, Any], **columns: Column
    ) -> tuple[Real, Real]:
        """Integrals of S and 2 y S over each cell, for each division."""
        events, exposed = self._counts(ys, weights, columns)
        terms = self._log_terms(events, exposed)
        top = max(terms)
        total = mp.fsum(mp.exp(term - top) for term in terms)
        entry, hazard = exact(new.get("entry", 0)), mp.exp(exact(new.get("log_hazard", 0)))
        mean, square = entry, entry**2
        for term, (_, parts) in zip(terms, self._all_divisions(), strict=True):
            share, before = mp.exp(term - top) / total, mp.mpf(1)
            for part in parts:
                s = self.shape + mp.fsum(events[k] for k in part)
                b = rate = self.shape + mp.fsum(exposed[k] for k in part)
                for cell in part:
                    start, is_last = max(entry, mp.mpf(cell)), cell == len(self.lengths) - 1
                    if not is_last and cell + 1 <= entry:
                        continue
                    c = hazard * self.lengths[cell]
                    q = mp.inf if is_last else 1 + c * (cell + 1 - start) / b
                    if is_last and s <= 2:
                        return (mp.inf if s <= 1 else mp.nan), mp.inf
                    first = (1 - (0 if is_last else q ** (1 - s))) / (s - 1)
                    second = (1 - (0 if is_last else q ** (2 - s))) / (s - 2) - first
                    factor = share * before * (b / rate) ** -s
                    mean += factor * first * b / c
                    square += 2 * factor * (start * first * b / c + second * (b / c) ** 2)
                    b = b if is_last else b * q
                before *= (b / rate) ** -s
        return mean, square - mean**2


class Geometric(Family):
    """theta ~ Beta(alpha, beta), P(y) = theta (1 - theta)^y for y = 0, 1, 2, ..."""

    def __init__(self, alpha: Any, beta: Any) -> None:
        self.alpha, self.beta = alpha, beta

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """alpha rising n, times beta rising (sum of y), over (alpha + beta) rising (n + sum of y)."""
        alpha, beta, stops, passes = exact(self.alpha), exact(self.beta), mp.fsum(weights), dot(weights, ys)
        return log_rising(alpha, stops) + log_rising(beta, passes) - log_rising(alpha + beta, stops + passes)

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Total mean and variance, from the moments of 1 / theta under the Beta posterior."""
        alpha, beta = exact(self.alpha) + mp.fsum(weights), exact(self.beta) + dot(weights, ys)
        if alpha <= 1:
            return mp.inf, mp.inf
        inverse = (alpha + beta - 1) / (alpha - 1)
        if alpha <= 2:
            return inverse - 1, mp.inf
        inverse_square = inverse * (alpha + beta - 2) / (alpha - 2)
        return inverse - 1, 2 * inverse_square - inverse - inverse**2

    def evidence_fraction(self, ys: Column, weights: Column | None = None) -> Fraction:
        """The evidence as an exact rational; whole weights only."""
        whole = integer_weights(ys, weights)
        stops, passes = sum(whole), sum(w * int(y) for w, y in zip(whole, ys, strict=True))
        above = rising(self.alpha, stops) * rising(self.beta, passes)
        return above / rising(Fraction(self.alpha) + Fraction(self.beta), stops + passes)


def student_moments(mean: Real, shape: Real, spread: Real) -> tuple[Real, Real]:
    """Moments of a Student t with 2 shape degrees of freedom and squared scale spread / shape."""
    if shape <= mp.mpf(1) / 2:
        return mp.nan, mp.nan
    return mean, spread / (shape - 1) if shape > 1 else mp.inf


class Normal(Family):
    """1/sigma^2 ~ Gamma(shape, rate=scale), mu ~ N(mean, sigma^2 / strength), y ~ N(mu, sigma^2)."""

    def __init__(self, mean: Any, strength: Any, shape: Any, scale: Any) -> None:
        self.mean, self.strength, self.shape, self.scale = exact_all([mean, strength, shape, scale])

    def _posterior(self, ys: list[Real], weights: list[Real]) -> tuple[Real, Real, Real, Real]:
        """The four parameters given the rows, by the sum of squares around the average."""
        count = mp.fsum(weights)
        average = dot(weights, ys) / count if count > 0 else self.mean
        strength = self.strength + count
        mean = (self.strength * self.mean + count * average) / strength
        within = dot(weights, [(y - average) ** 2 for y in ys])
        between = self.strength * count * (average - self.mean) ** 2 / strength
        return mean, strength, self.shape + count / 2, self.scale + (within + between) / 2

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """Ratio of the normal-gamma constants before and after, times (2 pi)^(-n / 2)."""
        _, strength, shape, scale = self._posterior(ys, weights)
        count = mp.fsum(weights)
        gammas = log_rising(self.shape, count / 2)
        scales = self.shape * mp.log(self.scale) - shape * mp.log(scale)
        return gammas + scales + (mp.log(self.strength / strength) - count * mp.log(2 * mp.pi)) / 2

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Moments of the Student t predictive."""
        mean, strength, shape, scale = self._posterior(ys, weights)
        return student_moments(mean, shape, scale * (1 + 1 / strength))


class LogNormal(Family):
    """mu ~ N(mean, sigma^2 / strength), log y ~ N(mu, sigma^2)."""

    def __init__(self, mean: Any, strength: Any, sigma: Any) -> None:
        self.mean, self.strength, self.sigma = exact_all([mean, strength, sigma])

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """log of the integral over mu, completing the square, and the change of variable from log y to y."""
        logs, count = [mp.log(y) for y in ys], mp.fsum(weights)
        strength = self.strength + count
        mean = (self.strength * self.mean + dot(weights, logs)) / strength
        squares = dot(weights, [(x - mean) ** 2 for x in logs]) + self.strength * (self.mean - mean) ** 2
        constant = mp.log(self.strength / strength) / 2 - count * mp.log(2 * mp.pi * self.sigma**2) / 2
        return constant - squares / (2 * self.sigma**2) - dot(weights, logs)

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Moments of a log-normal."""
        strength = self.strength + mp.fsum(weights)
        mean = (self.strength * self.mean + dot(weights, [mp.log(y) for y in ys])) / strength
        variance = self.sigma**2 * (1 + 1 / strength)
        first = mp.exp(mean + variance / 2)
        return first, first**2 * mp.expm1(variance)


class LinearRegression(Family):
    """1/sigma^2 ~ Gamma(shape, rate=scale), coef ~ N(mean, sigma^2 precision^-1), y ~ N(x'coef, sigma^2)."""

    def __init__(self, n_inputs: int, precision: Any, shape: Any, scale: Any, mean: Any = 0) -> None:
        self.n_inputs, self.shape, self.scale = n_inputs, exact(shape), exact(scale)
        self.mean = mp.matrix(exact_all(mean if isinstance(mean, Iterable) else [mean] * n_inputs))
        if isinstance(precision, Iterable):
            self.precision = mp.matrix([exact_all(row) for row in precision])
        else:
            self.precision = exact(precision) * mp.eye(n_inputs)

    def _posterior(self, ys: list[Real], weights: list[Real], inputs: Column) -> tuple[Any, Any, Real, Real]:
        """Coefficients, precision, shape and scale given the rows, by the residuals of the fit."""
        rows = [mp.matrix(exact_all(row)) for row in inputs]
        precision, target = self.precision.copy(), self.precision * self.mean
        for x, y, w in zip(rows, ys, weights, strict=True):
            precision, target = precision + w * (x * x.T), target + w * y * x
        coef = mp.lu_solve(precision, target)
        residuals = dot(weights, [(y - dot(x, coef)) ** 2 for x, y in zip(rows, ys, strict=True)])
        shift = coef - self.mean
        shrinkage = dot(shift, self.precision * shift)
        return coef, precision, self.shape + mp.fsum(weights) / 2, self.scale + (residuals + shrinkage) / 2

    def _log_evidence(self, ys: list[Real], weights: list[Real], inputs: Column = ()) -> Real:
        """Ratio of the normal-gamma constants before and after, times (2 pi)^(-n / 2)."""
        _, precision, shape, scale = self._posterior(ys, weights, inputs)
        count = mp.fsum(weights)
        gammas = log_rising(self.shape, count / 2)
        scales = self.shape * mp.log(self.scale) - shape * mp.log(scale)
        determinants = mp.log(mp.det(self.precision) / mp.det(precision))
        return gammas + scales + (determinants - count * mp.log(2 * mp.pi)) / 2

    def _moments(
        self, ys: list[Real], weights: list[Real], new: dict[str, Any], inputs: Column = ()
    ) -> tuple[Real, Real]:
        """Moments of the Student t predictive at the new inputs."""
        coef, precision, shape, scale = self._posterior(ys, weights, inputs)
        x = mp.matrix(exact_all(new["inputs"]))
        return student_moments(dot(x, coef), shape, scale * (1 + dot(x, mp.lu_solve(precision, x))))


class Histogram(Family):
    """Shares of cells with a Polya tree as prior: each part's left half has a Beta share of it."""

    def __init__(self, edges: Any, shares: Any, strength: Any, tails: Any) -> None:
        self.edges, self.strength = exact_all(edges), exact(strength)
        self.shares, self.tails = exact_all(shares), exact_all(tails)
        self.n_cells = len(self.shares)

    def _cell(self, y: Real) -> int:
        """The number of the cell: an atom, or the one that ends at or beyond y."""
        for k in range(1, self.n_cells - 1):
            if self.edges[k - 1] == y == self.edges[k]:
                return k
        return next((k for k, edge in enumerate(self.edges) if y <= edge), self.n_cells - 1)

    def _log_density(self, y: Real) -> Real:
        cell = self._cell(y)
        if cell in (0, self.n_cells - 1):
            tail = self.tails[cell > 0]
            away = self.edges[0] - y if cell == 0 else y - self.edges[-1]
            return -away / tail - mp.log(tail)
        width = self.edges[cell] - self.edges[cell - 1]
        return -mp.log(width) if width > 0 else mp.mpf(0)

    def _parts(self) -> Iterable[tuple[range, range, Real, Real]]:
        """Left and right cells of each halving, and the parameters of its Beta distribution."""
        waiting = [(0, self.n_cells, self.strength)]
        while waiting:
            first, last, strength = waiting.pop()
            if last - first == 1:
                continue
            middle = first + (last - first) // 2
            left, right = range(first, middle), range(middle, last)
            alpha, beta = (mp.fsum(self.shares[k] for k in part) for part in (left, right))
            yield left, right, strength * alpha / (alpha + beta), strength * beta / (alpha + beta)
            waiting += [(first, middle, 2 * strength), (middle, last, 2 * strength)]

    def _counts(self, ys: list[Real], weights: list[Real]) -> list[Real]:
        counts = [mp.mpf(0)] * self.n_cells
        for y, w in zip(ys, weights, strict=True):
            counts[self._cell(y)] += w
        return counts

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """A ratio of beta functions for each halving, and the densities inside cells."""
        counts, total = self._counts(ys, weights), dot(weights, [self._log_density(y) for y in ys])
        for left, right, a, b in self._parts():
            n, m = (mp.fsum(counts[k] for k in part) for part in (left, right))
            total += mp.log(mp.beta(a + n, b + m) / mp.beta(a, b))
        return total

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Sums over cells."""
        counts, shares = self._counts(ys, weights), [mp.mpf(1)] * self.n_cells
        for left, right, a, b in self._parts():
            n, m = (mp.fsum(counts[k] for k in part) for part in (left, right))
            for part, of_part in ((left, a + n), (right, b + m)):
                for k in part:
                    shares[k] *= of_part / (a + b + n + m)
        low, high = self.edges[0] - self.tails[0], self.edges[-1] + self.tails[1]
        inner = [(a + b) / 2 for a, b in zip(self.edges, self.edges[1:], strict=False)]
        spread = [(b - a) ** 2 / 12 for a, b in zip(self.edges, self.edges[1:], strict=False)]
        means, variances = [low, *inner, high], [self.tails[0] ** 2, *spread, self.tails[1] ** 2]
        mean = dot(shares, means)
        return mean, dot(shares, [v + (m - mean) ** 2 for v, m in zip(variances, means, strict=True)])


class OfShapes(Family):
    """A shape is one of a few, each with a prior probability; given it, a conjugate family."""

    def __init__(self, mean: Any, strength: Any, shapes: Column, probs: Column) -> None:
        self.mean, self.strength, self.shapes = exact(mean), exact(strength), exact_all(shapes)
        given = exact_all(probs)
        self.probs = [p / mp.fsum(given) for p in given]

    @abstractmethod
    def _prior(self, shape: Real) -> tuple[Real, Real]:
        """The two parameters of the conjugate prior."""

    @abstractmethod
    def _given(self, shape: Real, ys: list[Real], weights: list[Real], *columns: Column) -> tuple[Real, Real, Real]:
        """Log evidence, and the two parameters given the rows."""

    @abstractmethod
    def _moments_given(self, shape: Real, a: Real, b: Real, new: dict[str, Any]) -> tuple[Real, Real]:
        """First and second moment of a new row."""

    def _log_evidence(self, ys: list[Real], weights: list[Real], **columns: Column) -> Real:
        """The average of the evidences."""
        terms = [self._given(shape, ys, weights, *columns.values())[0] for shape in self.shapes]
        return mp.log(dot(self.probs, [mp.exp(term) for term in terms]))

    def _moments(
        self, ys: list[Real], weights: list[Real], new: dict[str, Any], **columns: Column
    ) -> tuple[Real, Real]:
        """Moments of the mixture, whose weights are proportional to prior probability times evidence."""
        given = [self._given(shape, ys, weights, *columns.values()) for shape in self.shapes]
        weight = [p * mp.exp(term) for p, (term, _, _) in zip(self.probs, given, strict=True)]
        moments = [self._moments_given(s, a, b, new) for s, (_, a, b) in zip(self.shapes, given, strict=True)]
        first, second = (dot(weight, column) / mp.fsum(weight) for column in zip(*moments, strict=True))
        return first, second - first**2


class Gamma(OfShapes):
    """rate ~ Gamma(a, b), y ~ Gamma(shape, rate)."""

    def _prior(self, shape: Real) -> tuple[Real, Real]:
        """Such that E[y] = E[shape / rate] = shape b / (a - 1) is the mean."""
        a = 2 + shape * self.strength
        return a, self.mean * (a - 1) / shape

    def _given(self, shape: Real, ys: list[Real], weights: list[Real], *columns: Column) -> tuple[Real, Real, Real]:
        """Densities rate^shape y^(shape - 1) exp(-rate y) / Gamma(shape), integrated over the rate."""
        a, b = self._prior(shape)
        after_a, after_b = a + shape * mp.fsum(weights), b + dot(weights, ys)
        rows = dot(weights, [(shape - 1) * mp.log(y) - mp.loggamma(shape) for y in ys])
        powers = a * mp.log(b) - after_a * mp.log(after_b)
        return rows + mp.loggamma(after_a) - mp.loggamma(a) + powers, after_a, after_b

    def _moments_given(self, shape: Real, a: Real, b: Real, new: dict[str, Any]) -> tuple[Real, Real]:
        """E[shape / rate] and E[shape (shape + 1) / rate^2]."""
        return shape * b / (a - 1), shape * (shape + 1) * b**2 / ((a - 1) * (a - 2))


class Weibull(OfShapes):
    """rate ~ Gamma(a, b), P(Y > y) = exp(-rate y^shape)."""

    defaults: ClassVar[dict[str, Any]] = {"censored": 0}

    def _prior(self, shape: Real) -> tuple[Real, Real]:
        """Such that E[y] = Gamma(1 + 1 / shape) E[rate^(-1 / shape)] is the mean."""
        a = self.strength + 2 / shape
        of_unit = mp.gamma(1 + 1 / shape) * mp.gamma(a - 1 / shape) / mp.gamma(a)
        return a, (self.mean / of_unit) ** shape

    def _given(self, shape: Real, ys: list[Real], weights: list[Real], *columns: Column) -> tuple[Real, Real, Real]:
        """Hazards rate shape y^(shape - 1) of the events, survival exp(-rate y^shape) of all rows."""
        a, b = self._prior(shape)
        events = [w * (1 - exact(c)) for w, c in zip(weights, columns[0], strict=True)]
        after_a, after_b = a + mp.fsum(events), b + dot(weights, [y**shape for y in ys])
        rows = dot(events, [mp.log(shape) + (shape - 1) * mp.log(y) for y in ys])
        powers = a * mp.log(b) - after_a * mp.log(after_b)
        return rows + mp.loggamma(after_a) - mp.loggamma(a) + powers, after_a, after_b

    def _moments_given(self, shape: Real, a: Real, b: Real, new: dict[str, Any]) -> tuple[Real, Real]:
        """E[y^k] = Gamma(1 + k / shape) E[rate^(-k / shape)]."""
        first, second = (
            mp.gamma(1 + k / shape) * b ** (k / shape) * mp.gamma(a - k / shape) / mp.gamma(a) for k in (1, 2)
        )
        return first, second


class NegativeBinomial(OfShapes):
    """p ~ Beta(a, b), y ~ NegativeBinomial(shape * exposure, p)."""

    defaults: ClassVar[dict[str, Any]] = {"exposure": 1}

    def _prior(self, shape: Real) -> tuple[Real, Real]:
        """Such that E[y] = shape E[(1 - p) / p] = shape b / (a - 1) is the mean."""
        a = 2 + shape * self.strength
        return a, self.mean * (a - 1) / shape

    def _given(self, shape: Real, ys: list[Real], weights: list[Real], *columns: Column) -> tuple[Real, Real, Real]:
        """Probabilities Gamma(r + y) / (Gamma(r) y!) p^r (1 - p)^y, integrated over p."""
        a, b = self._prior(shape)
        sizes = [shape * e for e in exact_all(columns[0])]
        after_a, after_b = a + dot(weights, sizes), b + dot(weights, ys)
        ways = [mp.loggamma(r + y) - mp.loggamma(r) - mp.loggamma(y + 1) for r, y in zip(sizes, ys, strict=True)]
        beta = mp.log(mp.beta(after_a, after_b)) - mp.log(mp.beta(a, b))
        return dot(weights, ways) + beta, after_a, after_b

    def _moments_given(self, shape: Real, a: Real, b: Real, new: dict[str, Any]) -> tuple[Real, Real]:
        """Of (1 - p) / p times r, and the variance r (1 - p) / p^2 given p."""
        r = shape * exact(new["exposure"])
        first, square = b / (a - 1), b * (b + 1) / ((a - 1) * (a - 2))
        return r * first, r**2 * square + r * (first + square)


class Hurdle(Family):
    """P(y != 0) = theta ~ Beta(alpha, beta); given y != 0, y - shift is of another family."""

    def __init__(self, amounts: Family, alpha: Any, beta: Any, shift: int) -> None:
        self.amounts, self.alpha, self.beta, self.shift = amounts, exact(alpha), exact(beta), shift

    def _parts(self, ys: list[Real], weights: list[Real]) -> tuple[Real, Real, tuple[list[Real], list[Real]]]:
        """Weights of rows that are not 0 and that are, and the amounts with their weights."""
        some = [(y - self.shift, w) for y, w in zip(ys, weights, strict=True) if y != 0]
        zeros = mp.fsum(w for y, w in zip(ys, weights, strict=True) if y == 0)
        return mp.fsum(w for _, w in some), zeros, ([y for y, _ in some], [w for _, w in some])

    def _log_evidence(self, ys: list[Real], weights: list[Real]) -> Real:
        """Beta integral, times the evidence of the amounts."""
        n_some, zeros, amounts = self._parts(ys, weights)
        beta = mp.log(mp.beta(self.alpha + n_some, self.beta + zeros)) - mp.log(mp.beta(self.alpha, self.beta))
        return beta + self.amounts.exact_log_evidence(*amounts)

    def _moments(self, ys: list[Real], weights: list[Real], new: dict[str, Any]) -> tuple[Real, Real]:
        """Moments of 0 or an amount."""
        n_some, zeros, amounts = self._parts(ys, weights)
        share = (self.alpha + n_some) / (self.alpha + self.beta + n_some + zeros)
        mean, variance = self.amounts.exact_moments(*amounts)
        first, second = share * (mean + self.shift), share * (variance + (mean + self.shift) ** 2)
        return first, second - first**2
