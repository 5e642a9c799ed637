"""Predictions for the rows that a model is judged by: by the model itself, or by models fitted to the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from everytree.base.arrays import FloatArray
from everytree.boosting.folds import folds
from everytree.families.registry import NUMBER_FAMILIES
from everytree.report.rows import JudgedRows
from everytree.tables.repeats import repeated_rows
from everytree.tables.schema import Schema

FOLDS = 4

LONG = 2_000
"""Rows from which on one of the parts is enough to judge by, so that a page takes no more than one fit besides."""

Split = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to fit, and rows to predict."""

THIS_MODEL = ("this model", "ours")
REFITTED = ("the same estimator, refitted", "ours")
PLAIN = ("plain forest", "plain")


@dataclass(frozen=True)
class ClassPredictions:
    """Class probabilities of one contender."""

    label: str  # its name, and its class in the style sheet
    kind: str
    probs: FloatArray  # (n_rows, n_classes): in the order of the model's classes


@dataclass(frozen=True)
class NumberPredictions:
    """Distributions of numbers of one contender."""

    label: str  # its name, and its class in the style sheet
    kind: str
    # (n_rows,): the mean, and the predicted probability below the target; a random point of the step for counts, and a
    # random point beyond for a censored time
    mean: FloatArray
    pit: FloatArray
    # (n_rows,): CRPS; where times are censored, minus the log of the density, or of the probability of a longer time
    loss: FloatArray


# ---- classes --------------------------------------------------------------------------------------------------------


def known_classes(model: Any, rows: JudgedRows) -> list[ClassPredictions]:
    """Predictions of the model itself."""
    return [ClassPredictions(*THIS_MODEL, model.predict_proba(rows.inputs))]


def refitted_classes(model: Any, rows: JudgedRows, splits: Sequence[Split]) -> list[ClassPredictions]:
    """Predictions of the rows of all splits by the estimator and by a plain forest, each fitted to the other rows."""
    made: list[tuple[FloatArray, FloatArray]] = []
    for train, test in splits:
        known, new = rows.at(train), rows.at(test)
        fitted = _refitted(model, known)
        known_codes, new_codes = _plain_columns(known.inputs, new.inputs)
        forest = RandomForestClassifier(random_state=0).fit(known_codes, known.y, known.weight)
        ours, plain = np.zeros((2, len(new), len(model.classes_)))
        ours[:, np.searchsorted(model.classes_, fitted.classes_)] = fitted.predict_proba(new.inputs)
        plain[:, np.searchsorted(model.classes_, forest.classes_)] = forest.predict_proba(new_codes)
        made.append((ours, plain))
    every_ours, every_plain = (np.concatenate(each) for each in zip(*made, strict=True))
    return [ClassPredictions(*REFITTED, every_ours), ClassPredictions(*PLAIN, every_plain)]


# ---- numbers --------------------------------------------------------------------------------------------------------


def known_numbers(model: Any, rows: JudgedRows) -> list[NumberPredictions]:
    """Predictions of the model itself."""
    return [NumberPredictions(*THIS_MODEL, *_ours(model, rows, np.random.default_rng(0)))]


def refitted_numbers(model: Any, rows: JudgedRows, splits: Sequence[Split]) -> list[NumberPredictions]:
    """Predictions of the rows of all splits by the estimator and, unless times are censored, by a plain forest."""
    rng, has_plain = np.random.default_rng(0), "censored" not in rows.row_data
    ours, plain = [], []
    for train, test in splits:
        known, new = rows.at(train), rows.at(test)
        ours.append(_ours(_refitted(model, known), new, rng))
        if has_plain:
            plain.append(_plain(known, new))
    made = [NumberPredictions(*REFITTED, *map(np.concatenate, zip(*ours, strict=True)))]
    if has_plain:
        made.append(NumberPredictions(*PLAIN, *map(np.concatenate, zip(*plain, strict=True))))
    return made


def _ours(model: Any, rows: JudgedRows, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, PIT and loss."""
    dist = model.predictive(rows.inputs, **rows.row_data)
    pit, draws = dist.cdf(rows.y), rng.random(len(rows))
    if NUMBER_FAMILIES[model.family_].support.is_whole:
        below = dist.cdf(rows.y - 1.0)
        pit = below + draws * (pit - below)
    if "censored" not in rows.row_data:
        return dist.mean(), pit, dist.crps(rows.y)
    is_censored = rows.row_data["censored"] > 0.0
    with np.errstate(divide="ignore"):
        log_scores = np.where(is_censored, np.log(dist.sf(rows.y)), dist.log_prob(rows.y))
    return dist.mean(), np.where(is_censored, pit + draws * (1.0 - pit), pit), -log_scores


def _plain(known: JudgedRows, new: JudgedRows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, PIT and loss of a plain forest: normal about its mean, with the spread of its out-of-bag residuals.

    It predicts counts with exposure as rates, weighted by exposure, since their variance depends on it.
    """
    size, new_size = (rows.row_data.get("exposure", np.ones(len(rows))) for rows in (known, new))
    columns, new_columns = _plain_columns(known.inputs, new.inputs)
    forest = RandomForestRegressor(random_state=0, oob_score=True)
    forest.fit(columns, known.y / size, known.weight * size)
    residuals = (known.y / size - forest.oob_prediction_) * np.sqrt(size)
    centre = np.average(residuals, weights=known.weight)
    spread = max(float(np.sqrt(np.average((residuals - centre) ** 2, weights=known.weight))), 1e-300)
    mean, spreads = forest.predict(new_columns) * new_size, spread * np.sqrt(new_size)
    away = (new.y - mean) / spreads
    return mean, ndtr(away), spreads * _normal_crps(away)


def _normal_crps(z: FloatArray) -> FloatArray:
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.asarray(z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))


# ---- rows -----------------------------------------------------------------------------------------------------------


def _together(rows: JudgedRows) -> NDArray[np.int64]:
    """(n_rows,) numbers from 0 on, equal for rows of one group, or without groups for rows that repeat each other."""
    group = repeated_rows(Schema.fit(rows.inputs).encode(rows.inputs)) if rows.group is None else rows.group
    return np.arange(len(rows)) if group is None else np.unique(group, return_inverse=True)[1].reshape(len(rows))


def parts_of(rows: JudgedRows) -> NDArray[np.int64]:
    """(n_rows,) the part of each row, from 0 on: alike in their targets, and no more than there are groups of rows."""
    order, group = np.unique(rows.y, return_inverse=True)[1].reshape(len(rows)), _together(rows)
    return folds(order, group, min(FOLDS, int(group.max()) + 1), np.random.default_rng(0))


def splits_of(rows: JudgedRows) -> list[Split]:
    """Each part against the others; of a long table, the first part alone."""
    part = parts_of(rows)
    n_judged = 1 if len(rows) >= LONG else int(part.max()) + 1
    return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(n_judged)]


def _refitted(model: Any, rows: JudgedRows) -> Any:
    """Refit a clone of the estimator to these rows; with their groups if it was fitted with groups."""
    groups = {} if model.fitted_.groups is None else {"groups": rows.group}
    return clone(model).fit(rows.inputs, **rows.targets, **groups)


def _plain_columns(train: Any, test: Any) -> tuple[FloatArray, FloatArray]:
    """A table as scikit-learn's forest takes it: codes, NaN for missing or new values."""
    schema = Schema.fit(train)
    return tuple(  # type: ignore[return-value]
        np.where(codes < schema.n_codes, codes.astype(np.float32), np.nan)
        for codes in (schema.encode(train), schema.encode(test))
    )
