"""Exact Shapley values of weighted sums of trees.

The value of a set of columns is that of a walk in which splits on these columns are followed, and every other split
goes on to all children, by the shares of the rows there: the tree's own distribution, as in path-dependent Tree SHAP. A
meta-tree predicts like a plain tree whose leaves hold averages over every pruning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.boosting.lines import LinedTrees
from everytree.boosting.trees import AdditiveTrees
from everytree.explaining.contributions import Contributions, product_of
from everytree.posterior.forest import Forest, forest_kernel
from everytree.posterior.posterior import Posterior
from everytree.predictive.pooled import NEGLIGIBLE
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class Asked:
    """The rows to explain."""

    codes: NDArray[Any]  # (n_rows, n_columns) array
    # (n_columns,) int32: the input that each column of codes reads: contributions are those of inputs
    inputs: NDArray[np.int32]
    n_inputs: int
    # (n_table_rows, n_columns) array: codes of rows by whose shares the trees go on at splits that are not followed;
    # None for those of fit
    table: NDArray[Any] | None
    n_jobs: int | None
    # (n_outputs,): mean prediction of the rows whose shares count; None where it is not known
    mean: FloatArray | None = None

    def with_column(self, codes: NDArray[Any], table: NDArray[Any] | None) -> Asked:
        """Add a column, which is an input of its own."""
        inputs = np.append(self.inputs, self.n_inputs).astype(np.int32)
        return Asked(codes, inputs, self.n_inputs + 1, table, self.n_jobs)


def tree_sum(
    asked: Asked,
    trees: Sequence[MetaTree],
    mass: Sequence[FloatArray],
    values: Sequence[FloatArray],
    weights: FloatArray,
    n_codes: NDArray[Any],
    n_outputs: int,
    first_output: NDArray[np.int32] | None = None,
) -> Contributions:
    """Contributions to the weighted sum of the values (n_nodes, n_values) of the nodes where rows end."""
    first = np.zeros(len(trees), dtype=np.int32) if first_output is None else first_output
    kernel = _kernels.tree_sum(
        trees=[tree.kernel for tree in trees], mass=[np.ascontiguousarray(each) for each in mass],
        values=[np.ascontiguousarray(each) for each in values], weights=np.ascontiguousarray(weights),
        first_output=first, player=asked.inputs, known=np.asarray(n_codes, dtype=np.uint16),
        n_players=asked.n_inputs, n_outputs=n_outputs,
    )  # fmt: skip
    found = kernel.explain(asked.codes, resolve_n_jobs(asked.n_jobs))
    assert found is not None, "codes of a schema are arrays that the kernels read"
    return Contributions(kernel.base(), found)


def forest_sum(asked: Asked, forest: Forest) -> Contributions:
    """Contributions to the average of the trees: probabilities of all classes before sharpening, or the mean."""
    tables, centre = forest.node_values()
    has_classes = forest.family.has_classes
    # Of two classes one is enough; of moments, the first.
    some = slice(None) if has_classes and tables[0].shape[1] > 2 else slice(1, 2) if has_classes else slice(0, 1)
    found = average_sum(asked, forest, [table[:, some] for table in tables])
    if not has_classes:
        return found.shifted(centre)
    return found if some == slice(None) else of_both_classes(found)


def average_sum(asked: Asked, forest: Forest, values: Sequence[FloatArray]) -> Contributions:
    """Contributions to the average over trees of the values (n_nodes, n_values) of the nodes where rows end."""
    # Trees of smaller weight are lost in rounding.
    kept = np.flatnonzero(forest.weights > NEGLIGIBLE)
    trees = [forest.posteriors[i].tree for i in kept]
    if asked.table is None:
        mass = [mass_of_nodes(forest.posteriors[i]) for i in kept]
    else:
        mass = mass_of_table(trees, forest.n_codes, asked.table, asked.n_jobs)
    own = [values[i] for i in kept.tolist()]
    return tree_sum(asked, trees, mass, own, forest.weights[kept], forest.n_codes, own[0].shape[1])


def additive_sum(asked: Asked, trees: AdditiveTrees) -> Contributions:
    """Contributions to the scores of boosted trees."""
    if not len(trees):
        values = np.zeros((len(asked.codes), asked.n_inputs, trees.n_outputs))
        return Contributions(trees.base.copy(), values)
    every = trees.metatrees()
    mass = trees.mass if asked.table is None else trees.mass_of(asked.table, n_jobs=asked.n_jobs)
    if mass is None:
        raise ValueError(
            "this model does not know how many rows were in the nodes of its trees: it was saved by a version that did "
            "not keep them. Pass table=, rows like those that it was fitted to, or fit it again"
        )
    found = tree_sum(
        asked, [tree for tree, _ in every], np.split(mass, np.cumsum(trees.n_nodes)[:-1]),
        [value for _, value in every], np.ones(len(every)), trees.n_codes, trees.n_outputs, trees.first_output,
    )  # fmt: skip
    return Contributions(found.base + trees.base, found.values)


def lined_sum(asked: Asked, lined: LinedTrees) -> Contributions:
    """Contributions to the scores of boosted trees with lines.

    A score is the sum of the constants, and for each column the sum of its slopes times its point: these are products
    of a sum of trees and a number that is the column's own, and without the column that of the mean row.
    """
    sums = additive_sum(asked, lined.trees)
    points = lined.points_of(asked.codes)
    means = np.zeros(points.shape[1]) if asked.table is None else lined.points_of(asked.table).mean(axis=0)
    each = [Contributions(sums.base[k : k + 1], sums.values[:, :, k : k + 1]) for k in range(len(sums.base))]
    total = each[0]
    for j, column in enumerate(lined.columns):
        values = np.zeros_like(total.values)
        values[:, asked.inputs[column], 0] = points[:, j] - means[j]
        total = total.plus(product_of(Contributions(means[j : j + 1], values), each[1 + j]))
    return total


def of_both_classes(second: Contributions) -> Contributions:
    """Contributions to the probabilities of two classes, from those to that of the second."""
    base = np.concatenate([1.0 - second.base, second.base])
    return Contributions(base, np.concatenate([-second.values, second.values], axis=2))


def mass_of_nodes(post: Posterior) -> FloatArray:
    """(n_nodes,) weight of the rows in each node; of counts their exposure, of times the number of events."""
    family: Any = post.family
    return np.asarray(post.statistics[:, family.mass].sum(axis=1))


def mass_of_table(
    trees: Sequence[MetaTree], n_codes: NDArray[Any], table: NDArray[Any], n_jobs: int | None
) -> list[FloatArray]:
    """Number of the rows of a table in each node; rows that stop at a split are not counted."""
    ends = forest_kernel(trees, n_codes).ends(table, resolve_n_jobs(n_jobs))
    assert ends is not None, "codes of a schema are arrays that the kernels read"
    return [mass_of_ends(tree, ends[:, t]) for t, tree in enumerate(trees)]


def mass_of_ends(tree: MetaTree, ends: NDArray[np.int32], weight: FloatArray | None = None) -> FloatArray:
    """(n_nodes,) weight of the rows that go through each node to a terminal, from the nodes where they end."""
    mass = np.where(tree.is_terminal, np.bincount(ends, weight, tree.n_nodes), 0.0)
    starts = np.searchsorted(tree.depth, np.arange(int(tree.depth[-1]) + 2))
    for level in range(len(starts) - 2, 0, -1):
        nodes = np.arange(starts[level], starts[level + 1])
        np.add.at(mass, tree.parent[nodes], mass[nodes])
    return np.asarray(mass)
