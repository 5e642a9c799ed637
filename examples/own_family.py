"""A leaf model of your own: waiting times made of several steps.

A request passes k stages one after another, and each stage takes an exponential time of the same unknown rate. The
total time y then has the gamma density

    p(y | rate) = rate^k y^(k-1) exp(-rate y) / Gamma(k).

We know k but not the rate, and before any data we believe rate ~ Gamma(a, b), with density
b^a rate^(a-1) exp(-b rate) / Gamma(a).

**Statistics.** Multiply the densities of n rows:

    product p(y_i | rate) = rate^(n k) exp(-rate S) * exp(C),
    S = sum of y_i,   C = sum of (k-1) log y_i - log Gamma(k).

Everything the rows say about the rate is in n and S; C does not involve the rate but belongs to the evidence. So the
three numbers (n, S, C) summarise any set of rows, they add when sets are joined, and no rows are (0, 0, 0). A row of
weight w counts w times in each.

**Evidence.** As a function of the rate, likelihood times prior is b^a / Gamma(a) * exp(C) times
rate^(a + n k - 1) exp(-(b + S) rate), whose integral over the rate is Gamma(a + n k) / (b + S)^(a + n k). Hence

    log evidence = C + a log b - (a + n k) log(b + S) + log Gamma(a + n k) - log Gamma(a),

and what was integrated is, up to its constant, the posterior of the rate: Gamma(a + n k, b + S).

**Predictive.** One more row has the ratio of two evidences as its density. With A = a + n k and B = b + S that is

    p(y) = y^(k-1) B^A / (B + y)^(A + k) * Gamma(A + k) / (Gamma(A) Gamma(k)),

a beta prime distribution with scale B. Its moments follow from E[y | rate] = k / rate, Var[y | rate] = k / rate^2 and
the gamma posterior's E[1 / rate] = B / (A - 1) and E[1 / rate^2] = B^2 / ((A - 1)(A - 2)), which exist for A > 1 and
A > 2.

Three vectorised methods say all this to everytree; two more let `GenerativeModel` draw from the model.

Run me: ``python examples/own_family.py``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlog1py, xlogy

import everytree as et

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GammaWaiting(et.Family):
    """y ~ Gamma(stages, rate); rate ~ Gamma(shape, prior_rate).

    Statistics: weight n, sum of y, and sum of (stages - 1) log y - log Gamma(stages).

    Being a frozen dataclass gives the family equality, which `merge` asks for, and makes it picklable.

    Parameters
    ----------
    stages : float
        The known shape k of a waiting time; 1 is `et.Exponential`.
    shape, prior_rate : float
        Of the gamma prior of the rate: a and b above.
    """

    stages: float
    shape: float = 1.0
    prior_rate: float = 1.0
    n_statistics: ClassVar[int] = 3

    def statistics(self, y: NDArray[Any], weight: FloatArray, **row_data: Any) -> FloatArray:
        """(n_rows, 3): what each row adds."""
        wrong = ~(np.isfinite(y) & (y > 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"y[{row}] is {y[row]}, but waiting times are positive and finite")
        constant = xlogy(self.stages - 1.0, y) - gammaln(self.stages)
        return weight[:, None] * np.stack([np.ones(len(y)), y, constant], axis=1)

    def log_evidence(self, statistics: FloatArray) -> FloatArray:
        """(n,): the rate integrated out."""
        n, total, constant = statistics.T
        a, b = self.shape, self.prior_rate
        gammas = gammaln(a + n * self.stages) - gammaln(a)
        # a log b - (a + n k) log(b + S), written so that no rows give exactly 0
        return constant + gammas - n * self.stages * np.log(b) - xlog1py(a + n * self.stages, total / b)

    def predictive(self, statistics: FloatArray, **row_data: Any) -> WaitingPredictive:
        """One beta prime distribution for each row of statistics."""
        n, total, _ = statistics.T
        return WaitingPredictive(self.stages, self.shape + n * self.stages, self.prior_rate + total)

    # Optional: only `GenerativeModel` asks for these.

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n_leaves,): the rate of each leaf from its prior."""
        return rng.gamma(self.shape, 1.0 / self.prior_rate, size=len(nodes))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        """(n_rows,): one waiting time for each rate."""
        return rng.gamma(self.stages, 1.0 / theta)


@dataclass(frozen=True)
class WaitingPredictive:
    """Beta prime: a gamma time whose rate is Gamma(shape, rate) itself."""

    stages: float
    shape: FloatArray
    rate: FloatArray

    def mean(self) -> FloatArray:
        """(n,): infinite up to shape 1."""
        existing = self.shape > 1.0
        return np.where(existing, self.stages * self.rate / np.where(existing, self.shape - 1.0, 1.0), np.inf)

    def variance(self) -> FloatArray:
        """(n,): infinite up to shape 2."""
        existing = self.shape > 2.0
        a = np.where(existing, self.shape, 3.0)
        spread = self.stages * (self.stages + a - 1.0) * self.rate**2 / ((a - 1.0) ** 2 * (a - 2.0))
        return np.where(existing, spread, np.inf)

    def log_prob(self, y: FloatArray) -> FloatArray:
        """(n,): log density, minus infinity where no waiting time can be."""
        possible = np.isfinite(y) & (y > 0)
        ratio = np.where(possible, y, 1.0) / self.rate
        constant = betaln(self.stages, self.shape) + np.log(self.rate)
        log_density = xlogy(self.stages - 1.0, ratio) - (self.shape + self.stages) * np.log1p(ratio) - constant
        return np.where(possible, log_density, -np.inf)


def main() -> None:
    """Requests to two servers at two times of day: which of the two matters for the time they take?"""
    family = GammaWaiting(stages=3.0, shape=2.0, prior_rate=1.0)
    tree = et.MetaTree.complete([0, 1, 1], n_children=2)  # first the server, then the time of day

    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(300, 2)).astype(np.uint8)
    rate = np.where(X[:, 0] == 0, 2.0, 0.5)  # the second server is slow; the time of day plays no part
    y = rng.gamma(family.stages, 1.0 / rate)

    post = et.Posterior(tree, family, split_prior=0.5).update(X, y)
    print(f"300 waiting times, log evidence {post.log_evidence:.3f}\n")
    print("node                 prior split   posterior split")
    for node, name in enumerate(["all requests", "server 0", "server 1"]):
        print(f"{name:<20} {post.split_prior[node]:11.3f}   {post.split_prob[node]:15.3f}")

    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8)
    dist = post.predictive(cells)
    print("\nserver  time of day   true mean   predicted mean   predicted std")
    for cell, mean, std in zip(cells, dist.mean(), dist.std(), strict=True):
        true_mean = family.stages / (2.0 if cell[0] == 0 else 0.5)
        print(f"{cell[0]:6}  {cell[1]:11}   {true_mean:9.3f}   {mean:14.3f}   {std:13.3f}")


if __name__ == "__main__":
    main()
