"""Models and tables that importers refuse."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn import ensemble, tree
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from everytree.structure.importers import read_lightgbm, read_sklearn, read_xgboost
from importer_cases import DEPRECATED, lightgbm_estimator, numbers, targets, xgboost_estimator


@DEPRECATED
def test_what_is_refused():
    X = numbers("refused", missing=False)
    y = targets(X, "binary")
    pipeline = make_pipeline(StandardScaler(), ensemble.RandomForestClassifier(2)).fit(X, y)
    search = GridSearchCV(tree.DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, y)
    bagged = ensemble.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X, y)
    several = tree.DecisionTreeClassifier().fit(X, np.column_stack([y, 1 - y]))
    linear = xgboost_estimator("regression", booster="gblinear").fit(X, y)
    fitted_lightgbm = lightgbm_estimator("regression").fit(X, y)
    for read, model, kind, message in [
        (read_sklearn, pipeline, TypeError, r"Pipeline; pass its last step, model\[-1\], and transformed rows"),
        (read_sklearn, search, TypeError, r"GridSearchCV; pass model\.best_estimator_"),
        (read_sklearn, LogisticRegression(), TypeError, "tree or ensemble of trees, but is LogisticRegression"),
        (read_sklearn, linear, TypeError, "use read_xgboost"),
        (read_sklearn, fitted_lightgbm, TypeError, "use read_lightgbm"),
        (read_sklearn, bagged, TypeError, "ensemble of decision trees, .* is one of LogisticRegression"),
        (read_sklearn, several, ValueError, "one target, but DecisionTreeClassifier classifies 2"),
        (read_sklearn, tree.DecisionTreeClassifier(), NotFittedError, "not fitted"),
        (read_sklearn, ensemble.HistGradientBoostingRegressor(), NotFittedError, "not fitted"),
        (read_lightgbm, lgb.LGBMClassifier(), NotFittedError, "fit"),
        (read_lightgbm, pipeline, TypeError, "LightGBM estimator or Booster, but is Pipeline"),
        (read_xgboost, xgb.XGBClassifier(), NotFittedError, "fit"),
        (read_xgboost, pipeline, TypeError, "XGBoost estimator or Booster, but is Pipeline"),
        (read_xgboost, linear, ValueError, "'gbtree' or 'dart', but is 'gblinear'"),
        (lambda model: read_lightgbm(model, X[:, :3]), fitted_lightgbm, ValueError, "X has 3 features, but .* 5"),
    ]:
        with pytest.raises(kind, match=message):
            read(model)


def test_columns_must_be_there():
    X = numbers("there")
    imported = read_sklearn(tree.DecisionTreeRegressor(max_depth=2).fit(X, targets(X, "regression")))
    with pytest.raises(ValueError, match="X has 4 features, but Schema is expecting 5 features"):
        imported.schema.encode(X[:, :4])
