"""Every tree and every split: the exact posterior over pruned trees T and feature assignments k together.

The splits of different nodes are independent a priori, so the sum over all assignments factorises over regions (sets of
conditions), and the order in which a region's conditions were asked does not matter:

    Q(S) = (1 - g) leaf(S) + g * mean over candidate splits of the product of Q(child) over the children.

Each region is evaluated once. The kernel lists regions level by level; this module reads answers from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, as_codes, as_column, check_lengths
from everytree.base.checks import positive_number, resolve_n_jobs, whole_number
from everytree.base.errors import ArgumentError, TooManyRegionsError
from everytree.base.randomness import RandomSource, random_generator
from everytree.exact.checks import checked_candidates, checked_codes, checked_family, checked_kinds
from everytree.exact.prediction import Columns, LeafPool, Leaves, Limits, Tables, find_leaves, tabulate
from everytree.exact.regions import BYTES_PER_REGION, KINDS, Kind, count_regions
from everytree.exact.trees import ExactTree, TreeSearch
from everytree.families.base import NativeFamily
from everytree.families.traits import mean_less
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, split_prior_of_depths
from everytree.predictive.leaving_out import leave_one_out
from everytree.predictive.pooled import PooledPredictive
from everytree.predictive.predictive import Predictive

NEGLIGIBLE_SHARE = 1e-6
"""Share of the truncation for regions so improbable that their splits are left out."""

MAX_REGIONS = 2**31 - 1
"""Maximum number of regions in a level: their indices are 32 bits wide."""


LeafValues = Callable[[FloatArray], FloatArray]
"""From the statistics (n_leaves, n_statistics) of leaves to their values (n_leaves, n_values)."""

Continuation = Callable[[list[NDArray[np.int64]]], ArrayLike]
"""From the rows of regions to the log evidence of a model of each."""


@dataclass(frozen=True)
class ContinuedRegions:
    """Regions at the maximum depth, each set of conditions once."""

    # Conditions `start[i] .. start[i + 1]` are those of region i: each a column and the codes it may have.
    start: NDArray[np.int64]
    column: NDArray[np.int32]
    codes: NDArray[np.uint64]
    weight: FloatArray  # (n_regions,): posterior probability that the region is in the tree

    def __len__(self) -> int:
        return len(self.start) - 1


class ExactPosterior:
    """p(T, k | data) over every tree up to a given depth and every choice of its splits, computed exactly.

    A region is split with probability `split_prior` (of its depth) unless it is at `max_depth` or has nothing left to
    split; a split is chosen uniformly from the candidates of the region.

    Parameters
    ----------
    n_codes : sequence of int
        Number of codes of each column.
    family : NativeFamily
        The leaf model, with one prior for all leaves.
    max_depth : int
    split_prior : float or callable
        A number, or a function of depth such as `depth_prior(0.95, 1.0)`.
    candidates : {"all", "nontrivial"}
        Every split of the codes that are possible in a region, or only those that separate its rows.
    kinds : str or sequence of str
        For each column, or for all: "ordered" is split at thresholds, "one_against_rest" into one category and the
        others, "multiway" into all categories at once.
    temperature : float
        Power of the evidence: the posterior is proportional to prior times evidence ** temperature. With 1 it is the
        posterior; with less, trees that explain the rows a little worse keep more of its mass.
    truncation : float
        Posterior mass that prediction may leave out; 0 leaves out nothing.
    max_regions : int
        Problems that can have more regions are refused beforehand. With a budget or a time limit, `fit` lists at most
        this many instead.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=np.uint8)
    >>> post = et.ExactPosterior([2, 2], et.Bernoulli(0.5, 0.5), max_depth=2).fit(X, X[:, 0])
    >>> post.root_feature_prob.round(4)
    array([0.9381, 0.0619])
    >>> post.map_tree().n_leaves
    2
    """

    def __init__(
        self,
        n_codes: Sequence[int],
        family: NativeFamily,
        max_depth: int = 4,
        split_prior: SplitPriorLike = 0.5,
        *,
        candidates: Literal["all", "nontrivial"] = "all",
        kinds: Kind | Sequence[Kind] = "ordered",
        temperature: float = 1.0,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        n_jobs: int | None = None,
    ) -> None:
        self.n_codes = checked_codes(n_codes)
        self.family = checked_family(family)
        self.max_depth = whole_number("max_depth", max_depth, 0, 64)
        self.candidates = checked_candidates(candidates)
        self.kinds = checked_kinds(kinds, self.n_codes)
        if not isinstance(truncation, int | float | np.number) or not 0.0 <= truncation < 1.0:
            raise ValueError(f"truncation must be a share of the posterior in [0, 1), but is {truncation!r}")
        if not isinstance(temperature, int | float | np.number) or not 0.0 <= temperature <= 1.0:
            raise ValueError(f"temperature must be a power in [0, 1], but is {temperature!r}")
        self.temperature = float(temperature)
        self.target_truncation = float(truncation)
        self.max_regions = whole_number("max_regions", max_regions, 1)
        resolve_n_jobs(n_jobs)
        self.n_jobs = n_jobs
        self._max_seconds: float | None = None  # of the fit
        self.split_prior = split_prior
        self._log_split, self._log_stop = log_split_stop(split_prior_of_depths(split_prior, self.max_depth))

    @staticmethod
    def count_regions(n_codes: Sequence[int], max_depth: int, kinds: Kind | Sequence[Kind] = "ordered") -> int:
        """Number of possible regions above the last level, each counted once for every depth it may be at."""
        sizes = [whole_number("n_codes", n, 1, 65534) for n in n_codes]
        max_depth = whole_number("max_depth", max_depth, 0, 64)
        return count_regions(sizes, checked_kinds(kinds, sizes), max_depth)

    # ---- learning ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        budget: int | None = None,
        max_seconds: float | None = None,
        progress: Callable[[int, int, int], object] | None = None,
        continuation: Continuation | None = None,
        **row_data: Any,
    ) -> Self:
        """Condition on rows.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes
        y : (n_rows,) array_like
        sample_weight : (n_rows,) array_like, optional
        budget, max_seconds : optional
            Maximum number of regions to list, and maximum time in seconds. If that is not enough, `log_evidence_bounds`
            holds what is certain, and all other results are those of the trees that were visited. The children of a
            region are listed all or not at all, and only as many regions as there is time to sum over. What the first
            prediction prepares is limited to what takes about `max_seconds` more: it may leave out more than
            `truncation`, with a warning.
        progress : callable, optional
            Called from time to time with the depth, the number of regions done there and their total.
        continuation : callable, optional
            Called once with the rows of every region at `max_depth`, a list of int64 arrays; returns the log evidence
            of another model of these rows, such as a tree that was grown on them, in place of that of one leaf. All
            answers about splits are then of trees that go on like that. Predictions are up to the other models, with
            the probabilities of `continued`. Not with a budget or a time limit.
        **row_data
            Row data of the family.
        """
        begun = perf_counter()
        if continuation is not None and not (budget is None and max_seconds is None):
            raise ValueError("continuation is for complete sums: leave out budget and max_seconds")
        if budget is None and max_seconds is None:
            self._check_size(self.max_depth + (continuation is not None))
        codes, statistics, kept = read_rows(self.family, self.n_codes, X, y, sample_weight, row_data)
        if continuation is not None:
            return self._continue(codes, statistics, kept, continuation, progress)
        regions = self.max_regions if budget is None else min(whole_number("budget", budget, 1), self.max_regions)
        seconds = np.inf if max_seconds in (None, np.inf) else positive_number("max_seconds", max_seconds, ", or None")
        engine = self._make(codes, statistics, is_continued=False)
        engine.run(min(regions, MAX_REGIONS), None, max(seconds - (perf_counter() - begun), 1e-9), progress)
        bounds = float(engine.log_evidence()), float(engine.log_upper())
        self._max_seconds = None if seconds == np.inf else float(seconds)
        return self._keep((codes, statistics, engine.n_expanded()), bounds, list(engine.n_regions()), engine)

    def _continue(
        self,
        codes: NDArray[np.uint16],
        statistics: FloatArray,
        kept: NDArray[np.int64],
        continuation: Continuation,
        progress: Callable[[int, int, int], object] | None,
    ) -> Self:
        """Sum over trees whose last regions are explained by other models; `kept` numbers the rows."""
        engine = self._make(codes, statistics, is_continued=True)
        listed = engine.list_continued(MAX_REGIONS, progress)
        row_of_place = _rows_by_place(self.family, statistics)
        rows = [np.sort(kept[row_of_place[own]]) for own in np.split(listed["place"], listed["first"][1:-1])]
        given = np.ascontiguousarray(continuation(rows if len(listed["first"]) > 1 else []), dtype=np.float64)
        if given.shape != (len(listed["first"]) - 1,) or not np.isfinite(given).all():
            raise ValueError(f"continuation must return one finite number for each of {len(rows)} regions")
        engine.sum_up(given, progress)
        return self._keep_continued((codes, statistics, engine.n_expanded()), given, engine)

    def _keep_continued(
        self, rows: tuple[NDArray[np.uint16], FloatArray, list[int]], given: FloatArray, engine: _kernels.Exact
    ) -> Self:
        bounds = float(engine.log_evidence()), float(engine.log_upper())
        self._max_seconds = None
        return self._keep(rows, bounds, list(engine.n_regions()), engine, given)

    def _run_again(
        self, codes: NDArray[np.uint16], statistics: FloatArray, n_expanded: list[int], given: FloatArray | None
    ) -> _kernels.Exact:
        """Return an engine that has listed the same regions."""
        engine = self._make(codes, statistics, is_continued=given is not None)
        if given is None:
            engine.run(MAX_REGIONS, n_expanded, np.inf, None)
        else:
            engine.list_continued(MAX_REGIONS, None)
            engine.sum_up(given, None)
        return engine

    def _keep(
        self,
        rows: tuple[NDArray[np.uint16], FloatArray, list[int]],
        bounds: tuple[float, float],
        n_regions: list[int],
        engine: _kernels.Exact | None,
        given: FloatArray | None = None,
    ) -> Self:
        """Keep the state after a fit: codes, statistics and the number of regions expanded per level, from which the
        same regions are listed again whatever the budget was. Everything else is computed on first use."""
        self._rows, self.n_rows = rows, len(rows[0])
        self._bounds, self._n_regions, self._engine, self._given = bounds, n_regions, engine, given
        self.centre = self._overall_mean(rows[1])
        self._tables: dict[tuple[bool, str], Tables] = {}
        self._leaf_regions: dict[bool, Leaves] = {}
        self._summary: dict[str, Any] | None = None
        self._of_trees: tuple[float, float] | None = None
        self._search: TreeSearch | None = None
        self._regions: dict[str, NDArray[Any]] | None = None
        return self

    def _make(self, codes: NDArray[np.uint16], statistics: FloatArray, *, is_continued: bool) -> _kernels.Exact:
        place, n_places, of_place, class_start = _places(self.family, statistics)
        return _kernels.make_exact(
            name=self.family.kernel, size=self.family.size, prior=self.family.kernel_prior, codes=codes,
            n_codes=self.n_codes, kinds=[KINDS.index(kind) for kind in self.kinds], place=place, n_places=n_places,
            of_place=of_place, class_start=class_start, log_split=self._log_split.tolist(),
            log_stop=self._log_stop.tolist(), only_nontrivial=self.candidates == "nontrivial",
            negligible=NEGLIGIBLE_SHARE * self.target_truncation, temperature=self.temperature,
            is_continued=is_continued, n_jobs=resolve_n_jobs(self.n_jobs),
        )  # fmt: skip

    def _read_codes(self, X: ArrayLike, *, known: bool = True) -> NDArray[np.uint16]:
        return read_codes(X, self.n_codes, known=known)

    def _check_size(self, n_levels: int) -> None:
        """Raise if there can be more regions than `max_regions` in the first levels."""
        expected = count_regions(self.n_codes, self.kinds, n_levels)
        if expected <= self.max_regions:
            return
        beyond = n_levels - self.max_depth
        fits = max(
            d for d in range(self.max_depth) if count_regions(self.n_codes, self.kinds, d + beyond) <= self.max_regions
        )
        raise TooManyRegionsError(self.max_depth, expected, expected * BYTES_PER_REGION, self.max_regions, fits)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_rows"):
            raise RuntimeError("this ExactPosterior has seen no rows yet; call fit first")

    @property
    def _has_trees(self) -> bool:
        """Whether some visited tree is possible."""
        return self._bounds[0] > -np.inf

    def engine(self) -> _kernels.Exact:
        """Return the engine; after a copy or a pickle it runs again on first use."""
        self._check_fitted()
        if not self._has_trees:
            raise ValueError(
                "every tree summed so far has prior probability 0: split_prior is 1 wherever the budget ended; "
                "only log_evidence_bounds is known; fit with more of either, or with a smaller split_prior"
            )
        if self._engine is None:
            self._engine = self._run_again(*self._rows, self._given)
        return self._engine

    def __getstate__(self) -> dict[str, Any]:
        """Rows, and what predictions need; regions are not kept."""
        if not hasattr(self, "_rows"):
            return self.__dict__.copy()
        if self._has_trees and self._has_tables and self._given is None:
            self.tabulated(False)
        if self._has_trees:
            self._sums()
        return {**self.__dict__, "_engine": None, "_search": None, "_leaf_regions": {}, "_regions": None}

    def without_rows(self, temperature: float | None = None) -> ExactPosterior:
        """Return the same columns, splits and priors without rows; with another temperature if one is given."""
        changed = {} if temperature is None else {"temperature": temperature}
        return ExactPosterior(family=self.family, **{**self._arguments(), **changed})

    def _arguments(self) -> dict[str, Any]:
        return {
            "n_codes": self.n_codes, "max_depth": self.max_depth, "split_prior": self.split_prior,
            "candidates": self.candidates, "kinds": self.kinds, "temperature": self.temperature,
            "truncation": self.target_truncation, "max_regions": self.max_regions, "n_jobs": self.n_jobs,
        }  # fmt: skip

    def check_mergeable(self, other: ExactPosterior) -> None:
        """Raise unless the other sums over the same trees with the same priors."""
        for name in ("family", "max_depth", "candidates", "kinds", "temperature"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(f"other has {name} {theirs}, this one {mine}")
        if not np.array_equal(self._log_split, other._log_split):
            raise ValueError("other has a different split_prior")

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """State for a file, as plain values and arrays: arguments, rows, bounds. Regions are listed again on use."""
        plain = self._arguments()
        if not hasattr(self, "_rows"):
            return plain, {}
        codes, statistics, n_expanded = self._rows
        plain |= {"n_expanded": n_expanded, "bounds": list(self._bounds), "n_regions": self._n_regions}
        arrays: dict[str, NDArray[Any]] = {"codes": codes, "statistics": statistics}
        if self._max_seconds is not None:
            plain["max_seconds"] = self._max_seconds
        if self._given is not None:
            arrays["given"] = self._given
        return plain, arrays

    @classmethod
    def from_state(cls, family: NativeFamily, plain: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ExactPosterior:
        """Rebuild the posterior; everything is checked except that the bounds belong to these rows."""
        fitted = {name: plain.pop(name) for name in ("n_expanded", "bounds", "n_regions") if name in plain}
        seconds = plain.pop("max_seconds", None)  # files of earlier versions lack it
        post = cls(family=family, **plain)
        post._max_seconds = None if seconds is None else positive_number("max_seconds", seconds)
        if not fitted:
            return post
        codes, statistics = arrays["codes"], family.checked_statistics(arrays["statistics"])
        if codes.dtype != np.uint16 or codes.shape != (len(statistics), len(post.n_codes)):
            raise ValueError(
                f"codes are {codes.dtype} of shape {codes.shape}, but must be uint16, one column an n_codes"
            )
        if (codes >= np.array(post.n_codes, dtype=np.uint16)).any():
            raise ValueError("codes must be below n_codes")
        lower, upper = fitted["bounds"]
        if not -np.inf <= lower <= upper:
            raise ValueError(f"bounds must be numbers in order, but are {lower} and {upper}")
        n_regions = [whole_number("n_regions", n, 0) for n in fitted["n_regions"]]
        n_expanded = _expanded_by_level(fitted["n_expanded"], n_regions)
        given = arrays.get("given")
        return post._keep((codes, statistics, n_expanded), (float(lower), float(upper)), n_regions, None, given)

    # ---- answers ----------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """log p(y | X), summed over every tree and every choice of splits; a lower bound where a budget was spent."""
        return self.log_evidence_bounds[0]

    @property
    def log_evidence_bounds(self) -> tuple[float, float]:
        """Lower and upper bound of log_evidence; equal unless a budget was spent."""
        self._check_fitted()
        return self._bounds

    @property
    def continued(self) -> ContinuedRegions:
        """The regions at `max_depth` that a continuation explains, in the order in which it was given their rows."""
        engine = self.engine()
        if self._given is None:
            raise ValueError("this posterior was fitted without a continuation")
        if self._regions is None:
            listed = self._make(*self._rows[:2], is_continued=True).list_continued(MAX_REGIONS, None)
            self._regions = {name: listed[name] for name in ("start", "column", "codes")}
        return ContinuedRegions(**self._regions, weight=engine.continued_mass())

    @property
    def n_given(self) -> int | None:
        """Number of regions that a continuation explains; None without one."""
        self._check_fitted()
        return None if self._given is None else len(self._given)

    @property
    def n_regions(self) -> list[int]:
        """Regions with rows that were listed, by depth."""
        self._check_fitted()
        return list(self._n_regions)

    @property
    def root_feature_prob(self) -> FloatArray:
        """(n_features,) probability that the root is split on each column."""
        return np.asarray(self._sums()["root_feature"])

    @property
    def split_prob_root(self) -> float:
        """Probability that the root is split at all."""
        return float(self.root_feature_prob.sum())

    @property
    def root_splits(self) -> list[tuple[int, int, float]]:
        """(column, code, probability) of every split that the root may have, most probable first.

        The code is the threshold, the category set apart, or -1 for a split into all categories.
        """
        facts = self.engine().region(0, 0)
        probs = np.exp(facts["log_split"])
        order = np.argsort(-probs, kind="stable")
        return [(int(facts["column"][i]), int(facts["code"][i]), float(probs[i])) for i in order]

    @property
    def expected_splits(self) -> FloatArray:
        """(n_features,) expected number of splits on each column, of regions that hold rows."""
        self._check_fitted()
        return np.asarray(self._sums()["expected_splits"]) if self.n_rows else np.zeros(len(self.n_codes))

    def expected_leaves(self) -> float:
        """Expected number of leaves of T."""
        return self._tree_sums()[0]

    def entropy(self) -> float:
        """Entropy of p(T, k | data), in nats."""
        return self._tree_sums()[1]

    @property
    def feature_prob(self) -> FloatArray:
        """(n_features,) probability that a region that holds rows is split on each column; to within `truncation`."""
        self._check_fitted()
        if not self.n_rows:
            return np.zeros(len(self.n_codes))
        negligible = 0.1 * self.target_truncation / sum(self._n_regions)
        return np.asarray(self.engine().feature_use(negligible))

    @property
    def truncation(self) -> float:
        """Maximum posterior mass that the prediction of any row leaves out, also with unknown codes."""
        self._check_fitted()
        kept: list[Tables | Leaves] = [
            self.tabulated(with_unknown) if self._has_tables else self.leaf_regions(with_unknown)
            for with_unknown in (False, True)
        ]
        return min(max(one.left_out for one in kept), 1.0)

    def map_tree(self) -> ExactTree:
        """The most probable tree with its splits; `log_prob` is its exact posterior probability."""
        return self.top_trees(1)[0]

    def top_trees(self, k: int) -> list[ExactTree]:
        """The k most probable trees with their splits, best first."""
        return self._trees().best(whole_number("k", k, 1))

    def sample_trees(self, n: int, *, rng: RandomSource = None) -> list[ExactTree]:
        """Independent exact draws from p(T, k | data); `rng` as in `Predictive.sample`."""
        n, generator = whole_number("n", n, 0), random_generator(rng)
        return [self._trees().draw(generator) for _ in range(n)]

    def _sums(self) -> dict[str, Any]:
        self._check_fitted()
        if self._summary is None:
            self._summary = self.engine().summary()
        return self._summary

    def _tree_sums(self) -> tuple[float, float]:
        """Expected leaves and entropy, which count all trees of the prior below regions without rows."""
        self._check_fitted()
        if self._of_trees is None:
            self._of_trees = self.engine().tree_sums()
        return self._of_trees

    def _trees(self) -> TreeSearch:
        engine = self.engine()
        if self._search is None:
            self._search = TreeSearch(
                engine, self.n_codes, self.kinds, self._log_split, self._log_stop,
                self.candidates == "all",
            )  # fmt: skip
        return self._search

    # ---- prediction -------------------------------------------------------------------------------------------------

    def probs(self, X: ArrayLike) -> FloatArray:
        """(n_rows, n_classes) probability of each class, for families of classes.

        A row stops at a split on a column whose code is missing: 255 in `uint8`, 65535 in `uint16`, -1 in signed
        integers.
        """
        if not self._has_classes:
            raise TypeError(f"probs() is for families of classes, not for {type(self.family).__name__}")
        self._check_not_continued()
        sums = self.sums_of_leaves(X)
        return np.asarray(sums / sums.sum(axis=1, keepdims=True))

    def moments(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target, for families without row data."""
        self._check_not_continued()
        if self._has_classes:
            probs = self.probs(X)
            number = np.arange(probs.shape[1])
            mean = probs @ number
            return mean, np.maximum(probs @ number**2 - mean**2, 0.0)
        total, first, second = self.sums_of_leaves(X).T
        first, second = first / total, second / total
        return first + self.centre, np.maximum(second - first**2, 0.0)

    def predictive(self, X: ArrayLike, **row_data: Any) -> Predictive:
        """One predictive distribution for each row, averaged over every tree and every choice of splits."""
        self._check_not_continued()
        codes = self._read_codes(X, known=False)
        pool = LeafPool(self.family, self._columns, self.leaf_regions)
        return PooledPredictive(pool, codes, self.family.row_columns(row_data, len(codes)), 1.0)

    def loo_log_prob(self, X: ArrayLike, y: ArrayLike, **row_data: Any) -> FloatArray:
        """(n_rows,) log p(y_i | all other rows), for rows of weight 1 that are in this posterior.

        From the leaves that hold a row: nothing is summed again. What `truncation` leaves out is missing in it.
        """
        self._check_not_continued()
        codes = self._read_codes(X)
        columns = self.family.row_columns(row_data, len(codes))
        return leave_one_out(
            self.family, *LeafPool(self.family, self._columns, self.leaf_regions).paths(codes), y, columns
        )

    @property
    def _limits(self) -> Limits:
        """How much is kept for predictions."""
        return Limits.within(self._max_seconds)

    @property
    def _has_tables(self) -> bool:
        """Whether a leaf's moments depend on the leaf alone."""
        return not self.family.row_data

    @property
    def _has_classes(self) -> bool:
        return self.family.has_classes

    def _overall_mean(self, statistics: FloatArray) -> float:
        """Centre of the moments, so that they do not cancel; 0 where there are none."""
        if not self._has_tables or self._has_classes:
            return 0.0
        nodes = np.zeros(len(statistics), dtype=np.int64)
        total = _kernels.sum_statistics(
            self.family.kernel, self.family.size, statistics=statistics, group=nodes, n_groups=1
        )
        mean = float(self.family.predictive(total).mean()[0])
        return mean if np.isfinite(mean) else 0.0

    @property
    def _columns(self) -> Columns:
        return Columns(self.n_codes, self.kinds)

    def _values(self, statistics: FloatArray) -> FloatArray:
        """Contribution of a leaf to a prediction: class probabilities, or 1 and the first two moments."""
        components: Any = self.family.predictive(statistics)
        if self._has_classes:
            return np.asarray(components.probs())
        away = mean_less(components, self.centre)
        return np.stack([np.ones(len(away)), away, components.variance() + away**2], axis=1)

    def _check_not_continued(self) -> None:
        self._check_fitted()
        if self._given is not None:
            raise ValueError(
                "a posterior with a continuation does not predict: average the predictions of the models of its "
                "regions, with the weights of `continued`"
            )

    def sums_of_leaves(self, X: ArrayLike, values_of: LeafValues | None = None) -> FloatArray:
        """(n_rows, n_values) probability times value of the leaves that hold a row, those of a continuation left out.

        Values are those of `values_of`; by default probabilities of classes, and for numbers 1, the mean less `centre`
        and the mean square about it.
        """
        self._check_fitted()
        codes, jobs = self._read_codes(X, known=False), resolve_n_jobs(self.n_jobs)
        unknown = self._columns.has_unknown(codes)
        tables = self.tabulated(False, values_of)
        sums, left_out = tables.look_up(codes, jobs), tables.left_out
        if unknown.any():
            tables = self.tabulated(True, values_of)
            sums[unknown], left_out = tables.look_up(codes[unknown], jobs), max(left_out, tables.left_out)
        self._limits.warn_of(left_out, self.target_truncation)
        return sums

    def tabulated(self, with_unknown: bool, values_of: LeafValues | None = None) -> Tables:
        """Tables for rows whose codes are all known, or for the others; kept by the name of the values."""
        key = with_unknown, "" if values_of is None else values_of.__name__
        if key not in self._tables:
            self._tables[key] = tabulate(
                self.engine(), self.family.n_statistics, values_of or self._values, self._columns,
                self.target_truncation, with_unknown, self._limits, resolve_n_jobs(self.n_jobs),
            )  # fmt: skip
        return self._tables[key]

    def leaf_regions(self, with_unknown: bool) -> Leaves:
        if with_unknown not in self._leaf_regions:
            self._leaf_regions[with_unknown] = find_leaves(
                self.engine(), self.family.n_statistics, self.target_truncation, with_unknown, self._limits
            )
        return self._leaf_regions[with_unknown]

    def __repr__(self) -> str:
        seen = f", n_rows={self.n_rows}, log_evidence={self.log_evidence:.6g}" if hasattr(self, "_rows") else ""
        return f"ExactPosterior({len(self.n_codes)} columns, {self.family}, max_depth={self.max_depth}{seen})"


def _expanded_by_level(n_expanded: Any, n_regions: Sequence[int]) -> list[int]:
    """Number of expanded regions per level; older files hold their total, counted level by level."""
    if not isinstance(n_expanded, int):
        return [whole_number("n_expanded", n, 0, 2**62) for n in n_expanded]
    left, by_level = whole_number("n_expanded", n_expanded, 0, 2**62), []
    for n in n_regions:
        by_level.append(min(n, left))
        left -= by_level[-1]
    return by_level


def _is_missing(codes: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(codes == (np.iinfo(codes.dtype).max if codes.dtype.kind == "u" else -1))


def _places(family: NativeFamily, statistics: FloatArray) -> tuple[NDArray[np.int64], int, FloatArray, list[int]]:
    """Bit position of each row, their number, statistics by position, and first word of each class if bits count."""
    n_rows = len(statistics)
    if family.has_classes and statistics.shape[1] <= 64 and np.isin(statistics, (0.0, 1.0)).all():
        of_class = statistics.argmax(axis=1)
        place, start = np.empty(n_rows, dtype=np.int64), [0]
        for c in range(statistics.shape[1]):
            rows = np.flatnonzero(of_class == c)
            place[rows] = 64 * start[-1] + np.arange(len(rows))
            start.append(start[-1] + -(-len(rows) // 64))
        if start[-1] > 0:
            return place, 64 * start[-1], np.empty(0), start
    n_words = max(-(-n_rows // 64), 1)
    of_place = np.zeros((64 * n_words, statistics.shape[1]))
    of_place[:n_rows] = statistics
    return np.arange(n_rows, dtype=np.int64), 64 * n_words, of_place, []


def _rows_by_place(family: NativeFamily, statistics: FloatArray) -> NDArray[np.int64]:
    """The row at each bit position; positions without a row are never read."""
    place, n_places, *_ = _places(family, statistics)
    rows = np.zeros(n_places, dtype=np.int64)
    rows[place] = np.arange(len(place))
    return rows


def read_rows(
    family: NativeFamily,
    n_codes: Sequence[int],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    row_data: dict[str, Any],
) -> tuple[NDArray[np.uint16], FloatArray, NDArray[np.int64]]:
    """Codes and statistics of the rows with positive weight, and which rows these are."""
    codes = read_codes(X, n_codes)
    check_lengths(len(codes), {"y": y, "sample_weight": sample_weight, **row_data})
    weight = None if sample_weight is None else as_column("sample_weight", sample_weight).astype(np.float64)
    statistics = family.statistics(as_column("y", y), weight, **row_data)
    if len(statistics) != len(codes):
        raise ValueError(f"y has {len(statistics)} entries, but X has {len(codes)} rows")
    kept = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0.0)
    return codes[kept], statistics[kept], kept


def read_codes(X: ArrayLike, n_codes: Sequence[int], *, known: bool = True) -> NDArray[np.uint16]:
    """Return the codes of every column; 65535 stands for an unknown code, where that is allowed."""
    codes = as_codes(X)
    if codes.shape[1] != len(n_codes):
        raise ValueError(f"X has {codes.shape[1]} columns, but there are n_codes for {len(n_codes)}")
    wrong = (codes < 0) | (codes >= np.array(n_codes))
    missing = wrong & _is_missing(codes) & (not known)
    if (wrong & ~missing).any():
        row, column = np.argwhere(wrong & ~missing)[0]
        must = f"there are codes 0..{n_codes[column] - 1}"
        raise ArgumentError("X", must, f"column {column}", int(row), f"code {codes[row, column]}")
    return np.ascontiguousarray(np.where(missing, np.uint16(65535), codes), dtype=np.uint16)
