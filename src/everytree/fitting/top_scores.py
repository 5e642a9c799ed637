"""Predictions of rows without their own target, by a sum over splits near the root that is tempered.

For each row the recursion over regions is repeated without it: only the evidence of regions that hold the row changes.
A region may predict a row if its tree was not grown on the row; leaves near the root may predict every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.posterior import ExactPosterior
from everytree.families.base import NativeFamily
from everytree.fitting.held_out import HeldOut
from everytree.fitting.sharpness import best_sharpness
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.posterior.split_prior import SplitPriorLike, log_odds, split_prior_of_depths
from everytree.trees.metatree import MetaTree


class Tried(NamedTuple):
    """Mean log score of the rows at one temperature, and the best sharpness."""

    score: float
    sharpness: float


@dataclass(frozen=True)
class _Region:
    """A region near the root as a leaf, or a tree of one at the last depth.

    Attributes
    ----------
    rows : (n,) int64
        The scored rows in it.
    log_evidence : float
        As a leaf, or of the tree that goes on.
    own : (n,) float64
        Log probability of each row's target without it, times its weight.
    log_values : (n, n_values) float64
        Log probabilities of classes, or log densities, without the row; minus infinity where the region may not predict
        it.
    candidates : list of list of int
        Children of each split on the next level; -1 without rows.
    """

    rows: NDArray[np.int64]
    log_evidence: float
    own: FloatArray
    log_values: FloatArray
    candidates: list[list[int]]


class TopScores:
    """All regions, with what they say of the scored rows.

    Parameters
    ----------
    posterior : ExactPosterior
        With a continuation and temperature 1.
    family : NativeFamily
    rows : Rows
    few : (n_rows, n_features) uint16
        Codes of the rows near the root.
    scored : (n_scored,) int64
        Rows that are predicted.
    below : list of (rows, values, is_honest)
        For each tree of each region at the last depth: the scored rows in it, what the tree says without them, and
        whether it was not grown on them.
    log_evidence : (n_regions, n_trees) float64
        Of these trees.
    split_prior : float or callable
    """

    def __init__(
        self,
        posterior: ExactPosterior,
        family: NativeFamily,
        rows: Rows,
        few: NDArray[np.uint16],
        scored: NDArray[np.int64],
        below: Sequence[tuple[NDArray[np.int64], FloatArray, NDArray[np.bool_]]],
        log_evidence: FloatArray,
        split_prior: SplitPriorLike,
    ) -> None:
        self._rows, self._family, self._scored = rows, family, scored
        self.y = rows.y[scored]
        self.weight = np.ones(len(scored)) if rows.weight is None else rows.weight[scored]
        self.has_classes = family.has_classes
        n_levels = posterior.max_depth
        self.log_split, self.log_stop = log_odds(split_prior_of_depths(split_prior, n_levels))
        self.levels: list[dict[int, _Region]] = [{} for _ in range(n_levels)]
        self.last: dict[int, list[_Region]] = {}
        engine, here = posterior.engine(), {0: np.arange(len(few))}
        for depth in range(n_levels):
            below_here: dict[int, NDArray[np.int64]] = {}
            for number, own in here.items():
                facts = engine.region(depth, number)
                candidates = _children(facts)
                for column, code, children in zip(facts["column"], facts["code"], candidates, strict=True):
                    sides = _sides(few[own, column], int(code), len(children))
                    for child, inside in zip(children, sides, strict=True):
                        if child >= 0 and child not in below_here:
                            below_here[child] = own[inside]
                self.levels[depth][number] = self._leaf(own, candidates)
            here = below_here
        n_each = log_evidence.shape[1]
        for number, (held, values, is_honest) in enumerate(below):
            tree = self._tree(held, values, is_honest, float(log_evidence.flat[number]))
            self.last.setdefault(number // n_each, []).append(tree)

    def _leaf(self, rows: NDArray[np.int64], candidates: list[list[int]]) -> _Region:
        """A region near the root as a leaf: it has not been grown on anything."""
        tree = MetaTree.from_arrays([-1], [-1], [0], n_features=self._rows.codes.shape[1])
        own = self._rows.at(rows)
        post = Posterior(tree, self._family, 0.0).update(
            np.zeros_like(own.codes), own.y, own.weight, **dict[str, Any](own.row_data)
        )
        place = np.full(len(self._rows), -1, dtype=np.int64)
        place[self._scored] = np.arange(len(self._scored))
        held = place[rows][place[rows] >= 0]
        some = self._rows.at(self._scored[held])
        values = HeldOut(
            [tree], [post.statistics], [np.arange(len(held))], [np.zeros(len(held), dtype=np.int32)], some.y,
            some.weight, some.row_data,
        ).predict(0, [self._family], [0.0])[0, 0]  # fmt: skip
        logs = self._logs(values)
        return _Region(held, post.log_evidence, self._own(held, logs), logs, candidates)

    def _tree(
        self, held: NDArray[np.int64], values: FloatArray, is_honest: NDArray[np.bool_], log_evidence: float
    ) -> _Region:
        logs = self._logs(values)
        allowed = np.where(is_honest[:, None], logs, -np.inf)
        return _Region(held, log_evidence, self._own(held, logs), allowed, [])

    def _logs(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(values, 1e-300)) if self.has_classes else np.maximum(values, -1e300))

    def _own(self, held: NDArray[np.int64], logs: FloatArray) -> FloatArray:
        place = self.y[held].astype(np.int64) if self.has_classes else np.zeros(len(held), dtype=np.int64)
        if not len(held):
            return np.empty(0)
        return np.asarray(logs[np.arange(len(held)), place] * self.weight[held])


def _children(facts: dict[str, Any]) -> list[list[int]]:
    """Children of each candidate split of a region."""
    ends = np.cumsum(facts["n_children"])
    return [own.tolist() for own in np.split(facts["children"], ends[:-1])] if len(ends) else []


def _sides(codes: NDArray[np.uint16], code: int, n_children: int) -> list[NDArray[np.bool_]]:
    """The rows of each child of a split: at a threshold, or into all codes of a column."""
    if code >= 0:
        return [codes <= code, codes > code]
    return [codes == one for one in range(n_children)]


def score_temperatures(scores: TopScores, temperatures: Sequence[float]) -> list[Tried]:
    """Return the score of each temperature."""
    return [_score(scores, temperature) for temperature in temperatures]


class _Without(NamedTuple):
    """Log evidence of a region, the same without each of its scored rows, and what it predicts for them.

    Predictions are sums over the ways to predict a row that are allowed; `log_share` is the probability of these ways.
    """

    rows: NDArray[np.int64]
    log_evidence: float
    without: FloatArray
    log_share: FloatArray
    log_values: FloatArray


def _score(scores: TopScores, temperature: float) -> Tried:
    below = {number: _of_trees(trees, temperature) for number, trees in scores.last.items()}
    for depth in range(len(scores.levels) - 1, -1, -1):
        level = scores.levels[depth]
        below = {number: _combined(scores, region, depth, temperature, below) for number, region in level.items()}
    root = below[0]
    asked = root.log_share > -np.inf
    rows = root.rows[asked]
    log_values = root.log_values[asked] - root.log_share[asked, None]
    weight = scores.weight[rows]
    if scores.has_classes:
        return Tried(*best_sharpness(np.exp(log_values), scores.y[rows].astype(np.int64), weight))
    return Tried(float(np.average(log_values[:, 0], weights=weight)), 1.0)


def _of_tree(tree: _Region, temperature: float) -> _Without:
    """One tree, or one leaf."""
    is_allowed = np.isfinite(tree.log_values).all(axis=1)
    return _Without(
        tree.rows, temperature * tree.log_evidence, temperature * (tree.log_evidence - tree.own),
        np.where(is_allowed, 0.0, -np.inf), tree.log_values,
    )  # fmt: skip


def _of_trees(trees: list[_Region], temperature: float) -> _Without:
    """The trees of a region at the last depth, each as probable as the others a priori; they hold the same rows."""
    each = [_of_tree(tree, temperature) for tree in trees]
    if len(each) == 1:
        return each[0]
    whole, without = np.array([one.log_evidence for one in each]), np.stack([one.without for one in each])
    log_shares = without - _log_sum(without)
    return _Without(
        trees[0].rows, float(_log_sum(whole) - np.log(len(each))), _log_sum(without) - np.log(len(each)),
        _log_sum(log_shares + np.stack([one.log_share for one in each])),
        _log_sum(log_shares[:, :, None] + np.stack([one.log_values for one in each])),
    )  # fmt: skip


def _combined(
    scores: TopScores, region: _Region, depth: int, temperature: float, below: dict[int, _Without]
) -> _Without:
    """A region as a leaf and with every split, with and without each row."""
    leaf = _of_tree(region, temperature)
    if not region.candidates:
        return leaf
    place = np.full(len(scores.y), -1, dtype=np.int64)
    place[region.rows] = np.arange(len(region.rows))
    n, n_values = region.log_values.shape
    each = scores.log_split[depth] - np.log(len(region.candidates))
    whole = np.empty(len(region.candidates))
    without, share = np.empty((len(whole), n)), np.empty((len(whole), n))
    values = np.empty((len(whole), n, n_values))
    for i, children in enumerate(region.candidates):
        with_rows = [below[child] for child in children if child >= 0]
        whole[i] = sum(child.log_evidence for child in with_rows)
        for child in with_rows:
            at = place[child.rows]
            without[i, at] = whole[i] - child.log_evidence + child.without
            share[i, at], values[i, at] = child.log_share, child.log_values
    stop = scores.log_stop[depth]
    total = np.logaddexp(stop + leaf.log_evidence, each + _log_sum(whole))
    total_without = np.logaddexp(stop + leaf.without, each + _log_sum(without))
    log_stop, log_splits = stop + leaf.without - total_without, each + without - total_without
    log_share = np.logaddexp(log_stop, _log_sum(log_splits + share))
    log_values = np.logaddexp(log_stop[:, None] + region.log_values, _log_sum(log_splits[:, :, None] + values))
    return _Without(region.rows, float(total), total_without, log_share, log_values)


def _log_sum(logs: FloatArray) -> Any:
    """Logarithm of the sum of exponentials over the first axis."""
    top = logs.max(axis=0)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return finite + np.log(np.exp(logs - finite).sum(axis=0))
