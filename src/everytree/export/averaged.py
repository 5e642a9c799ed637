"""Forests as weighted sets of plain trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.explaining.tree_sums import mass_of_nodes
from everytree.export.tables import ReadBySchema, TreeTable, table_of
from everytree.posterior.forest import Forest, pool_nodes
from everytree.posterior.posterior import Posterior
from everytree.predictive.pooled import NEGLIGIBLE, PooledPredictive
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class AveragedTrees(ReadBySchema):
    """The predictions of a model, as one plain tree for each of its structures.

    The average of a row is the sum over `trees` of the weight times the `value` of the leaf in which the row ends.
    For a classifier these are the probabilities of its classes; for a regressor the mean of y less `centre`, and the
    mean of (y - centre)^2. The model then sharpens that: it raises probabilities to the power of `sharpness` and scales
    them to sum to 1, or divides the variance by the square of `sharpness`.

    Attributes
    ----------
    trees : tuple of TreeTable
        Structures whose weight is less than 1e-13 are left out.
    weights : (n_trees,) float64
    schema : Schema
        Of the columns that the trees split on; `inputs(X)` is a table as they read it, `feature_names` are their names.
    classes : (n_classes,) array or None
    centre, sharpness : float
    """

    trees: tuple[TreeTable, ...]
    weights: FloatArray
    classes: NDArray[Any] | None
    centre: float
    sharpness: float


def averaged_trees(model: Any, forest: Forest, schema: Schema) -> AveragedTrees:
    """Return a forest of an estimator, its own or a part of it, as plain trees."""
    # Trees of smaller weight are lost in rounding, unless a value in them is infinite and would count after all.
    kept = np.flatnonzero(forest.weights > NEGLIGIBLE)
    posteriors = [forest.posteriors[i] for i in kept]
    if forest.family.is_sharpened_by_power and not forest.family.has_classes and forest.sharpness != 1.0:
        raise ValueError(
            f"this {type(model).__name__} predicts by shares of cells raised to a power, which no table of means "
            "has, so it cannot be exported; with calibration=None the shares stay as they are"
        )
    values, centre = _values(model, forest, kept)
    trees = tuple(
        table_of(post.tree, schema.columns, table, mass_of_nodes(post))
        for post, table in zip(posteriors, values, strict=True)
    )
    classes = getattr(model, "classes_", None)
    return AveragedTrees(schema, trees, forest.weights[kept], classes, centre, forest.sharpness)


def _values(model: Any, forest: Forest, kept: NDArray[np.int64]) -> tuple[list[FloatArray], float]:
    """Return the values of the nodes of some trees, and the centre of their moments."""
    tables, centre = forest.node_values()
    values = [tables[i] for i in kept]
    if len(getattr(model, "classes_", ())) == 1:  # the leaf model has two classes, and the other one never occurs
        return [np.ones((len(table), 1)) for table in values], centre
    if not all(np.isfinite(table).all() for table in values):
        values = [_moments(forest.posteriors[i], centre) for i in kept]
    if not all(np.isfinite(table[:, 0]).all() for table in values):
        raise ValueError(
            f"some leaves of this {type(model).__name__} have no finite mean, so it cannot be exported; a prior of "
            f"family {model.family_!r} that is worth more rows gives them one"
        )
    return values, centre


def _moments(post: Posterior, centre: float) -> FloatArray:
    """(n_nodes, 2) moments where some are infinite: like predictives, without the negligible components."""
    ends = np.arange(post.tree.n_nodes, dtype=np.int32)[:, None]
    dist = PooledPredictive(pool_nodes([post], np.ones(1)), ends, {}, 1.0)
    away = dist.mean() - centre
    return np.stack([away, dist.variance() + away**2], axis=1)
