"""Survival curves: averages over trees whose leaves multiply the hazard of a baseline."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.errors import ArgumentError
from everytree.base.words import number_of, short_number
from everytree.explaining.contributions import Contributions
from everytree.explaining.tree_sums import Asked
from everytree.models.model import Parts, Scale, UpdatableModel
from everytree.posterior.forest import Forest, pool_nodes
from everytree.posterior.posterior import Posterior
from everytree.predictive.curves import CurvePredictive
from everytree.survival.baseline import Baseline
from everytree.survival.curves import PER_CELL, Sharpening, curves_at
from everytree.survival.offset import Offset
from everytree.survival.rows import times_of_rows

NEGLIGIBLE = 1e-12
"""Nodes whose share of a row's mixture is below this are left out: they change no curve by more than that."""

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Member:
    """Trees that share a baseline, and the relative hazards by which they see rows.

    Attributes
    ----------
    baseline : Baseline
    offset : Offset or None
        None where every row has the relative hazard 1.
    forest : Forest
        Of leaves that count positions in the cells of the baseline.
    """

    baseline: Baseline
    offset: Offset | None
    forest: Forest

    def log_hazard(self, codes: NDArray[Any]) -> FloatArray:
        """(n_rows,) logarithm of each row's relative hazard."""
        return np.zeros(len(codes)) if self.offset is None else self.offset.log_hazard(codes)

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
                log_weights=log_weights, log_hazard=self.log_hazard(some), n_jobs=jobs,
            )  # fmt: skip
            out[begin : begin + len(some)] = curves_at(self.baseline, at_points, self.baseline.times)
        return out

    def update(
        self, X: NDArray[Any], y: FloatArray, weight: FloatArray | None, n_jobs: int | None, row_data: dict[str, Any]
    ) -> None:
        """Count rows of times."""
        known = times_of_rows(y, weight, row_data)
        self.forest.update(
            X, self.baseline.position(known.time), weight, n_jobs=n_jobs,
            censored=1.0 - known.is_event, entry=self.baseline.position(known.entry), log_hazard=self.log_hazard(X),
        )  # fmt: skip


@dataclass
class SurvivalModel(UpdatableModel):
    """The equal mean of the survival curves of some groups of trees, sharpened.

    Attributes
    ----------
    members : sequence of Member
        Baselines of all have the same knots.
    sharpening : Sharpening
    """

    members: Sequence[Member]
    sharpening: Sharpening

    kind = "survival"
    has_contributions = False

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
            if not mine.baseline.is_same(theirs.baseline):
                raise ValueError("other has another baseline hazard; models to merge come from one blank()")

    def merge(self, other: SurvivalModel) -> SurvivalModel:
        for mine, theirs in zip(self.members, other.members, strict=True):
            mine.forest.merge(theirs.forest)
        return self

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
        return np.asarray(np.mean([member.forest.feature_importances() for member in self.members], axis=0))

    @property
    def is_sum_of_trees(self) -> bool:
        return False

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        raise ArgumentError(
            "family", "is 'survival', whose curves have no contributions of columns; effect() shows how the restricted "
            "mean changes with a column",
        )  # fmt: skip

    # ---- parts and words --------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        """All trees as one forest, to be read; it shares them with the groups."""
        posteriors = [post for member in self.members for post in member.forest.posteriors]
        return Parts(forest=Forest(posteriors, n_codes=self.members[0].forest.n_codes))

    def pictured(self) -> Posterior:
        first = self.members[0].forest
        return first.posteriors[first.best_tree()]

    @property
    def size(self) -> str:
        n_trees = sum(len(member.forest) for member in self.members)
        return f"{n_trees:,} trees" if n_trees > 1 else ""

    @property
    def sentence(self) -> str:
        n_trees = sum(len(member.forest) for member in self.members)
        how = "one decision tree" if n_trees == 1 else f"each of {n_trees} decision trees"
        return f"It predicts survival curves by averaging every pruning of {how}, each weighted by its probability."

    def facts(self) -> Iterator[tuple[str, str]]:
        n_trees = sum(len(member.forest) for member in self.members)
        yield "Log evidence", f"{short_number(self.log_evidence, 8)} nats"
        yield "Averaged over", f"every pruning of {number_of(n_trees, 'tree')}"
        yield "Curves end at", short_number(float(self.times[-1]), 6)
        yield "Sharpness of the average", short_number(self.sharpening.power, 4)
