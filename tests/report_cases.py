"""Tables with every kind of column and harmful names, models of every kind, and what a page holds."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import everytree as et

EVIL = "<script>alert('column')</script>"
EVIL_CATEGORY = '"><img src=x onerror=alert(1)>'
EVIL_CLASS = "</script><b>yes & no"


def mixed_table(n_rows: int = 400) -> pd.DataFrame:
    """Numbers, text, flags and dates with gaps, and names that would do harm if they were not escaped."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            EVIL: rng.normal(size=n_rows).round(3),
            "count": rng.integers(0, 9, n_rows).astype(float),
            "colour": rng.choice(["red", "blue", "green", EVIL_CATEGORY], n_rows).astype(object),
            "flag": rng.random(n_rows) < 0.4,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, EVIL] = np.nan
    table.loc[rng.random(n_rows) < 0.1, "colour"] = None
    return table


def visits(n_patients: int = 24, n_visits: int = 8) -> pd.DataFrame:
    """Patients who can be recognised by their columns, and whose target says nothing about the others."""
    rng = np.random.default_rng(3)
    of_patient = pd.DataFrame({"a": rng.normal(size=n_patients), "b": rng.normal(size=n_patients)})
    of_patient = of_patient.assign(
        patient=np.arange(n_patients), y=rng.permutation(np.tile(["no", "yes"], n_patients)[:n_patients])
    )
    table = of_patient.loc[np.repeat(np.arange(n_patients), n_visits)].reset_index(drop=True)
    return table.assign(a=table["a"] + 0.01 * rng.normal(size=len(table)))


def signal(table: pd.DataFrame) -> np.ndarray:
    return table[EVIL].fillna(1.0) + (table["colour"] == "red") - 0.2 * table["count"] + table["flag"]


def classes_of(table: pd.DataFrame, n_classes: int = 2) -> np.ndarray:
    noisy = signal(table) + np.random.default_rng(1).normal(size=len(table))
    names = [EVIL_CLASS, "no", "perhaps", "often", "mostly", "yes"][:n_classes]
    return np.array(names, dtype=object)[pd.qcut(noisy, n_classes, labels=False)]


def numbers_of(table: pd.DataFrame, family: str) -> np.ndarray:
    rng, rate = np.random.default_rng(2), np.exp(0.4 * signal(table))
    if family == "poisson":
        return rng.poisson(rate)
    if family == "geometric":
        return rng.geometric(1.0 / (1.0 + rate)) - 1
    return rng.exponential(rate) if family == "exponential" else 100.0 + signal(table) + rng.normal(size=len(table))


def models() -> dict[str, object]:
    """One of each kind, small."""
    table = mixed_table()
    few, options = {"n_estimators": 7, "random_state": 0}, {"random_state": 0, "max_depth": 3}
    two, three = classes_of(table), classes_of(table, 3)
    made = {
        "forest": et.MetaForestClassifier(**few).fit(table, two),
        "forest by evidence": et.MetaForestClassifier(**few, weights="evidence").fit(table, three),
        "tree": et.MetaTreeClassifier(**options).fit(table, two),
        "one class": et.MetaTreeClassifier(**options).fit(table, np.repeat("only", len(table))),
        "exact": et.ExactTreeClassifier(max_depth=2).fit(table, three),
        "exact numbers": et.ExactTreeRegressor(max_depth=2).fit(table, numbers_of(table, "normal")),
    }
    chains, both = {"max_iter": 25, "random_state": 0}, {"max_iter": 25, **few}
    made |= {
        "boosted": et.MetaBoostClassifier(**chains).fit(table, two),
        "boosted three": et.MetaBoostClassifier(**chains).fit(table, three),
        "boosted six": et.MetaBoostClassifier(**chains).fit(table, classes_of(table, 6)),
        "ensemble six": et.MetaEnsembleClassifier(**both).fit(table, classes_of(table, 6)),
        "boosted one class": et.MetaBoostClassifier(**chains).fit(table, np.repeat("only", len(table))),
        "ensemble": et.MetaEnsembleClassifier(**both).fit(table, two),
        "ensemble three": et.MetaEnsembleClassifier(**both).fit(table, three),
        "boosted numbers": et.MetaBoostRegressor(**chains, n_residual_trees=8).fit(table, numbers_of(table, "normal")),
        "ensemble numbers": et.MetaEnsembleRegressor(**both, n_residual_trees=8).fit(
            table, numbers_of(table, "normal")
        ),
    }
    some = {**chains, "n_residual_trees": 8}
    made |= {
        "ensemble counts": et.MetaEnsembleRegressor(**both, n_residual_trees=8, family="poisson").fit(
            table, numbers_of(table, "poisson")
        ),
        "boosted times": et.MetaBoostRegressor(**some, family="exponential").fit(
            table, numbers_of(table, "exponential")
        ),
        "boosted lognormal": et.MetaBoostRegressor(**some, family="lognormal").fit(table, numbers_of(table, "normal")),
    }
    for family in ("normal", "poisson", "exponential", "geometric"):
        made[family] = et.MetaForestRegressor(**few, family=family).fit(table, numbers_of(table, family))
    plain = table[["count", EVIL]].fillna(0.0)
    grown = RandomForestClassifier(5, max_depth=4, random_state=0).fit(plain, two)
    made["imported"] = et.from_sklearn(grown, plain, two, random_state=0)
    made["imported categories"] = from_lightgbm(table, two)
    return made


def from_lightgbm(table: pd.DataFrame, y: np.ndarray):
    """Splits into groups of categories, and columns that are read more than once."""
    lightgbm = pytest.importorskip("lightgbm")
    some = table[["count", "colour"]].assign(colour=table["colour"].astype("category"))
    params = {"min_data_per_group": 1, "cat_smooth": 1.0, "max_cat_to_onehot": 1, "verbose": -1}
    booster = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=8, **params).fit(some, y)
    return et.from_lightgbm(booster, some, y, random_state=0)


NAMES = (
    "forest", "forest by evidence", "tree", "one class", "exact", "exact numbers", "normal", "poisson", "exponential",
    "geometric", "imported", "imported categories", "boosted", "boosted three", "boosted one class", "ensemble",
    "ensemble three", "boosted six", "ensemble six", "boosted numbers", "ensemble numbers", "ensemble counts",
    "boosted times",
)  # fmt: skip

WITHOUT_WHAT_IF = ("boosted lognormal",)
BOOSTED = (*(name for name in NAMES if name.startswith(("boosted", "ensemble"))), *WITHOUT_WHAT_IF)


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="model-data">(.*?)</script>', page)[1])
