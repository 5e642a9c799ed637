"""Zero or not, and how much if not: a hurdle in front of a family of counts or of positive amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily, hyperparameter
from everytree.families.link import RowData
from everytree.families.prior_search import STRENGTHS, Search
from everytree.families.traits import COUNTS, Seen, Support

AMOUNTS = Support("numbers from 0 on", 0.0, needs_some_above=True)
SOME_COUNTS = replace(COUNTS, needs_some_above=True)


@dataclass(frozen=True, eq=False)
class Hurdle(NativeFamily):
    """P(y != 0) = theta ~ Beta(alpha, beta); given y != 0, y - 1 is a count, or y an amount, of another family.

    Densities of amounts and the probability of 0 are of different kinds: log scores can be compared with those of
    families that have a probability at 0 as well, `crps` with those of all. Statistics: the weights of the rows that
    are not 0 and that are, then those of the other family.

    Parameters
    ----------
    amounts : Family
        Leaf model of counts from 0 on, which are those of the target less one, or of positive numbers; built-in. What
        it knows of rows, such as an exposure, is not given.
    alpha, beta : float or (n_nodes,) array_like
        Of the beta prior of not being 0.

    Examples
    --------
    >>> import everytree as et
    >>> leaf = et.Hurdle(et.Poisson(2.0, 1.0))
    >>> seen = leaf.statistics([0, 0, 0, 4, 7]).sum(axis=0, keepdims=True)
    >>> leaf.predictive(seen).log_prob([0.0]).round(3)  # (1 + 3) / (2 + 5)
    array([-0.56])
    """

    kernel: ClassVar[str] = "hurdle"
    mass: ClassVar[slice | None] = slice(0, 2)
    amounts: NativeFamily
    alpha: ArrayLike = 1.0
    beta: ArrayLike = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.amounts, NativeFamily) or not can_follow(type(self.amounts)):
            must = "a built-in family of counts from 0 on or of positive numbers"
            raise TypeError(f"amounts must be {must}, but is {self.amounts!r:.200}")
        inner = self.amounts.never_negative
        known = range(self.amounts.n_statistics) if inner is None else inner
        support = support_with_zero(type(self.amounts))
        for name, value in {
            "alpha": hyperparameter("alpha", self.alpha), "beta": hyperparameter("beta", self.beta),
            "size": self.amounts.size, "never_negative": (0, 1, *(2 + k for k in known)), "support": support,
            "default_row_data": self.amounts.default_row_data, "has_one_noise": self.amounts.has_one_noise,
            "kernel": f"{'counts_' if support.is_whole else ''}or_zero {self.amounts.kernel}",
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)
        self._freeze()

    @property
    def name(self) -> str:
        return f"hurdle_{self.amounts.name}"

    def _hyperparameters(self) -> FloatArray:
        parts = [np.atleast_1d(self.alpha)[:, None], np.atleast_1d(self.beta)[:, None], self.amounts.hyper]
        n_nodes = max(map(len, parts))
        if any(len(part) not in (1, n_nodes) for part in parts):
            raise ValueError(f"hyperparameters disagree about the number of nodes: {[len(part) for part in parts]}")
        return np.concatenate([np.broadcast_to(part, (n_nodes, part.shape[1])) for part in parts], axis=1)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        return same if same is not True else self.amounts == other.amounts  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.amounts))

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, :2].sum(axis=1), "rows")

    def warn_about(self, statistics: FloatArray) -> None:
        self.amounts.warn_about(np.ascontiguousarray(statistics[:, 2:]))

    def additive(self, statistics: FloatArray) -> FloatArray:
        return np.ascontiguousarray(statistics)

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        rows = self.checked_statistics(statistics)
        alpha, beta = self.summarise(rows)[:, :2].T
        return {"alpha": alpha, "beta": beta, **self.amounts.posterior_parameters(np.ascontiguousarray(rows[:, 2:]))}

    def components(self, summary: FloatArray, **row_data: Any) -> HurdleComponents:
        amounts = self.amounts.components(np.ascontiguousarray(summary[:, 2:]))
        return HurdleComponents(summary[:, 0], summary[:, 1], amounts, float(self.support.is_whole))

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, 1 + ...): the probability not to be 0, and the parameters of the amounts."""
        alpha, beta = np.broadcast_to(self.at(nodes).hyper[:, :2], (len(nodes), 2)).T
        return np.column_stack([rng.beta(alpha, beta), self.amounts.sample_parameters(nodes, rng)])

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[Any]:
        inner = theta[:, 1:] if theta.shape[1] > 2 else theta[:, 1]
        amounts = self.amounts.sample_targets(inner, rng) + int(self.support.is_whole)
        return np.where(rng.random(len(theta)) < theta[:, 0], amounts, 0)


def can_follow(amounts: type[NativeFamily]) -> bool:
    """Whether a hurdle can stand in front of a family: counts from 0 on, or positive numbers."""
    support = amounts.support
    return not amounts.has_classes and support.lowest == 0.0 and (support.is_whole or support.is_open)


def support_with_zero(amounts: type[NativeFamily]) -> Support:
    return SOME_COUNTS if amounts.support.is_whole else AMOUNTS


@cache
def hurdle_before(amounts: type[NativeFamily]) -> type[Hurdle]:
    """The hurdle in front of a family, as estimators ask it for priors; leaves are instances of `Hurdle`."""

    class HurdleBefore(Hurdle):
        support = support_with_zero(amounts)
        grows_standardised = True
        has_one_noise = amounts.has_one_noise

        @classmethod
        def is_candidate(cls, y: FloatArray, row_names: Iterable[str]) -> bool:
            """Only where there are zeros, and for the amounts that vary: other hurdles are special cases."""
            above = y[y > 0.0] - float(cls.support.is_whole)
            has_both = bool((y >= 0.0).all()) and 0 < len(above) < len(y)
            return has_both and not [*row_names] and amounts.is_candidate(above, ())

        @classmethod
        def makes(cls, family: object) -> bool:
            return isinstance(family, Hurdle) and amounts.makes(family.amounts)

        @classmethod
        def prior_search(
            cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
        ) -> Search:
            """Search the prior of the amounts, and `zeros`, the rows that the prior share of zeros is worth."""
            some = y > 0.0
            share = (float(np.average(some, weights=weight)) * len(y) + 0.5) / (len(y) + 1.0)
            above, of_above = (y[some], None if weight is None else weight[some]) if some.any() else (np.ones(1), None)
            own = {name: value for name, value in given.items() if name == "zeros"}
            others = {name: value for name, value in given.items() if name != "zeros"}
            search = amounts.prior_search(above - float(cls.support.is_whole), of_above, {}, others, split_prior)
            zeros = own.get("zeros", "auto")
            stages = [*search.stages, *([{"zeros": (0.3, 1.0, 3.0)}] if isinstance(zeros, str) else [])]

            def make(zeros: float, **parameters: Any) -> Hurdle:
                return Hurdle(search.make(**parameters), zeros * share, zeros * (1.0 - share))

            start = {**search.start, "zeros": 1.0 if isinstance(zeros, str) else zeros}
            return replace(
                search, make=make, start=start, stages=stages, ladders={**search.ladders, "zeros": STRENGTHS}
            )

        @classmethod
        def to_grow_on(
            cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
        ) -> tuple[FloatArray, FloatArray | None]:
            """What trees of the amounts follow, in standard deviations, zeros two below the mean; of counts these."""
            if cls.support.is_whole:
                return y, weight
            some = y > 0.0
            follow, _ = amounts.to_grow_on(y[some], None if weight is None else weight[some], {})
            size = max(float(np.std(follow)), 1e-300)
            out = np.full(len(y), -2.0)
            out[some] = (follow - float(np.mean(follow))) / size
            return out, weight

    HurdleBefore.__name__ = f"Hurdle before {amounts.__name__}"
    return HurdleBefore


class HurdleComponents:
    """0 with a beta-distributed probability, else `shift` plus an amount.

    Parameters
    ----------
    alpha, beta : (n,) float64
        Of the probability not to be 0.
    amounts : Components
    shift : float
        1 for counts.
    """

    lowest = 0.0

    def __init__(self, alpha: FloatArray, beta: FloatArray, amounts: Any, shift: float) -> None:
        self._alpha, self._beta, self._amounts, self._shift = alpha, beta, amounts, shift
        self._some = alpha / (alpha + beta)
        self.is_discrete = shift > 0.0
        if hasattr(amounts, "apart"):
            self.apart = self._apart

    def _apart(self) -> tuple[Any, FloatArray, int]:
        """The same with one part of the amounts each, the log of the weight of each, and their number."""
        parts, log_weights, n = self._amounts.apart()
        alpha, beta = np.repeat(self._alpha, n), np.repeat(self._beta, n)
        return HurdleComponents(alpha, beta, parts, self._shift), log_weights, n

    def mean(self) -> FloatArray:
        return np.asarray(self._some * (self._shift + self._amounts.mean()))

    def variance(self) -> FloatArray:
        amount = self._shift + self._amounts.mean()
        return np.asarray(self._some * (self._amounts.variance() + (1.0 - self._some) * amount**2))

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to unknown parameters, of being 0 and of the amounts."""
        amount, of_some = self._shift + self._amounts.mean(), self._some * (1.0 - self._some)
        of_some = of_some / (self._alpha + self._beta + 1.0)
        of_amount = self._amounts.variance() * self._amounts.parameter_share()
        return np.asarray(((of_some + self._some**2) * of_amount + of_some * amount**2) / self.variance())

    def log_prob(self, y: FloatArray) -> FloatArray:
        """Log density, of 0 and of counts the log probability."""
        y = np.asarray(y, dtype=np.float64)
        is_zero = y == 0.0
        above = np.log(self._some) + self._amounts.log_prob(np.where(is_zero, 1.0, y - self._shift))
        return np.where(is_zero, np.log1p(-self._some), above)

    def cdf(self, y: FloatArray) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        within = (1.0 - self._some) + self._some * self._amounts.cdf(y - self._shift)
        return np.where(y < 0.0, 0.0, within)

    def sf(self, y: FloatArray) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        return np.where(y < 0.0, 1.0, self._some * self._amounts.sf(y - self._shift))

    def quantile(self, p: FloatArray) -> FloatArray:
        above = np.clip((1.0 - p) / self._some, 0.0, 1.0)
        is_some = above < 1.0
        found = self._amounts.quantile(np.where(is_some, 1.0 - above, 0.5))
        return np.where(is_some, self._shift + found, 0.0)

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size, of the amounts."""
        if hasattr(self._amounts, "power_tail"):
            index, size = self._amounts.power_tail()
            return index, size + self._shift
        finite = np.isfinite(self._amounts.mean())
        return np.where(finite, np.inf, 0.0), np.ones(len(self._some))

    def place(self) -> tuple[FloatArray, FloatArray]:
        """Location and scale of the amounts."""
        low, middle, high = (self._amounts.quantile(np.full(len(self._some), p)) for p in (0.25, 0.5, 0.75))
        return middle, 0.5 * (high - low)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        amounts = self._shift + self._amounts.sample(rng)
        return np.where(rng.random(len(self._some)) < self._some, amounts, 0.0)
