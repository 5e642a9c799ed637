"""Errors carry what they say; Python and the command line word the same fields."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everytree as et
from everytree.base.checks import row_weights
from everytree.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    ChangedColumnError,
    MissingValueError,
    TooManyRegionsError,
)
from everytree.cli.problems import in_words_of_files

WORDED = [
    (
        ArgumentError("y", "must be positive", row=3, value="-1"),
        "y[3] is -1, but must be positive",
        "'price', line 5, is -1, but must be positive",
    ),
    (
        ArgumentError("sample_weight", "is zero for every row"),
        "sample_weight is zero for every row",
        "the weight 'w' is zero for every row",
    ),
    (
        ArgumentError("X", "X must not hold infinity", "column 'a'", 0, "inf"),
        "X: column 'a', row 0: inf, but X must not hold infinity",
        "column 'a', line 2: inf, but X must not hold infinity",
    ),
    (
        ArgumentTypeError("X", "must hold numbers", "column 'a'", value="of type Time"),
        "X: column 'a' is of type Time, but must hold numbers",
        "column 'a' is of type Time, but must hold numbers",
    ),
    (
        ChangedColumnError("X", "was numeric, but is categorical now", "column 'a'", 1, "'old'"),
        "X: column 'a' was numeric, but is categorical now: row 1 holds 'old'",
        "column 'a' was numeric, but is categorical now: line 3 holds 'old'",
    ),
    (
        MissingValueError("y", "every row needs one", "target 'price'", 7),
        "target 'price' is missing in row 7: every row needs one",
        "target 'price' is missing in line 9: every row needs one",
    ),
    (
        ArgumentError("max_depth", "must be a whole number from 1 on, but is 0"),
        "max_depth must be a whole number from 1 on, but is 0",
        "--depth must be a whole number from 1 on, but is 0",
    ),
    (
        TooManyRegionsError(12, 10**9, 200 * 10**9, 2 * 10**7, 4),
        "max_depth=12 on these columns can have 1e+09 regions (about 186 GiB), but max_regions is 20000000; "
        "max_depth=4 fits, or fewer columns or codes, or give a budget",
        "--depth 12 on these columns can have 1e+09 regions (about 186 GiB), but the most are 20000000; "
        "--depth 4 fits, or fewer columns or codes",
    ),
    (ValueError("something else"), "something else", "something else"),
]


@pytest.mark.parametrize(("error", "in_python", "in_files"), WORDED)
def test_the_same_fields_are_worded_for_python_and_for_files(error, in_python, in_files):
    roles = {"y": "price", "sample_weight": "w"}
    assert str(error) == in_python
    assert in_words_of_files(error, roles, lambda row: f"line {row + 2}") == in_files


@pytest.mark.parametrize("error", [error for error, *_ in WORDED])
def test_errors_come_back_whole_from_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_part_is_named_before_the_rest():
    error = ArgumentError("y", "must be positive", row=3, value="-1").within(("batch", 2))
    assert (str(error), error.row, error.part) == ("batch 2: y[3] is -1, but must be positive", 3, ("batch", 2))
    assert isinstance(error, ArgumentError)


def test_estimators_raise_errors_with_fields():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = et.MetaTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ArgumentError) as unknown:
        model.partial_fit(X[:2], [0, 7])
    assert (unknown.value.argument, unknown.value.row, unknown.value.value) == ("y", 1, "7")
    with pytest.raises(ValueError, match=r"X: column 0, row 1: inf") as infinite:
        model.predict([[1.0], [np.inf]])
    assert (infinite.value.argument, infinite.value.column, infinite.value.row) == ("X", "column 0", 1)
    with pytest.raises(TypeError, match="y has one") as other:
        raise ArgumentTypeError("y", "has one")
    assert not isinstance(other.value, ValueError)


@pytest.mark.parametrize(("weights", "row"), [([1.0, -1.0], 1), ([np.nan, 1.0], 0), ([0.0, 1.0, 1e61], 2)])
def test_weights_are_checked_in_one_place(weights, row):
    said = rf"sample_weight\[{row}\] is .*, but must be finite, from 0 to 1e60"
    with pytest.raises(ArgumentError, match=said):
        row_weights(weights)
    X, y = np.zeros((len(weights), 1)), np.arange(len(weights)) % 2
    for use in (
        lambda: et.Schema.fit(X, y, sample_weight=weights),
        lambda: et.MetaTreeClassifier().fit(X, y, weights),
        lambda: et.MetaTreeClassifier().fit_batches([(X, y, weights)]),
    ):
        with pytest.raises(ArgumentError, match=said):
            use()
