"""A fitted estimator as plain trees."""

from __future__ import annotations

from typing import Any

from everytree.export.averaged import AveragedTrees, averaged_trees
from everytree.export.checks import check_has_trees
from everytree.export.summed import SummedTrees, summed_trees


def to_tables(model: Any) -> AveragedTrees | SummedTrees:
    """The averaged predictor as plain binary trees, in the array layout of scikit-learn's trees.

    The leaves already hold averages over every pruning, so predicting from these tables costs what plain decision trees
    of their size cost.

    Parameters
    ----------
    model : fitted estimator
        `MetaForestClassifier`, `MetaForestRegressor`, `MetaTreeClassifier` or `MetaTreeRegressor`, or what
        `from_sklearn`, `from_lightgbm` and `from_xgboost` return, with leaves of any family but "linear";
        `MetaBoostClassifier`, `MetaBoostRegressor`, `MetaEnsembleClassifier` or `MetaEnsembleRegressor`.

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
    >>> tables = et.to_tables(et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, y))
    >>> tables.trees[0].threshold.tolist(), tables.trees[0].missing_go_to_left.tolist()
    ([-inf, -2.0, 2.45, -2.0, -2.0], [True, False, False, False, False])
    """
    check_has_trees(model)
    if model.model_.parts.additive is not None:
        return summed_trees(model)
    return averaged_trees(model, model.forest_, model.schema_)
