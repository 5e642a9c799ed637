"""Models of other libraries, read as meta-trees."""

from __future__ import annotations

from typing import Any

from everytree.estimators.registry import estimators_of
from everytree.structure.importers import Imported, read_lightgbm, read_sklearn, read_xgboost


def from_sklearn(fitted: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """A fitted tree or forest of scikit-learn's as an estimator of this library's, with the same structures.

    Rows take the same path through every tree as in the model itself. The model's own predictions are dropped: leaves
    are filled with the rows given here, or later by `partial_fit`.

    Parameters
    ----------
    fitted : fitted estimator
        Decision and extra trees, random forests, extra-trees, bagging, AdaBoost, (histogram) gradient boosting.
    X, y : table and targets, optional
        Rows to fill the leaves with. If the model was grown on them, priors that are "auto" are chosen by leaving out
        one row at a time, which favours deep trees; other rows give a fairer choice.
    **options
        Parameters of the estimator that is returned, such as `split_prior`, `alpha`, `family`; and `sample_weight`,
        `exposure`, `censored` of the rows.

    Returns
    -------
    MetaForestClassifier, MetaForestRegressor, MetaTreeClassifier or MetaTreeRegressor

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    >>> model = et.from_sklearn(forest, X, y, random_state=0)
    >>> model.predict_proba(X[:1]).shape, len(model.posteriors_)
    ((1, 3), 10)
    """
    return _estimator(read_sklearn(fitted), X, y, options)


def from_lightgbm(fitted: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """A fitted LightGBM model or Booster as an estimator of this library's; see `from_sklearn`."""
    return _estimator(read_lightgbm(fitted, X), X, y, options)


def from_xgboost(fitted: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """A fitted XGBoost model or Booster as an estimator of this library's; see `from_sklearn`."""
    return _estimator(read_xgboost(fitted, X), X, y, options)


def _estimator(imported: Imported, X: Any, y: Any, options: dict[str, Any]) -> Any:
    rows = {name: options.pop(name) for name in ("sample_weight", "exposure", "censored") if name in options}
    structure = "tree" if len(imported.trees) == 1 else "forest"
    if structure == "forest":
        options = {"n_estimators": len(imported.trees), **options}
    of_classes, of_numbers = estimators_of(structure)
    model = (of_numbers if imported.classes is None else of_classes)(**options)
    model.structures_ = imported
    if X is None and y is None:
        return model
    if X is None or y is None:
        raise ValueError("X and y belong together: give both, or none and call partial_fit later")
    return model.partial_fit(X, y, **rows)
