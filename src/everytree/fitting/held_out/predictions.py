"""Predictions of held-out rows by the priors that were chosen: of each tree, and of their average."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.fitting.held_out.held_out import HeldOut, PathMixtures, TreePrediction
from everytree.posterior.split_prior import SplitPriorLike
from everytree.predictive.paths import PathPredictive, Paths

MAX_MIXTURES = 1000
"""Number of scored rows whose distributions of numbers are made."""

SMALL_WEIGHT = 1e-6
"""Nodes with a smaller share of the weight of their tree are left out."""


class Mixtures(NamedTuple):
    """Distributions of some of the scored rows, and which rows these are."""

    predicted: PathPredictive
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of held-out rows by each tree under one prior, computed on first use.

    The weights of the trees, the sharpness and the scores of unseen rows need the same predictions.
    """

    held: HeldOut
    family: NativeFamily
    split_prior: SplitPriorLike
    _mixtures: dict[bytes, Mixtures] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def of_trees(self) -> list[TreePrediction]:
        """Tree, rows and (n_held, n_values) predictions of each tree that predicts any."""
        if self.family.has_classes or "_path_mixtures" not in self.__dict__:  # what was said is a part of mixtures
            return self.held.predict_each(self.family, self.split_prior)
        return [(tree, rows, found.values) for tree, rows, found in self._path_mixtures]

    @cached_property
    def _path_mixtures(self) -> list[tuple[int, NDArray[np.int64], PathMixtures]]:
        """Tree, rows and mixtures of each tree that predicts any."""
        rows = self.held.rows
        asked = [tree for tree in range(len(rows)) if len(rows[tree])]
        with ThreadPoolExecutor(self.held.n_jobs) as pool:
            found = pool.map(lambda tree: self.held.components(tree, self.family, self.split_prior), asked)
            return [(tree, rows[tree], each) for tree, each in zip(asked, found, strict=True)]

    def mixtures(self, weights: FloatArray) -> Mixtures:
        """The average of the trees that may predict a row, for the first of the scored rows; for families of numbers.

        Only ratios of the weights matter.
        """
        ratios = (weights / weights.max()).tobytes()
        if ratios not in self._mixtures:
            self._mixtures[ratios] = _mixture(self.held, self.family, self._path_mixtures, weights)
        return self._mixtures[ratios]


def _mixture(
    held: HeldOut,
    family: NativeFamily,
    of_trees: Sequence[tuple[int, NDArray[np.int64], PathMixtures]],
    weights: FloatArray,
) -> Mixtures:
    chosen = np.zeros(held.n_scored, dtype=bool)
    chosen[:MAX_MIXTURES] = True
    row_of, log_weights, parameters = [], [], []
    for tree, rows, found in of_trees:
        if weights[tree] == 0.0:
            continue
        of_entry = np.repeat(rows, np.diff(found.start))
        kept = chosen[of_entry] & (found.log_weights > np.log(SMALL_WEIGHT))
        row_of.append(of_entry[kept])
        log_weights.append(found.log_weights[kept] + np.log(weights[tree]))
        parameters.append(found.parameters[kept])
    order = np.argsort(np.concatenate(row_of), kind="stable")
    rows, start = np.unique(np.concatenate(row_of)[order], return_index=True)
    log_weight = np.concatenate(log_weights)[order]
    ends = np.append(start, len(order))
    top = np.maximum.reduceat(log_weight, start)  # weights of trees may be far below the range of doubles
    total = top + np.log(np.add.reduceat(np.exp(log_weight - np.repeat(top, np.diff(ends))), start))
    paths = Paths(
        ends.astype(np.int64),
        np.arange(len(order)),
        log_weight - np.repeat(total, np.diff(ends)),
        np.arange(len(rows), dtype=np.int32),
    )
    row_data = {name: values[rows] for name, values in held.row_data.items()}
    return Mixtures(PathPredictive(family, np.concatenate(parameters)[order], paths, row_data), rows)
