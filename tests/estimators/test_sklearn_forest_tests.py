"""scikit-learn's own tests of its forests, run with those of this library in their place.

The tests come with scikit-learn. They are called with the arguments that they are parametrised with, random forests
replaced. That an error or a warning is raised is checked, its words are not.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn

import everytree as et

theirs = pytest.importorskip("sklearn.ensemble.tests.test_forest", reason="scikit-learn came without its tests")

CLASSIFIERS = {"MetaForestClassifier": et.MetaForestClassifier}
REGRESSORS = {"MetaForestRegressor": et.MetaForestRegressor}
INSTEAD_OF = {"RandomForestClassifier": et.MetaForestClassifier, "RandomForestRegressor": et.MetaForestRegressor}

CHOSEN = [
    "test_1d_input",
    "test_class_weight_balanced_and_bootstrap_multi_output",
    "test_classes_shape",
    "test_classification_toy",
    "test_dtype_convert",
    "test_forest_classifier_oob",
    "test_forest_degenerate_feature_importances",
    "test_forest_feature_importances_sum",
    "test_forest_oob_warning",
    "test_forest_regressor_oob",
    "test_forest_y_sparse",
    "test_gridsearch",
    "test_iris_criterion",
    "test_missing_value_is_predictive",
    "test_missing_values_is_resilient",
    "test_multioutput",
    "test_multioutput_string",
    "test_parallel",
    "test_parallel_train",
    "test_pickle",
    "test_probability",
    "test_read_only_buffer",
    "test_regressor_attributes",
    "test_sparse_input",
    "test_unfitted_feature_importances",
    "test_warm_start_clear",
    "test_warm_start_equal_n_estimators",
    "test_warm_start_oob",
    "test_warm_start_smaller_n_estimators",
]

INSIDE = "reads the trees or private attributes of scikit-learn's classes"
NO_PARAMETER = "a parameter that forests of this library do not have"
OTHER_CLASS = "about a class that has no counterpart here"
SHRINKAGE = "expects leaves to repeat the rows they were grown on; here every pruning and the prior are averaged"

LEFT_OUT = {
    "test_backend_respected": "threads are those of the kernels, not of joblib",
    "test_balance_property_random_forest": SHRINKAGE,
    "test_class_weight_errors": "a warm start with other targets is an error here",
    "test_class_weights_forest": INSIDE,
    "test_classifier_error_oob_score_multiclass_multioutput": "each output has a score of its own here",
    "test_decision_path": "forests of this library have no such method",
    "test_distribution": OTHER_CLASS,
    "test_estimators_samples": INSIDE,
    "test_forest_multioutput_integral_regression_target": INSIDE,
    "test_forest_oob_score_requires_bootstrap": "a subsample leaves rows out too",
    "test_friedman_mse_deprecation": "a criterion that forests of this library do not have",
    "test_importances": "expects weights to be relative; here a weight is a number of rows",
    "test_importances_asymptotic": INSIDE,
    "test_little_tree_with_small_max_samples": NO_PARAMETER,
    "test_max_leaf_nodes_max_depth": INSIDE,
    "test_max_samples_bootstrap": NO_PARAMETER,
    "test_max_samples_boundary_classifiers": NO_PARAMETER,
    "test_max_samples_boundary_regressors": NO_PARAMETER,
    "test_max_samples_geq_one": NO_PARAMETER,
    "test_memory_layout": INSIDE,
    "test_min_impurity_decrease": NO_PARAMETER,
    "test_min_samples_leaf": INSIDE,
    "test_min_samples_split": NO_PARAMETER,
    "test_min_weight_fraction_leaf": NO_PARAMETER,
    "test_mse_criterion_object_segfault_smoke_test": INSIDE,
    "test_oob_not_computed_twice": INSIDE,
    "test_poisson_vs_mse": "a criterion that forests of this library do not have",
    "test_poisson_y_positive_check": "a criterion that forests of this library do not have",
    "test_random_hasher": OTHER_CLASS,
    "test_random_hasher_sparse_data": OTHER_CLASS,
    "test_random_trees_dense_equal": OTHER_CLASS,
    "test_random_trees_dense_type": OTHER_CLASS,
    "test_random_trees_embedding_feature_names_out": OTHER_CLASS,
    "test_random_trees_embedding_raise_error_oob": OTHER_CLASS,
    "test_regression_criterion": SHRINKAGE,
    "test_round_samples_to_one_when_samples_too_low": NO_PARAMETER,
    "test_validate_y_class_weight": INSIDE,
    "test_warm_start": INSIDE,
}
"""Tests that are not run, and why."""

ABSENT = ("ExtraTreesClassifier", "ExtraTreesRegressor", "RandomTreesEmbedding", "absolute_error", "friedman_mse",
          "poisson")  # fmt: skip
"""Classes and criteria that have no counterpart."""


def is_left_out(name: str, arguments: dict[str, Any]) -> bool:
    """Whether a single call is not made.

    Means of numbers are shrunk, and R2 of a linear target that needs deep trees is 0.66, not above 0.7. Out-of-bag
    scores are those of single outputs.
    """
    if name.endswith("_oob") and np.ndim(arguments.get("y")) == 2:
        return True
    if name == "test_multioutput":
        return arguments["name"] in REGRESSORS
    return name == "test_forest_regressor_oob" and arguments["lower_bound_r2"] == 0.7


def ours(value: Any) -> Any:
    """The same argument with the forests of this library; LookupError if there is no counterpart."""
    if isinstance(value, tuple):
        return tuple(map(ours, value))
    name = value if isinstance(value, str) else getattr(value, "__name__", "")
    if name in ABSENT:
        raise LookupError(name)
    if name not in INSTEAD_OF:
        return value
    return INSTEAD_OF[name].__name__ if isinstance(value, str) else INSTEAD_OF[name]


def calls(function: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """All combinations of arguments that a test is parametrised with."""
    marks = [mark.args[:2] for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    for chosen in itertools.product(*([(names, value) for value in values] for names, values in marks)):
        arguments: dict[str, Any] = {}
        try:
            for names, value in chosen:
                each = [name.strip() for name in names.split(",")]
                arguments |= zip(each, ours(tuple(value) if len(each) > 1 else (value,)), strict=True)
        except LookupError:
            continue
        yield arguments


def is_like_another(arguments: dict[str, Any]) -> bool:
    """Whether it is a call with another kind of sparse table alone."""
    container = getattr(arguments.get("sparse_container"), "__name__", "")
    return container.endswith("_matrix") or arguments.get("X_type") == "sparse_csc"


RUNS = [
    pytest.param(name, arguments, id=f"{name}-{number}", marks=[pytest.mark.slow] if is_like_another(arguments) else [])
    for name in CHOSEN
    if hasattr(theirs, name)
    for number, arguments in enumerate(calls(getattr(theirs, name)))
    if not is_left_out(name, arguments)
]


@pytest.mark.parametrize(("name", "arguments"), RUNS)
def test_of_scikit_learn(name, arguments, monkeypatch):
    tables = {
        "FOREST_CLASSIFIERS": CLASSIFIERS, "FOREST_REGRESSORS": REGRESSORS,
        "FOREST_ESTIMATORS": CLASSIFIERS | REGRESSORS, "FOREST_CLASSIFIERS_REGRESSORS": CLASSIFIERS | REGRESSORS,
    }  # fmt: skip
    of_any_words = types.SimpleNamespace(
        raises=lambda kind, match=None: pytest.raises(kind),
        warns=lambda kind, match=None: pytest.warns(kind),
    )
    for place, value in {**tables, **INSTEAD_OF, "pytest": of_any_words}.items():
        monkeypatch.setattr(theirs, place, value)
    function = getattr(theirs, name)
    fixtures = {"global_random_seed": 0, "monkeypatch": monkeypatch}
    wanted = {given: value for given, value in fixtures.items() if given in inspect.signature(function).parameters}
    functools.partial(function, **arguments, **wanted)()


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="the lists are those of scikit-learn 1.9")
def test_every_test_is_run_or_left_out_for_a_reason():
    there = {name for name in vars(theirs) if name.startswith("test_")}
    assert there == {*CHOSEN, *LEFT_OUT}
    assert not set(CHOSEN) & set(LEFT_OUT)
