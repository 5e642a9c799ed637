"""A fitted estimator as a weighted set of plain trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.estimators import (
    ExactTreeClassifier,
    ExactTreeRegressor,
    MetaForestClassifier,
    MetaForestRegressor,
    MetaTreeClassifier,
    MetaTreeRegressor,
)
from everytree.estimators.outputs import refuse_several_outputs
from everytree.export.tables import TreeTable, plain_inputs, table_of
from everytree.posterior.forest import Forest
from everytree.posterior.pooling import pool_nodes
from everytree.posterior.posterior import Posterior
from everytree.predictive.pooled import NEGLIGIBLE, PooledPredictive
from everytree.tables.schema import Schema

_FORESTS = (MetaForestClassifier, MetaForestRegressor, MetaTreeClassifier, MetaTreeRegressor)


@dataclass(frozen=True)
class AveragedTrees:
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
        Of the columns that the trees split on.
    classes : (n_classes,) array or None
    centre, sharpness : float
    """

    trees: tuple[TreeTable, ...]
    weights: FloatArray
    schema: Schema
    classes: NDArray[Any] | None
    centre: float
    sharpness: float

    def inputs(self, X: Any) -> FloatArray:
        """(n_rows, n_features) a table as the trees read it: numbers, codes of categories, -1 for unseen ones, NaN."""
        codes = self.schema.encode(X, owner="AveragedTrees")
        return plain_inputs(self.schema.columns, codes, self.schema.numbers(X, owner="AveragedTrees"))

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns that the trees split on."""
        return self.schema.names or [f"x{k}" for k in range(self.schema.n_features)]


def to_tables(model: Any) -> AveragedTrees:
    """The averaged predictor as plain binary trees, in the array layout of scikit-learn's trees.

    The leaves already hold averages over every pruning, so predicting from these tables costs what plain decision trees
    of their size cost.

    Parameters
    ----------
    model : fitted estimator
        `MetaForestClassifier`, `MetaForestRegressor`, `MetaTreeClassifier` or `MetaTreeRegressor`, or what
        `from_sklearn`, `from_lightgbm` and `from_xgboost` return, with leaves of any family but "linear".

    Returns
    -------
    AveragedTrees

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tables = et.to_tables(et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, y))
    >>> tables.trees[0].threshold.tolist(), tables.trees[0].missing_go_to_left.tolist()
    ([-inf, -2.0, 2.45, -2.0, -2.0], [True, False, False, False, False])
    """
    forest = forest_of(model)
    # Trees of smaller weight are lost in rounding, unless a value in them is infinite and would count after all.
    kept = np.flatnonzero(forest.weights > NEGLIGIBLE)
    posteriors = [forest.posteriors[i] for i in kept]
    values, centre = _values(model, forest, kept)
    trees = tuple(
        table_of(post.tree, model.schema_.columns, table, _mass(post))
        for post, table in zip(posteriors, values, strict=True)
    )
    classes = getattr(model, "classes_", None)
    return AveragedTrees(trees, forest.weights[kept], model.schema_, classes, centre, forest.sharpness)


def _values(model: Any, forest: Forest, kept: NDArray[np.int64]) -> tuple[list[FloatArray], float]:
    """Return the values of the nodes of some trees, and the centre of their moments."""
    tables, centre = forest._values()
    values = [tables[i] for i in kept]
    if len(getattr(model, "classes_", ())) == 1:  # the leaf model has two classes, and the other one never occurs
        return [np.ones((len(table), 1)) for table in values], centre
    if not all(np.isfinite(table).all() for table in values):
        values = [_moments(forest.posteriors[i], centre) for i in kept]
    if not all(np.isfinite(table[:, 0]).all() for table in values):
        raise ValueError(
            f"some leaves of this {type(model).__name__} have no finite mean, so it cannot be exported; a prior of "
            f"family {model.family!r} that is worth more rows gives them one"
        )
    return values, centre


def _moments(post: Posterior, centre: float) -> FloatArray:
    """(n_nodes, 2) moments where some are infinite: like predictives, without the negligible components."""
    ends = np.arange(post.tree.n_nodes, dtype=np.int32)[:, None]
    dist = PooledPredictive(pool_nodes([post], np.ones(1)), ends, {}, 1.0)
    away = dist.mean() - centre
    return np.stack([away, dist.variance() + away**2], axis=1)


def check_exportable(model: Any) -> None:
    """Raise unless the model is a fitted estimator whose leaves are classes or constants."""
    name, known = type(model).__name__, (*_FORESTS, ExactTreeClassifier, ExactTreeRegressor)
    if not isinstance(model, known):
        raise TypeError(f"model must be one of {[one.__name__ for one in known]}, fitted, not a {name}")
    refuse_several_outputs(model)
    if not hasattr(model, "forest_"):
        raise ValueError(f"this {name} is not fitted yet: call fit, or partial_fit, and export it then")
    family = model.forest_.family
    if getattr(family, "mass", None) is None:
        what = "leaves that are lines" if "inputs" in family.row_data else f"leaves of a family of its own, {family}"
        raise ValueError(f"this {name} has {what}; only leaves that are classes or constants can be exported")


def forest_of(model: Any) -> Forest:
    """Return the forest of an estimator, or raise if it has none."""
    check_exportable(model)
    if not isinstance(model, _FORESTS):
        raise TypeError(
            f"model is a {type(model).__name__}, whose average over every choice of splits is not a set of trees; "
            "to_onnx takes it as it is, or fit a MetaForest or MetaTree estimator to the same rows"
        )
    forest: Forest = model.forest_
    return forest


def _mass(post: Posterior) -> FloatArray:
    """(n_nodes,) weight of the rows in each node."""
    family: Any = post.family
    return np.asarray(post.statistics[:, family.mass].sum(axis=1))
