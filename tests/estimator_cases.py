"""One row an estimator and kind of target, and how to draw rows for it. The tests of estimators run over this table."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import is_classifier

import everytree as et
from cases import rng_for, snapshot, take
from every_estimator import FAMILIES
from everytree.families.registry import NUMBER_FAMILIES

SIGNAL = {
    "two classes": lambda r, s: (np.where(s + r.normal(size=len(s)) > 0.0, "yes", "no"), {}),
    "six classes": lambda r, s: (np.searchsorted([-1.2, -0.6, 0.0, 0.6, 1.2], s + 0.5 * r.normal(size=len(s))), {}),
    "three classes": lambda r, s: (np.searchsorted([-0.7, 0.7], s + 0.5 * r.normal(size=len(s))), {}),
    "normal": lambda r, s: (s + 0.3 * r.normal(size=len(s)), {}),
    "linear": lambda r, s: (3.0 * s + 0.3 * r.normal(size=len(s)), {}),
    "poisson": lambda r, s: _counts(r, s),
    "exponential": lambda r, s: (r.exponential(np.exp(s)), {"censored": r.random(len(s)) < 0.3}),
    "survival": lambda r, s: (r.weibull(1.5, len(s)) * np.exp(s), {"censored": r.random(len(s)) < 0.3}),
    "geometric": lambda r, s: (r.geometric(1.0 / (1.0 + np.exp(s))) - 1, {}),
    "histogram": lambda r, s: (np.where(r.random(len(s)) < 0.3, 0.0, s + 0.3 * r.normal(size=len(s))), {}),
    "negative_binomial": lambda r, s: _counts(r, s, r.gamma(2.0, 0.5, len(s))),
    "gamma": lambda r, s: (r.gamma(3.0, np.exp(s)), {}),
    "weibull": lambda r, s: (r.weibull(1.5, len(s)) * np.exp(s), {"censored": r.random(len(s)) < 0.3}),
    "hurdle_negative_binomial": lambda r, s: (
        np.where(r.random(len(s)) < 1.0 / (1.0 + np.exp(2.0 * s)), 0, 1 + r.poisson(r.gamma(4.0, np.exp(s)))),
        {},
    ),
    "hurdle_lognormal": lambda r, s: (
        np.where(r.random(len(s)) < 0.4, 0.0, np.exp(s + 0.3 * r.normal(size=len(s)))),
        {},
    ),
    "lognormal": lambda r, s: (np.exp(s + 0.3 * r.normal(size=len(s))), {}),
}
"""For each kind of target: from what the columns say of a row to the target, and what goes with it."""


def _counts(
    rng: np.random.Generator, signal: NDArray[Any], factor: NDArray[Any] | float = 1.0
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    exposure = rng.uniform(0.5, 3.0, len(signal))
    return rng.poisson(exposure * np.exp(signal) * factor), {"exposure": exposure}


@dataclass(frozen=True)
class Case:
    """An estimator, and rows for it."""

    kind: type[Any]
    target: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        more = {name: value for name, value in self.options.items() if name != "family"}
        return f"{self.kind.__name__} {self.target}" + "".join(f" {name}={value}" for name, value in more.items())

    @property
    def is_forest(self) -> bool:
        return self.kind in (et.MetaForestClassifier, et.MetaForestRegressor)

    def make(self, **options: Any) -> Any:
        small = {"n_estimators": 6} if self.is_forest else {}
        return self.kind(**{"random_state": 0, **small, **self.options, **options})

    def draw(self, n: int, what: object = "") -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
        """A table of numbers, with ties and missing values, targets, and what the family wants to know besides."""
        rng = rng_for("estimators", self.target, n, what)
        X = rng.normal(size=(n, 4))
        X[:, 1] = np.round(X[:, 1], 1)
        X[:, 2] = rng.integers(0, 5, n)
        signal = 0.8 * X[:, 0] + np.where(X[:, 1] > 0.3, 0.5, -0.5) * (X[:, 2] > 1)
        X[rng.random(n) < 0.1, 3] = np.nan
        return X, *SIGNAL[self.target](rng, signal)

    def fitted(self, n: int = 150, what: object = "", **options: Any) -> tuple[Any, Any]:
        """A fitted estimator, and its rows."""
        X, y, row_data = self.draw(n, what)
        return self.make(**options).fit(X, y, **row_data), (X, y, row_data)


FOUR = [
    Case(et.MetaForestClassifier, "two classes"),
    Case(et.MetaForestRegressor, "normal"),
    Case(et.MetaTreeClassifier, "three classes"),
    Case(et.MetaTreeRegressor, "normal"),
]
"""Each estimator once."""

NUMBERS = [
    Case(kind, family, {"family": family})
    for kind in (et.MetaForestRegressor, et.MetaTreeRegressor)
    for family in FAMILIES
    if not NUMBER_FAMILIES[family].predicts_curves
]
CURVES = [Case(kind, "survival", {"family": "survival"}) for kind in (et.MetaForestRegressor, et.MetaTreeRegressor)]
"""Their leaves count positions on a baseline, not targets: see also test_survival_models.py."""
CLASSES = [
    Case(kind, target)
    for kind in (et.MetaForestClassifier, et.MetaTreeClassifier)
    for target in ("two classes", "three classes")
]
ALL = CLASSES + NUMBERS
"""Each estimator with every kind of target."""


def ids(cases: list[Any]) -> dict[str, Any]:
    """Arguments of `parametrize` that name its cases."""
    return {"argvalues": cases, "ids": str}


def answers(model: Any, X: Any, row_data: dict[str, Any] | None = None) -> NDArray[Any]:
    """(n_rows, ...) all that a model says of rows: class probabilities, or mean and spread."""
    if is_classifier(model):
        return model.predict_proba(X)
    return np.column_stack(model.predict(X, return_std=True, **of_prediction(row_data or {})))


def of_prediction(row_data: dict[str, Any]) -> dict[str, Any]:
    """What is known of rows whose targets are not."""
    return {name: values for name, values in row_data.items() if name == "exposure"}


def of_leaf(model: Any, X: NDArray[Any], row_data: dict[str, Any]) -> dict[str, Any]:
    """What the leaf model wants to know of rows; lines want the numbers, scaled, missing ones at 0, and a 1."""
    if not isinstance(model.model_.family, et.LinearRegression):
        return row_data
    scaled = (X - model.input_mean_) / model.input_scale_
    return {"inputs": np.column_stack([np.where(np.isnan(scaled), 0.0, scaled), np.ones(len(X))])}


def state(model: Any) -> list[bytes]:
    """Every bit of what a fitted model has learned."""
    return [snapshot(post) for post in model.posteriors_] + [model.weights_.tobytes()]


def parts(rows: tuple[Any, Any, dict[str, Any]], n_parts: int) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Rows in chunks of equal size."""
    X, y, row_data = rows
    return [(X[i], y[i], take(row_data, i)) for i in np.array_split(np.arange(len(X)), n_parts)]


# ---- rows one by one ------------------------------------------------------------------------------------------------


def path_to_end(post: et.Posterior, row: NDArray[Any], n_codes: NDArray[Any]) -> list[int]:
    """Nodes from the root to a terminal, or to the node whose question has no branch for the row's answer."""
    tree, missing = post.tree, np.iinfo(row.dtype).max
    nodes = [0]
    while not tree.is_terminal[nodes[-1]]:
        s = nodes[-1]
        code = int(row[tree.feature[s]])
        if code == missing and tree.missing_child[s] >= 0:
            child = int(tree.missing_child[s])
        elif code >= n_codes[tree.feature[s]]:
            break
        else:
            child = code if tree.threshold[s] < 0 else int(code > tree.threshold[s])
        nodes.append(int(tree.first_child[s]) + child)
    return nodes


def path_weights(post: et.Posterior, nodes: list[int]) -> NDArray[np.float64]:
    """How probable it is that each node of a path is the row's leaf, when the path goes no further."""
    split = post.split_prob[nodes]
    split[-1] = 0.0
    return np.cumprod([1.0, *split[:-1]]) * (1.0 - split)


def slow_average(model: Any, X: Any, value_of_nodes: Callable[[et.Posterior], NDArray[Any]]) -> NDArray[Any]:
    """(n_rows, ...) a value of nodes, averaged over the path of each row through each tree, and over trees."""
    codes = model.schema_.encode(X)
    total = 0.0
    for weight, post in zip(model.weights_, model.posteriors_, strict=True):
        values = value_of_nodes(post)
        paths = [path_to_end(post, row, model.schema_.n_codes) for row in codes]
        total += weight * np.stack([path_weights(post, nodes) @ values[nodes] for nodes in paths])
    return total


def class_probs(post: et.Posterior) -> NDArray[Any]:
    """(n_nodes, n_classes) what each node would say by itself: counts plus pseudo-counts, scaled."""
    family = post.family
    prior = [family.beta, family.alpha] if isinstance(family, et.Bernoulli) else family.alpha
    counts = post.statistics + prior
    return counts / counts.sum(axis=1, keepdims=True)


def normal_means(post: et.Posterior) -> NDArray[Any]:
    """(n_nodes,) the mean that each node would predict by itself."""
    return post.family.posterior_parameters(post.statistics)["mean"]


# ---- a table as it comes --------------------------------------------------------------------------------------------

CITIES = ["Aarhus", "Bern", "Cádiz", "Delft", None]
GRADES = ["low", "middle", "high"]


def mixed_columns(n: int = 160) -> tuple[dict[str, list[Any]], NDArray[Any]]:
    """Columns of every kind, with missing values, as plain lists; and how much each row's target is about."""
    rng = rng_for("mixed table", n)
    city, grade = rng.integers(0, 5, n), rng.integers(0, 3, n)
    area = np.round(rng.gamma(2.0, 20.0, n), 1)
    rooms, sold = rng.integers(1, 7, n), rng.integers(0, 2000, n)
    signal = 0.8 * grade + np.array([-1.0, 1.0, 0.0, -0.5, 0.7])[city] + 0.01 * area + 0.001 * sold
    start = datetime.datetime(2015, 3, 1, 12, 30)
    columns = {
        "city": [CITIES[k] for k in city],
        "grade": [GRADES[k] for k in grade],
        "area": [None if rng.random() < 0.1 else float(value) for value in area],
        "rooms": rooms.tolist(),
        "garden": [None if rng.random() < 0.15 else bool(value > 3) for value in rooms],
        "sold": [None if rng.random() < 0.05 else start + datetime.timedelta(days=int(day)) for day in sold],
    }
    return columns, signal


def as_pandas(columns: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame(columns).assign(grade=lambda table: table.grade.astype("category"))


def as_polars(columns: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns, strict=False).with_columns(pl.col("grade").cast(pl.Categorical))


def as_arrow(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table({**columns, "grade": pa.array(columns["grade"]).dictionary_encode()})


FRAMES = {
    "pandas": as_pandas,
    "pandas, nullable": lambda columns: as_pandas(columns).convert_dtypes(),
    "polars": as_polars,
    "pyarrow": as_arrow,
}
