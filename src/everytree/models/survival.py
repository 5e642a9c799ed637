"""Survival curves: averages over trees whose leaves multiply the hazard of a baseline."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.words import number_of, short_number
from everytree.explaining.contributions import Contributions, complete
from everytree.explaining.tree_sums import Asked, average_sum
from everytree.models.boosted import Chains
from everytree.models.model import Parts, Scale, UpdatableModel, scaled, split_columns
from everytree.models.offsets import Offset
from everytree.posterior.counts import ForestCounts, Tally
from everytree.posterior.forest import Forest, averaged_over_prunings, pool_nodes
from everytree.posterior.posterior import Posterior
from everytree.predictive.curves import CurvePredictive
from everytree.survival.baseline import Baseline
from everytree.survival.curves import PER_CELL, Sharpening, curves_at
from everytree.survival.rows import positions_of_rows

NEGLIGIBLE = 1e-12
"""Nodes whose share of a row's mixture is below this are left out: they change no curve by more than that."""

ROWS_AT_ONCE = 4096

LARGEST, N_GRID = 20.0, 2001
"""Log relative hazards at which restricted means are computed."""


@dataclass(frozen=True)
class Member:
    """Trees that share a baseline, and the relative hazards by which they see rows."""

    baseline: Baseline
    offset: Offset | None  # None where every row has the relative hazard 1
    forest: Forest  # of leaves that count positions in the cells of the baseline

    def log_hazard(self, codes: NDArray[Any], n_jobs: int | None) -> FloatArray:
        """(n_rows,) logarithm of each row's relative hazard."""
        return np.zeros(len(codes)) if self.offset is None else self.offset.log_hazard(codes, n_jobs)

    def contributions(self, asked: Asked) -> Contributions:
        """Contributions to the log hazard: that before the trees, and the mean of the logarithms of factors."""
        family = self.forest.family
        values = [averaged_over_prunings(post, family.log_factors) for post in self.forest.posteriors]
        found = average_sum(asked, self.forest, values)
        return found if self.offset is None else found.plus(self.offset.contributions(asked))

    def curves(self, codes: NDArray[Any], n_jobs: int | None) -> FloatArray:
        """(n_rows, n_knots) mean survival at the knots of the baseline."""
        forest, jobs = self.forest, resolve_n_jobs(n_jobs)
        pool = pool_nodes(forest.posteriors, forest.weights)
        out = np.empty((len(codes), len(self.baseline.times)))
        for begin in range(0, len(codes), ROWS_AT_ONCE):
            some = codes[begin : begin + ROWS_AT_ONCE]
            start, nodes, log_weights = _kernels.pooled_paths(
                ends=(forest.ends(some, n_jobs=n_jobs) + pool.first).astype(np.int64), parent=pool.parent,
                log_reached=pool.log_reached, log_stop=pool.log_stop, log_tree_weights=pool.log_weights,
                log_negligible=float(np.log(NEGLIGIBLE)),
            )  # fmt: skip
            at_points = _kernels.survival_curves(
                size=forest.family.size, per_cell=PER_CELL, parameters=pool.summary, start=start, nodes=nodes,
                log_weights=log_weights, log_hazard=self.log_hazard(some, n_jobs), n_jobs=jobs,
            )  # fmt: skip
            out[begin : begin + len(some)] = curves_at(self.baseline, at_points, self.baseline.times)
        return out

    @property
    def chains(self) -> Chains | None:
        """How the relative hazards were boosted; None where they were not."""
        return None if self.offset is None else self.offset.chains

    def feature_importances(self) -> FloatArray:
        """(n_features,) those of boosting, beside which little is left; else those of the trees."""
        return self.forest.feature_importances() if self.chains is None else scaled(self.chains.gains)

    def update(
        self, X: NDArray[Any], y: FloatArray, weight: FloatArray | None, n_jobs: int | None, row_data: dict[str, Any]
    ) -> None:
        """Count rows of times."""
        positions, columns = self.positions(X, y, weight, n_jobs, row_data)
        self.forest.update(X, positions, weight, n_jobs=n_jobs, **columns)

    def positions(
        self, X: NDArray[Any], y: FloatArray, weight: FloatArray | None, n_jobs: int | None, row_data: dict[str, Any]
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Times as positions, and the row data of these."""
        positions, columns = positions_of_rows(self.baseline, y, weight, row_data)
        return positions, {**columns, "log_hazard": self.log_hazard(X, n_jobs)}


@dataclass(frozen=True)
class CurveCounts:
    """The rows of any number of batches in all groups of trees; as `ForestCounts`."""

    each: Sequence[ForestCounts]
    members: Sequence[Member]

    @property
    def n_rows(self) -> NDArray[np.int64]:
        return np.concatenate([counts.n_rows for counts in self.each])

    def update(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_jobs: int | None = None, **row_data: Any
    ) -> CurveCounts:
        for counts, member in zip(self.each, self.members, strict=True):
            positions, columns = member.positions(X, y, sample_weight, n_jobs, row_data)
            counts.update(X, positions, sample_weight, n_jobs=n_jobs, **columns)
        return self

    def tally(self) -> Tally:
        tallies = [counts.tally() for counts in self.each]
        return Tally([one for tally in tallies for one in tally.statistics], self.n_rows)

    def add(self, tally: Tally) -> CurveCounts:
        first = 0
        for counts in self.each:
            last = first + len(counts.statistics)
            counts.add(Tally(tally.statistics[first:last], tally.n_rows[first:last]))
            first = last
        return self

    def empty(self) -> CurveCounts:
        return replace(self, each=[counts.empty() for counts in self.each])

    def digest(self) -> str:
        return "".join(counts.digest() for counts in self.each)


@dataclass
class SurvivalModel(UpdatableModel):
    """The equal mean of the survival curves of some groups of trees, sharpened."""

    members: Sequence[Member]  # baselines of all have the same knots
    sharpening: Sharpening

    kind = "survival"
    of_trees = "log relative hazard"
    rows_of_mean = 1000  # whole curves take longer than means

    @property
    def family(self) -> Any:
        return self.members[0].forest.family

    @property
    def n_rows(self) -> int:
        return self.members[0].forest.n_rows

    @property
    def baseline(self) -> Baseline:
        """That of the first trees, which pictures show."""
        return self.members[0].baseline

    @property
    def times(self) -> FloatArray:
        """The grid of the curves: times of events, or quantiles of many; the last is where the curves end."""
        return self.members[0].baseline.times

    # ---- predictions ------------------------------------------------------------------------------------------------

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> CurvePredictive:
        del row_data  # of the future, none is known
        mean = sum(member.curves(X, n_jobs) for member in self.members) / len(self.members)
        return CurvePredictive(self.family, self.times, self.sharpening.of(np.asarray(mean)))

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        found = self.predictive(X, n_jobs=n_jobs)
        return found.mean(), found.variance()

    # ---- more rows --------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """Log of the average evidence of all trees; of positions on the scale of their baselines."""
        each = [post.log_evidence for member in self.members for post in member.forest.posteriors]
        return float(logsumexp(each) - np.log(len(each)))

    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> SurvivalModel:
        for member in self.members:
            member.update(X, y, sample_weight, n_jobs, row_data)
        return self

    def check_mergeable(self, other: SurvivalModel) -> None:
        if len(other.members) != len(self.members):
            raise ValueError(f"other has {len(other.members)} groups of trees, this model {len(self.members)}")
        for mine, theirs in zip(self.members, other.members, strict=True):
            mine.forest.check_mergeable(theirs.forest)
            mine.baseline.check_same(theirs.baseline)

    def merge(self, other: SurvivalModel) -> SurvivalModel:
        for mine, theirs in zip(self.members, other.members, strict=True):
            mine.forest.merge(theirs.forest)
        return self

    def columns_read(self, n_features: int) -> NDArray[np.bool_]:
        if any(member.offset is not None for member in self.members):
            return np.ones(n_features, dtype=bool)
        return split_columns(self.parts.averaged.trees, n_features)

    def counts(self) -> CurveCounts:
        return CurveCounts([ForestCounts(member.forest) for member in self.members], self.members)

    def counted(self, counts: CurveCounts) -> SurvivalModel:
        members = [replace(member, forest=own.forest()) for member, own in zip(self.members, counts.each, strict=True)]
        return SurvivalModel(members, copy.copy(self.sharpening))

    def without_rows(self) -> SurvivalModel:
        empty = [replace(member, forest=member.forest.without_rows()) for member in self.members]
        return SurvivalModel(empty, copy.copy(self.sharpening))

    @property
    def counts_out_of_fold(self) -> bool:
        return any(member.offset is not None for member in self.members)

    def take_away(self, other: SurvivalModel) -> SurvivalModel:
        pairs = [(mine.forest, theirs.forest) for mine, theirs in zip(self.members, other.members, strict=True)]
        for mine, theirs in pairs:
            mine.check_counted(theirs)
        for mine, theirs in pairs:
            mine.take_away(theirs)
        return self

    # ---- explanations -----------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        return np.asarray(np.mean([member.feature_importances() for member in self.members], axis=0))

    @property
    def chains(self) -> Chains:
        """How relative hazards were boosted, of models of which some were."""
        (found,) = [member.chains for member in self.members if member.chains is not None]
        return found

    @property
    def is_sum_of_trees(self) -> bool:
        return False

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        """Contributions to the log relative hazard, which is a sum over columns and trees, or to the restricted mean.

        The mean over groups of trees of the logarithm of the relative hazard before the trees, plus the mean over trees
        and prunings of the logarithm of a leaf's factor for all times. The restricted mean follows it as if hazards
        were proportional; what its curves differ from that by is shared among columns by the sizes of what they add.
        """
        each = [member.contributions(asked) for member in self.members]
        hazard = reduce(Contributions.plus, each).times(self.sharpening.power / len(each))
        if scale == "trees":
            return hazard
        grid = np.linspace(-LARGEST, LARGEST, N_GRID)
        means = CurvePredictive(self.family, self.times, np.exp(-np.exp(grid[:, None]) * self.baseline.hazard())).mean()
        if asked.mean is not None:
            start = np.interp(-asked.mean, -means, grid)
            hazard = hazard.starting_at(start, self.importances_of_inputs(asked))
        base, total = np.interp(hazard.base, grid, means), self.means(asked.codes, n_jobs=asked.n_jobs)[:, None]
        change = hazard.total() - hazard.base
        small = np.abs(change) < 1e-6
        slope = (np.interp(hazard.total(), grid, means) - base) / np.where(small, 1.0, change)
        return complete(hazard.by_slope(base, np.where(small, 0.0, slope)), total)

    # ---- parts and words --------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        """All trees as one forest, to be read; it shares them with the groups."""
        posteriors = [post for member in self.members for post in member.forest.posteriors]
        boosted = float(np.mean([member.chains is not None for member in self.members]))
        return Parts(forest=Forest(posteriors, n_codes=self.members[0].forest.n_codes), weight=boosted)

    def pictured(self) -> Posterior:
        first = self.members[0].forest
        return first.posteriors[first.best_tree()]

    @property
    def _n_boosted(self) -> int:
        offsets = [member.offset for member in self.members if member.offset is not None]
        return sum(len(offset.trees) for offset in offsets if offset.trees is not None)

    @property
    def size(self) -> str:
        n_trees = sum(len(member.forest) for member in self.members)
        boosted = f"{self._n_boosted:,} boosted trees and " if self._n_boosted else ""
        return f"{boosted}{n_trees:,} trees" if n_trees > 1 else ""

    @property
    def sentence(self) -> str:
        n_trees = sum(len(member.forest) for member in self.members)
        how = "one decision tree" if n_trees == 1 else f"each of {n_trees} decision trees"
        beside = f" They know relative hazards by {self._n_boosted:,} boosted trees." if self._n_boosted else ""
        return f"It predicts survival curves by averaging every pruning of {how}, weighted by its probability.{beside}"

    def facts(self) -> Iterator[tuple[str, str]]:
        n_trees = sum(len(member.forest) for member in self.members)
        yield "Log evidence", f"{short_number(self.log_evidence, 8)} nats"
        yield "Averaged over", f"every pruning of {number_of(n_trees, 'tree')}"
        yield "Curves end at", short_number(float(self.times[-1]), 6)
        yield "Sharpness of the average", short_number(self.sharpening.power, 4)
