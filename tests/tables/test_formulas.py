"""Columns of numbers that are computed from two others, beside exact arithmetic."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.tables.column import Column
from everytree.tables.formulas import Formula, formulas_of

LARGEST = np.finfo(np.float64).max
OPERATORS = ("+", "-", "*", "/")


def exactly(formula: Formula, first: float, second: float) -> float:
    """The number by rational arithmetic, rounded once."""
    if np.isnan(first) or np.isnan(second):
        return np.nan
    a, b = (Fraction(x) / Fraction(s) for x, s in ((first, formula.first_scale), (second, formula.second_scale)))
    if formula.operator == "/":
        found = Fraction(0) if b == 0 else a / b
    else:
        found = a * b if formula.operator == "*" else a + b if formula.operator == "+" else a - b
    return float(max(min(found, Fraction(LARGEST)), -Fraction(LARGEST)))


@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_are_those_of_exact_arithmetic(operator):
    rng = rng_for("formulas", operator)
    ends = [0.0, np.nan, 1e300, -1e300, 1e-300, LARGEST, -LARGEST, 3.0]
    first = np.concatenate([rng.normal(size=200), np.repeat(ends, len(ends))])
    second = np.concatenate([rng.normal(size=200), np.tile(ends, len(ends))])
    formula = Formula(operator, 0, 1, *((2.5, 0.3) if operator in "+-" else ()))
    found = formula.numbers(first, second)
    assert not np.isinf(found).any()
    expected = [exactly(formula, *each) for each in zip(first.tolist(), second.tolist(), strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_each_two_columns_have_all_four_and_the_column_with_fewer_zeros_divides():
    rng = rng_for("formulas of columns")
    numbers = {k: rng.normal(size=300) for k in (1, 4, 6)}
    numbers[4][:10] = 0.0
    found = formulas_of(numbers)
    assert {(one.operator, frozenset(one[1:3])) for one in found} == {
        (operator, frozenset(pair)) for operator in OPERATORS for pair in combinations(numbers, 2)
    }
    assert {one[1:3] for one in found if one.operator == "/"} == {(4, 1), (1, 6), (4, 6)}
    for one in found:
        scales = [numbers[one.first].std(), numbers[one.second].std()] if one.operator in "+-" else [1.0, 1.0]
        np.testing.assert_allclose(one[3:], scales, rtol=0.01)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_huge_and_tiny_numbers_have_scales(scale):
    numbers = {0: scale * np.array([1.0, 2.0, 4.0]), 1: np.array([0.0, 1.0, 5.0])}
    first = formulas_of(numbers)[0]
    assert first.first_scale == pytest.approx(scale * np.std([1.0, 2.0, 4.0]), rel=0.01)


def test_a_constant_column_and_one_without_a_value_have_a_scale():
    numbers = {0: np.full(5, 3.0), 1: np.full(5, np.nan), 2: np.arange(5.0)}
    for one in formulas_of(numbers):
        assert np.isfinite(one[3:]).all()
        assert not np.isinf(one.numbers(numbers[one.first], numbers[one.second])).any()


# ---- in a schema ----------------------------------------------------------------------------------------------------


def table(n: int = 200) -> pd.DataFrame:
    rng = rng_for("table of formulas", n)
    frame = pd.DataFrame({
        "colour": rng.choice(["red", "blue"], n), "mass": rng.normal(size=n), "height": rng.normal(size=n).round(1),
    })  # fmt: skip
    frame.loc[3, "mass"] = np.nan
    return frame


FORMULAS = [Formula("/", 1, 2), Formula("-", 1, 2, 2.0, 0.5), Formula("*", 2, 1)]


@pytest.mark.parametrize("has_names", [False, True])
def test_codes_are_those_of_the_columns_computed_by_hand(has_names):
    X = table()
    with np.errstate(divide="ignore"):
        by_hand = X.assign(
            a=np.where(X.height == 0.0, 0.0 * X.mass, X.mass / X.height), b=X.mass / 2.0 - X.height / 0.5,
            c=X.mass * X.height,
        )  # fmt: skip
    X, by_hand = (X, by_hand) if has_names else (X.to_numpy(object), by_hand.to_numpy(object))
    schema = et.Schema.fit(X).with_formulas(X, FORMULAS)
    plain = et.Schema.fit(by_hand)
    np.testing.assert_array_equal(schema.encode(X), plain.encode(by_hand))
    np.testing.assert_array_equal(schema.numbers(X), plain.numbers(by_hand))
    np.testing.assert_array_equal(schema.has_missing, plain.has_missing)
    names = ["colour", "mass", "height"] if has_names else ["x0", "x1", "x2"]
    _, mass, height = names
    words = [f"{mass} / {height}", f"{mass} / 2 - {height} / 0.5", f"{height} * {mass}"]
    assert schema.feature_words == [*names, *words]
    assert schema.n_inputs == 3
    assert schema.input_names == (names if has_names else None)
    assert schema.n_formulas == 3


def test_a_schema_with_formulas_survives_and_reads_any_order_of_columns():
    X = table()
    schema = et.Schema.fit(X).with_formulas(X, FORMULAS)
    for again in (pickle.loads(pickle.dumps(schema)), et.Schema.from_dict(schema.to_dict())):
        assert again == schema
        np.testing.assert_array_equal(again.encode(X[["height", "colour", "mass"]]), schema.encode(X))
    only = np.arange(6) == 4
    np.testing.assert_array_equal(schema.encode(X.drop(columns="colour"), only=only)[:, 4], schema.encode(X)[:, 4])
    assert "3 of them generated" in repr(schema)
    with pytest.raises(ValueError, match="lacks the columns \\['height'\\]"):
        schema.encode(X.drop(columns="height"))


def test_a_name_that_is_taken_gets_a_number():
    X = table().rename(columns={"colour": "mass / height"})
    schema = et.Schema.fit(X).with_formulas(X, FORMULAS)
    assert schema.names[3:] == ["mass / height #2", "mass / 2 - height / 0.5", "height * mass"]


def test_rows_without_weight_do_not_count():
    X, weight = table(), np.r_[np.ones(100), np.zeros(100)]
    schema = et.Schema.fit(X, sample_weight=weight).with_formulas(X, FORMULAS, sample_weight=weight)
    assert schema.columns[3:] == et.Schema.fit(X[:100]).with_formulas(X[:100], FORMULAS).columns[3:]


def test_attributions_go_half_to_each_of_two_columns():
    X = table()
    schema = et.Schema.fit(X).with_formulas(X, FORMULAS[:2])
    np.testing.assert_array_equal(schema.by_input(np.array([1.0, 2.0, 4.0, 8.0, 16.0])), [1.0, 14.0, 16.0])
    np.testing.assert_array_equal(et.Schema.fit(X).by_input(np.array([1.0, 2.0, 4.0])), [1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        (("%", 0, 1), "must have an operator"), (("+", 0, 0), "two other columns"), (("+", -1, 0), "two other columns"),
        (("+", 0, 1, 0.0, 1.0), "positive, finite scales"), (("+", 0, 1, 1.0, np.inf), "positive, finite scales"),
        (("*", 0, 1), "two columns of numbers"), (("*", 1, 9), "two columns of numbers"),
        (("*", 1, 3), "two columns of numbers"),
    ],
)  # fmt: skip
def test_impossible_formulas_are_refused(formula, says):
    columns = et.Schema.fit(table()).columns
    with pytest.raises(ValueError, match=says):
        et.Schema.from_columns([*columns, Column("new", "numeric", [0.5], formula=formula)])


def test_a_column_with_a_formula_reads_no_input():
    with pytest.raises(ValueError, match="has a formula: it must be numeric, and read no input"):
        Column("new", "numeric", [0.5], source="mass", formula=Formula("*", 1, 2))
    with pytest.raises(ValueError, match="has a formula: it must be numeric, and read no input"):
        Column("new", "datetime", [0.5], formula=Formula("*", 1, 2))
