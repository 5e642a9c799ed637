"""What tests of exported models share: rows to predict, and what other programs make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier

import everytree as et
from cases import rng_for
from estimator_cases import answers
from everytree.export.tables import TreeTable
from everytree.tables.schema import Schema


def run(model: Any, X: Any) -> list[NDArray[Any]]:
    """What onnxruntime makes of a table."""
    import onnxruntime as ort

    session = ort.InferenceSession(et.to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, et.export.onnx_inputs(model, X))


def check_equal(model: Any, X: Any) -> None:
    """The graph answers as the model does."""
    first, second = run(model, X)
    want = answers(model, X)
    if is_classifier(model):
        np.testing.assert_allclose(second, want, rtol=0.0, atol=1e-12)
        top = np.sort(want, axis=1)
        sure = top[:, -1] - np.append(np.zeros((len(top), 1)), top, axis=1)[:, -2] > 1e-9  # ties may go either way
        assert (first[sure] == model.predict(X)[sure]).all()
        assert first.dtype.kind == model.classes_.dtype.kind or first.dtype == object
    else:
        np.testing.assert_allclose(first, want[:, 0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(second, want[:, 1] ** 2, rtol=1e-9, atol=1e-12)


def with_holes(X: NDArray[Any], share: float, what: object) -> NDArray[Any]:
    """The same table with missing values in every column."""
    X = X.copy()
    X[rng_for("holes", what).random(X.shape) < share] = np.nan
    return X


def at_cuts(schema: Schema, X: NDArray[Any]) -> NDArray[Any]:
    """Rows whose numbers are cut points and their neighbours in float64, as many as X has."""
    rng = rng_for("at cuts", X.shape)
    X = X.copy()
    for k, column in enumerate(schema.columns):
        if column.formula is not None:
            continue
        cuts = column.cuts if len(column.cuts) else np.zeros(1)
        X[:, schema.input_of[k]] = rng.choice(
            np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)]), len(X)
        )
    return X


def later_rooms(frame: pd.DataFrame) -> pd.DataFrame:
    """What was not there at fit: another city, rooms that are missing, numbers beyond all others."""
    rng = rng_for("later rooms", len(frame))
    city = frame.city.astype(object).where(rng.random(len(frame)) > 0.1, "Espoo")
    rooms = frame.rooms.astype(float).where(rng.random(len(frame)) > 0.1)
    area = frame.area.where(rng.random(len(frame)) > 0.1, 1e9)
    grade = frame.grade.astype(object).where(rng.random(len(frame)) > 0.1, "none")
    return frame.assign(city=city, rooms=rooms, area=area, grade=pd.Categorical(grade))


def leaf_of(tree: TreeTable, row: NDArray[Any]) -> int:
    """A row's leaf, one question after another."""
    at = 0
    while tree.children_left[at] >= 0:
        x = row[tree.feature[at]]
        left = tree.missing_go_to_left[at] if np.isnan(x) else x <= tree.threshold[at]
        at = int((tree.children_left if left else tree.children_right)[at])
    return at


def average(tables: Any, X: Any) -> NDArray[Any]:
    """(n_rows, n_outputs) what the tables say of rows, before sharpening."""
    return np.array([
        sum(w * tree.value[leaf_of(tree, row)] for w, tree in zip(tables.weights, tables.trees, strict=True))
        for row in tables.inputs(X)
    ])  # fmt: skip
