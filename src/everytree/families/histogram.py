"""Targets of any shape: the shares of cells of a line, with a Pólya tree as prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily, hyperparameter
from everytree.families.cells import Cells, cells_of
from everytree.families.link import AsColumn, Link, RowData
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, search_for
from everytree.families.shares import ShareComponents
from everytree.families.traits import Seen


@dataclass(frozen=True, eq=False)
class Histogram(NativeFamily):
    """y lies in one of some cells of the line, with unknown shares; the shares have a Pólya tree as prior.

    The cells are below the first edge, between each two edges, and above the last one; two equal edges make a cell of
    one value. Targets are spread evenly inside a cell, and exponentially in the two without end. The cells are halved
    again and again, and the share of the left half of each part is Beta distributed, with the mean given by `shares`
    and `strength` rows of weight, twice as many in each half as in the whole: neighbouring cells are alike.

    Densities at values with cells of their own are probabilities. Log scores can therefore not be compared with those
    of other families where there are such values; `crps` can.

    Statistics: the weight of each cell, and the sum of the logarithms of the densities inside cells.

    Parameters
    ----------
    edges : (n_cells - 1,) array_like
        In ascending order, at least two.
    shares : (n_cells,) array_like
        Prior mean of the share of each cell; scaled to sum to 1.
    strength : float or (n_nodes,) array_like
        How many rows the prior share of the first half is worth.
    tails : (2,) array_like
        Mean distance beyond the first and the last edge of targets there.

    Examples
    --------
    >>> import everytree as et
    >>> leaf = et.Histogram([0.0, 1.0, 1.0, 2.0], [1, 4, 2, 4, 1])
    >>> seen = leaf.statistics([0.5, 1.0, 1.0]).sum(axis=0, keepdims=True)
    >>> leaf.predictive(seen).cdf([1.0]).round(3)  # most of what was seen, and some of what was expected
    array([0.769])
    """

    kernel: ClassVar[str] = "histogram"
    is_sharpened_by_power: ClassVar[bool] = True
    grows_standardised: ClassVar[bool] = True
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = AsColumn()
    edges: ArrayLike
    shares: ArrayLike
    strength: ArrayLike = 1.0
    tails: ArrayLike = 1.0

    def __post_init__(self) -> None:
        edges = np.array(self.edges, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not (np.abs(edges) <= 1e60).all() or (np.diff(edges) < 0.0).any():
            raise ValueError(f"edges must be two numbers or more in ascending order, but is {self.edges!r:.200}")
        n_cells = len(edges) + 1
        shares, tails = hyperparameter("shares", self.shares), hyperparameter("tails", self.tails)
        if np.shape(shares) != (n_cells,):
            raise ValueError(
                f"shares must have one entry for each of {n_cells} cells, but has shape {np.shape(shares)}"
            )
        strength = hyperparameter("strength", self.strength)
        if np.ndim(strength) > 1:
            raise ValueError(f"strength must be a number or one for each node, but has shape {np.shape(strength)}")
        if np.ndim(tails) > 1 or np.size(tails) not in (1, 2):
            raise ValueError(f"tails must be a number or two, but has shape {np.shape(tails)}")
        both, total = np.broadcast_to(tails, 2).copy(), np.array(shares)
        if abs(total.sum() - 1.0) > 1e-12:  # those of a file stay as they are
            total = total / total.sum()
        named = " ".join(float(number).hex() for number in (*edges, *both))
        for array in (edges, both, total):
            array.flags.writeable = False
        for name, value in {
            "edges": edges, "shares": total, "strength": strength, "tails": both, "size": n_cells,
            "cells": Cells(edges, both), "kernel": f"histogram {named}", "mass": slice(0, n_cells),
            "never_negative": tuple(range(n_cells)),
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)
        self._freeze()

    cells: ClassVar[Cells]

    def _hyperparameters(self) -> FloatArray:
        strength = np.atleast_1d(np.asarray(self.strength))
        same = np.concatenate([np.asarray(self.edges), np.asarray(self.tails), np.asarray(self.shares)])
        return np.column_stack([np.broadcast_to(same, (len(strength), len(same))), strength])

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search `strength`, in rows; the prior shares are those of the table."""
        return cls.search_with(cells_of(y, weight), given, split_prior)

    @classmethod
    def learn(cls, y: FloatArray, weight: FloatArray | None) -> tuple[Cells, FloatArray]:
        return cells_of(y, weight)

    @classmethod
    def search_with(cls, learnt: tuple[Cells, FloatArray], given: Mapping[str, Any], split_prior: Any) -> Search:
        cells, shares = learnt

        def make(strength: float) -> Histogram:
            return cls(cells.edges, shares, strength, cells.tails)

        stage = {"strength": (0.03, 0.1, 0.3, 1.0), "split_prior": SPLIT_PRIORS}
        return search_for(make, {"strength": 0.2}, given, split_prior, [stage], {"strength": STRENGTHS})

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, : self.size].sum(axis=1), "rows")

    def additive(self, statistics: FloatArray) -> FloatArray:
        return np.ascontiguousarray(statistics[:, : self.size])

    def components(self, summary: FloatArray, **row_data: Any) -> ShareComponents:
        return ShareComponents(self.cells, summary[:, :-1], summary[:, -1])

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        return {"shares": self.summarise(statistics)[:, :-1]}

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, n_cells) shares: the halves of each part, one part after another."""
        hyper = np.broadcast_to(self.at(nodes).hyper, (len(nodes), self.hyper.shape[1]))
        mean, strength = hyper[:, -1 - self.size : -1], hyper[:, -1]
        shares = np.ones((len(nodes), self.size))

        def halve(first: int, last: int, weight: FloatArray) -> None:
            if last - first > 1:
                middle = first + (last - first) // 2
                left, right = mean[:, first:middle].sum(axis=1), mean[:, middle:last].sum(axis=1)
                share = rng.beta(weight * left / (left + right), weight * right / (left + right))[:, None]
                shares[:, first:middle] *= share
                shares[:, middle:last] *= 1.0 - share
                halve(first, middle, 2.0 * weight)
                halve(middle, last, 2.0 * weight)

        halve(0, self.size, strength)
        return shares

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        return ShareComponents(self.cells, theta, np.zeros(len(theta))).sample(rng)
