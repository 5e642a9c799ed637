"""Summaries of the draws of a sampler: predictions, columns used, the best tree, the evidence, convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.regions import Kind
from everytree.exact.trees import ExactTree
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.predictive.predictive import Predictive
from everytree.sampling.arviz import inference_data
from everytree.sampling.draws import Draws, Structures
from everytree.sampling.evidence import EvidenceEstimate, estimate_evidence
from everytree.sampling.points import DistinctRows
from everytree.trees.metatree import read_only

MOVES = ("change", "neighbour", "swap", "rotation", "prior", "block")
"""Names of the moves, in the order of the kernel."""

MOVE_COUNTS = ("proposed", "accepted", "exchanged", "tried")
"""Counts of the kernel: of moves, and of exchanges between neighbouring powers."""

TREE_ARRAYS = ("feature", "code", "first_child", "n_children")
"""Arrays of a tree, as the kernel returns them."""


class SamplerSummaries:
    """Summaries of the draws of a `StructureSampler`."""

    n_codes: list[int]
    family: NativeFamily
    kinds: Sequence[Kind]
    n_temperatures: int
    powers: FloatArray
    _rows: DistinctRows
    _draws: Draws
    _kept: Structures
    _best: dict[str, Any]
    _moves: dict[str, NDArray[Any]]
    _forest: Forest | None

    def _check_fitted(self) -> None:
        if not hasattr(self, "_rows"):
            raise ValueError("this StructureSampler has no rows yet: call fit(X, y) first")

    @property
    def draws(self) -> Draws:
        """Numbers of every draw, by chain."""
        self._check_fitted()
        return self._draws

    @property
    def structures(self) -> Structures:
        """The structures that were kept."""
        self._check_fitted()
        return self._kept

    @property
    def n_rows(self) -> int:
        self._check_fitted()
        return self._rows.n_rows

    @property
    def posterior(self) -> Forest:
        """The kept structures with equal weights, each with the posterior over its prunings: a posterior average."""
        kept = self.structures
        if "one_against_rest" in self.kinds:
            raise ValueError("splits of one category against the rest are not thresholds: a forest cannot hold them")
        if self._forest is None:
            self._forest = Forest(
                [
                    self._rows.posterior(kept.tree(i, len(self.n_codes)), self.family, kept.one(i)["split_prior"])
                    for i in range(len(kept))
                ],
                n_codes=self.n_codes,
            )
        return self._forest

    def predictive(self, X: ArrayLike, **row_data: Any) -> Predictive:
        """One predictive distribution for each row, averaged over structures and their prunings."""
        return self.posterior.predictive(X, **row_data)

    def probs(self, X: ArrayLike) -> FloatArray:
        """(n_rows, n_classes) probability of each class, for families of classes."""
        return self.posterior.probs(X)

    @property
    def feature_prob(self) -> FloatArray:
        """(n_features,) probability that a region that holds rows is split on each column."""
        return np.asarray(self.draws.used.mean(axis=(0, 1)))

    @property
    def log_evidence(self) -> EvidenceEstimate:
        """Log p(y | X), to the power of the temperature, summed over all trees and splits, with its error."""
        if self.n_temperatures < 2:
            raise ValueError("the evidence is estimated from several temperatures: set n_temperatures to 2 or more")
        draws = self.draws
        return estimate_evidence(draws.own, draws.hotter, draws.colder)

    def map_tree(self) -> ExactTree:
        """The most probable tree that a chain visited, with its splits.

        Its `log_prob` is the log of its posterior probability, by the estimate of the evidence; NaN with one
        temperature.
        """
        self._check_fitted()
        best = self._best
        total = self.log_evidence.value if self.n_temperatures > 1 else float("nan")
        feature, code, first_child, n_children = (read_only(np.array(best[name])) for name in TREE_ARRAYS)
        log_prob = float(best["log_joint"]) - total
        return ExactTree(feature, code, first_child, n_children, log_prob, tuple(self.kinds))

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals of each move that was made at the target's temperature, and of exchanges of all.

        Where sums over all structures could be computed, each draw is one block, independent of the draw before.
        """
        self._check_fitted()
        moves = self._moves
        proposed, accepted = moves["proposed"].sum(axis=0)[-1], moves["accepted"].sum(axis=0)[-1]
        rates = {name: float(a / p) for name, a, p in zip(MOVES, accepted, proposed, strict=True) if p}
        tried, exchanged = moves["tried"].sum(axis=0)[:-1], moves["exchanged"].sum(axis=0)[:-1]
        if len(tried):
            rates["exchange"] = float((exchanged / np.maximum(tried, 1.0)).mean())
        return rates

    def to_arviz(self) -> Any:
        """The draws for ArviZ (`pip install everytree[arviz]`): its `InferenceData`, from ArviZ 1.0 on a `DataTree`.

        `arviz.summary` of it has R-hat, which tells whether chains agree, effective numbers of draws, and Monte Carlo
        errors of all means.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            `posterior` holds the number of leaves, the use of each column and the column of the root;
            `sample_stats` the log evidence of the structures as `lp`, and the share of accepted proposals of each move.
        """
        return inference_data(self.draws, self.acceptance)
