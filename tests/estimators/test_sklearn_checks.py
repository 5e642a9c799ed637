"""scikit-learn's own checks of every public estimator."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import everytree as et
from every_estimator import estimators, small

COUNTED_TWICE = "it calls fit and then partial_fit with the same rows, which would count twice and are refused"
REPEATED_ROWS = (
    "which rows a tree is grown on, or a chain leaves out, is drawn for each row: a row that comes twice may be in "
    "both parts, a row of weight 2 may not. On given structures the two are equal, which other tests say"
)
COUNTED_ROWS = (
    "min_samples_leaf counts rows, whatever their weights, as in scikit-learn: a row that comes twice counts twice. "
    "With min_samples_leaf=1 the check passes"
)


def expected_failures(estimator: Any) -> dict[str, str]:
    """Checks that an estimator does not pass, and why: by its methods and parameters."""
    twice = {"check_fit_score_takes_y": COUNTED_TWICE} if hasattr(type(estimator), "merge") else {}
    least, draws_rows = getattr(estimator, "min_samples_leaf", None), hasattr(estimator, "max_iter")
    is_whole = least is None or (least == 1 and is_classifier(estimator))
    if is_whole and not draws_rows:
        return twice
    why = REPEATED_ROWS if draws_rows or least == 1 else COUNTED_ROWS
    return twice | {f"check_sample_weight_equivalence_on_{table}_data": why for table in ("dense", "sparse")}


@parametrize_with_checks(
    [*map(small, estimators()), et.MetaTreeClassifier(min_samples_leaf=1)], expected_failed_checks=expected_failures
)
@pytest.mark.filterwarnings("ignore:.* rows equal another row in every column")  # some checks repeat rows
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
