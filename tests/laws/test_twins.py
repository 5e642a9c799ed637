"""Twins: the same table in another order of columns, or in other units, gives the same answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

from cases import rng_for
from every_estimator import estimators, make, marked

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows(kind, n=120):
    rng = rng_for("twins", kind.__name__)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n), "b": rng.integers(0, 9, n).astype(float),
            "t": [f"v{k}" for k in rng.integers(0, 5, n)],
            "u": [f"w{k}" for k in rng.integers(0, 3, n)],
        }
    )  # fmt: skip
    signal = X["a"].to_numpy() + (X["t"] == "v2")
    y = (signal + rng.normal(size=n) > 0.5).astype(int) if is_classifier(kind()) else signal + rng.normal(size=n)
    return X, y


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("kind", marked(estimators()))
def test_columns_are_found_by_their_names(kind):
    X, y = rows(kind)
    model = make(kind).fit(X, y)
    np.testing.assert_array_equal(answers(model, X[["u", "b", "t", "a"]].assign(other=1)), answers(model, X))


@pytest.mark.parametrize("kind", marked(estimators()))
def test_units_and_names_of_categories_do_not_matter(kind):
    """A power of two changes no rounding; texts keep their natural order."""
    X, y = rows(kind)
    other = X.assign(a=X["a"] * 1024.0, b=X["b"] / 256.0 - 8.0, t="level " + X["t"].str[1:], u=X["u"].str.upper())
    np.testing.assert_allclose(
        answers(make(kind).fit(other, y), other), answers(make(kind).fit(X, y), X), rtol=1e-10, atol=1e-12
    )
