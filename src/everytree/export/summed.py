"""Models as plain trees: of boosted models, trees whose values are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.trees import AdditiveTrees
from everytree.export.averaged import AveragedTrees, averaged_trees
from everytree.export.checks import check_has_trees
from everytree.export.tables import ReadBySchema, TreeTable, leaf_alone, table_of
from everytree.families.link import Link
from everytree.families.registry import NUMBER_FAMILIES
from everytree.tables.column import free_name
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class SummedTrees(ReadBySchema):
    """The predictions of a boosted model, or of one mixed with a forest, as plain trees.

    The scores of a row are `base` plus the `value` of the leaf in which the row ends in each tree. A tree has a value
    for each score, or one value, which tree t adds to score t % len(base). Values are the average of all chains, times
    the sharpness of a classifier.

    **Classes.** Of two classes there is one score, the logit of the second; otherwise there is one for each class, and
    probabilities are their softmax. With a `forest`, the logarithms of these probabilities times `weight`, and those of
    the forest's times 1 - `weight`, are added and multiplied by `sharpness`; the softmax of that is predicted.

    **Numbers.** The score is the centre c of a row. With a `forest`, c is the score times `weight`, plus 1 - `weight`
    times what the forest says: its mean for families normal and lognormal (it is then one of logarithms), the logarithm
    of its mean for poisson, and minus that for exponential. `residuals` says how targets lie about their centres; its
    trees read the centre as one more column, the last one. With their mean m and variance v, a target has

    - normal: mean c + m, variance v
    - lognormal: mean exp(c) m, variance exp(2 c) v
    - exponential: mean exp(-c) m, variance exp(-2 c) v
    - poisson, in one unit of exposure: mean exp(c) m, variance exp(c) m + exp(2 c) (v - m)

    Attributes
    ----------
    trees : tuple of TreeTable
        With one value in each node, or one for each score. Boosted trees do not know how many rows of fit were in their
        nodes: `weighted_n_node_samples` is NaN.
    base : (n_scores,) float64
    schema : Schema
        Of the columns that the trees split on; `inputs(X)` is a table as they read it, `feature_names` are their names.
    classes : (n_classes,) array or None
    family : str or None
        Of numbers: that of the estimator, such as "normal".
    residuals : AveragedTrees or None
    forest : AveragedTrees or None
        Of an ensemble.
    weight, sharpness : float
        1 where there is no forest.
    """

    trees: tuple[TreeTable, ...]
    base: FloatArray
    classes: NDArray[Any] | None
    family: str | None
    residuals: AveragedTrees | None
    forest: AveragedTrees | None
    weight: float
    sharpness: float

    @property
    def link(self) -> Link | None:
        """Link between centres and targets; None for classes."""
        return None if self.family is None else NUMBER_FAMILIES[self.family].link

    @property
    def n_values(self) -> int:
        """Values of a node: one, or one for each score."""
        return int(self.trees[0].value.shape[1])


def to_tables(model: Any) -> AveragedTrees | SummedTrees:
    """The averaged predictor as plain binary trees, in the array layout of scikit-learn's trees.

    The leaves already hold averages over every pruning, so predicting from these tables costs what plain decision trees
    of their size cost.

    Parameters
    ----------
    model : fitted estimator
        `MetaForestClassifier`, `MetaForestRegressor`, `MetaTreeClassifier` or `MetaTreeRegressor`, or what
        `from_sklearn`, `from_lightgbm` and `from_xgboost` return, with leaves of any family but "linear";
        `MetaBoostClassifier`, `MetaBoostRegressor`, `MetaEnsembleClassifier` or `MetaEnsembleRegressor`, without lines
        in the nodes of trees.

    Returns
    -------
    AveragedTrees or SummedTrees
        The first of forests and trees: predictions are averages over trees. The second of boosted models and ensembles:
        scores are sums over trees, and their parts come with the numbers by which they are put together.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tables = et.export.to_tables(et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, y))
    >>> tables.trees[0].threshold.tolist(), tables.trees[0].missing_go_to_left.tolist()
    ([-inf, -2.0, 2.45, -2.0, -2.0], [True, False, False, False, False])
    """
    check_has_trees(model)
    if model.model_.parts.lined is not None:
        raise ValueError(
            f"this {type(model).__name__} has trees with lines in their nodes, which are no plain trees: fit it with "
            "lines=False, or export it by to_onnx"
        )
    if model.model_.parts.additive is not None:
        return summed_trees(model)
    return averaged_trees(model, model.forest_, model.schema_)


def summed_trees(model: Any) -> SummedTrees:
    """Return a boosted model or an ensemble as plain trees."""
    parts, schema, classes = model.model_.parts, model.schema_, getattr(model, "classes_", None)
    residuals = family = None
    if parts.residuals is not None:
        residuals = averaged_trees(model, parts.residuals, with_centre(schema, parts.centre))
        family = parts.residuals.family.name
    trees = boosted_tables(parts.additive, schema)
    base = parts.additive.base
    if classes is not None and len(classes) == 1:  # trees have two classes, and the other one never occurs
        trees, base = (), np.zeros(1)
    trees = trees or (leaf_alone(0.0),) * len(base)
    mixed_with = None if parts.forest is None else averaged_trees(model, parts.forest, schema)
    return SummedTrees(schema, trees, base, classes, family, residuals, mixed_with, parts.weight, parts.sharpness)


def boosted_tables(trees: AdditiveTrees, schema: Schema) -> tuple[TreeTable, ...]:
    """Return boosted trees as plain trees."""
    return tuple(_table(tree, value, schema) for tree, value in trees.metatrees())


def _table(tree: MetaTree, value: FloatArray, schema: Schema) -> TreeTable:
    """A boosted tree, which has no counts of rows."""
    table = table_of(tree, schema.columns, value, np.zeros(len(value)))
    return replace(table, weighted_n_node_samples=np.full(table.node_count, np.nan))


def with_centre(schema: Schema, centre: Schema) -> Schema:
    """Return the columns of a table, and the centre as the last one; tables then have it too, under a free name."""
    (column,) = centre.columns
    if schema.names is None:
        return Schema.from_columns([*schema.columns, replace(column, name=None, source=schema.n_inputs)])
    name = free_name("centre", {*schema.names, *(schema.input_names or ())})
    return Schema.from_columns([*schema.columns, replace(column, name=name, source=None)])
