"""How good the model is on rows it has not seen, beside a plain forest.

A fitted model does not say which rows it has seen, so it is not asked. The estimator is fitted again, four times, to
three quarters of the table, and so is a plain forest of scikit-learn's; each row is predicted by the two that have not
seen it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import KFold, StratifiedKFold

from everytree.estimators.base import MetaEstimator
from everytree.families.base import FloatArray
from everytree.report.charts import Series, histogram, unit_chart
from everytree.schema import Schema

FOLDS = 4

FEWEST_ROWS = 40

MOST_ROWS = 20_000
"""Of a longer table so many are drawn at random."""

LEAST_PROB = 1e-4
"""A plain forest says 0 where no tree has seen a class; in its log-loss that is taken for this, to be fair."""


@dataclass(frozen=True)
class Quality:
    """What the page shows.

    Attributes
    ----------
    rows : list of (str, str, str)
        A score by name: this model's, and the plain forest's.
    charts : list of str
    notes : list of str
        How it was done.
    """

    rows: list[tuple[str, str, str]]
    charts: list[str]
    notes: list[str] = field(default_factory=list)


def split_table(model: MetaEstimator, table: Any, target: Any) -> tuple[Any, NDArray[Any]]:
    """The model's columns of a table, and the targets: a column by its name, or given beside the table."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        if target is None or isinstance(target, str):
            raise ValueError("target must be an array of targets, since table has no names of columns")
        return _same_length(np.asarray(table), np.asarray(target))
    known = model.schema_.input_names
    if target is None:
        extra = [name for name in frame.columns if known is not None and name not in known]
        if len(extra) != 1:
            raise ValueError(f"target must say which column of the table is the target; candidates are {extra}")
        target = extra[0]
    if isinstance(target, str):
        if target not in frame.columns:
            raise ValueError(f"target is {target!r}, but the columns of the table are {frame.columns}")
        y = frame[target].to_numpy()
        frame = frame.drop(target)
    else:
        y = np.asarray(target)
    if known is not None and set(known) <= set(frame.columns):
        frame = frame.select(known)
    return _same_length(frame, np.asarray(y))


def _same_length(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    if len(X) != len(y):
        raise ValueError(f"target has {len(y)} entries, but the table has {len(X)} rows")
    return X, y


def held_out(model: MetaEstimator, X: Any, y: NDArray[Any]) -> Quality:
    """Scores and charts from predictions of rows by models that have not seen them."""
    notes = []
    if len(y) > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False))
        notes.append(f"{MOST_ROWS:,} of the {len(y):,} rows, drawn at random.")
        X, y = X[some], y[some]
    notes.append(
        f"Each of {len(y):,} rows was predicted by models fitted without it: the estimator, with the same parameters, "
        f"and a forest of 100 trees by scikit-learn with its defaults were fitted {FOLDS} times to three quarters of "
        "the table. The model this page shows was not asked, since it may have seen these rows."
    )
    judge = _classes if hasattr(model, "classes_") else _numbers
    quality = judge(model, X, y)
    return Quality(quality.rows, quality.charts, notes + quality.notes)


def _folds(y: NDArray[Any], stratify: bool) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    stratify = stratify and int(np.unique(y, return_counts=True)[1].min()) >= FOLDS
    kind = StratifiedKFold if stratify else KFold
    folds: Iterator[Any] = kind(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    return folds


def _rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows, as the kind of table that came."""
    return X[rows].to_native() if isinstance(X, nw.DataFrame) else X[rows]


def _plain_columns(train: Any, test: Any) -> tuple[FloatArray, FloatArray]:
    """A table as scikit-learn's forest takes it: codes, NaN for what is missing or new."""
    schema = Schema.fit(train)
    return tuple(  # type: ignore[return-value]
        np.where(codes < schema.n_codes, codes.astype(np.float32), np.nan)
        for codes in (schema.encode(train), schema.encode(test))
    )


# ---- classes --------------------------------------------------------------------------------------------------------


def _classes(model: Any, X: Any, y: NDArray[Any]) -> Quality:
    classes, place = np.unique(y, return_inverse=True)
    ours, plain = np.zeros((len(y), len(classes))), np.zeros((len(y), len(classes)))
    for train, test in _folds(y, stratify=True):
        fitted = clone(model).fit(_rows(X, train), y[train])
        ours[np.ix_(test, np.searchsorted(classes, fitted.classes_))] = fitted.predict_proba(_rows(X, test))
        known, new = _plain_columns(_rows(X, train), _rows(X, test))
        forest = RandomForestClassifier(random_state=0).fit(known, y[train])
        plain[np.ix_(test, np.searchsorted(classes, forest.classes_))] = forest.predict_proba(new)
    losses = [-np.log(np.maximum(p, LEAST_PROB)[np.arange(len(y)), place]) for p in (ours, plain)]
    truth = np.eye(len(classes))[place]
    rows = [
        _scores("Log-loss (less is better)", *(float(loss.mean()) for loss in losses)),
        _scores("Brier score (less is better)", *(float(((p - truth) ** 2).sum(axis=1).mean()) for p in (ours, plain))),
        _scores("Accuracy", *(float((p.argmax(axis=1) == place).mean()) for p in (ours, plain))),
        _scores("Area under ROC", *(_area(p, truth) for p in (ours, plain))),
    ]
    shown = slice(1, None) if len(classes) == 2 else slice(None)
    pairs = [(truth[:, shown].ravel(), p[:, shown].ravel()) for p in (ours, plain)]
    charts = [
        unit_chart(
            [Series(*who, *_calibration(*pair), dots=True) for who, pair in zip(_KINDS, pairs, strict=True)],
            "Calibration", "predicted probability", "observed share", "perfect",
        ),
        unit_chart(
            [Series(*who, *_roc(*pair)) for who, pair in zip(_KINDS, pairs, strict=True)],
            "ROC", "false positive rate", "true positive rate", "chance",
        ),
    ]  # fmt: skip
    what = "" if len(classes) == 2 else " Curves are of all classes, each against the others, together."
    note = f"Probabilities below {LEAST_PROB:g} count as {LEAST_PROB:g} in the log-loss of both.{what}"
    return Quality(rows, charts, [_difference("log-loss", *losses), note])


_KINDS = (("this model", "ours"), ("plain forest", "plain"))


def _area(probs: FloatArray, truth: FloatArray) -> float:
    """Of two classes the area; of more, the mean over classes against the others."""
    shown = range(1, 2) if truth.shape[1] == 2 else range(truth.shape[1])
    return float(np.mean([roc_auc_score(truth[:, c], probs[:, c]) for c in shown]))


def _calibration(truth: FloatArray, prob: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean prediction and observed share in ten groups of equal size."""
    groups = np.array_split(np.argsort(prob, kind="stable"), 10)
    return np.array([prob[g].mean() for g in groups]), np.array([truth[g].mean() for g in groups])


def _roc(truth: FloatArray, prob: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve in a hundred points at most: more would not be seen."""
    false, true, _ = roc_curve(truth, prob)
    some = np.unique(np.linspace(0, len(false) - 1, 100).round().astype(int))
    return false[some], true[some]


# ---- numbers --------------------------------------------------------------------------------------------------------


def _numbers(model: Any, X: Any, y: NDArray[Any]) -> Quality:
    y = y.astype(np.float64)
    mean, crps, pit = np.zeros((3, 2, len(y)))
    rng = np.random.default_rng(0)
    for train, test in _folds(y, stratify=False):
        fitted = clone(model).fit(_rows(X, train), y[train])
        dist = fitted.predictive(_rows(X, test))
        mean[0, test], crps[0, test] = dist.mean(), dist.crps(y[test])
        pit[0, test] = _pit(fitted.family, dist, y[test], rng)
        known, new = _plain_columns(_rows(X, train), _rows(X, test))
        forest = RandomForestRegressor(random_state=0, oob_score=True).fit(known, y[train])
        spread = max(float(np.std(y[train] - forest.oob_prediction_)), 1e-300)
        mean[1, test] = forest.predict(new)
        away = (y[test] - mean[1, test]) / spread
        pit[1, test], crps[1, test] = ndtr(away), spread * _normal_crps(away)
    inside = np.abs(2.0 * pit - 1.0)
    rows = [
        _scores("CRPS (less is better)", *crps.mean(axis=1).tolist()),
        _scores("Root mean squared error", *np.sqrt(((mean - y) ** 2).mean(axis=1)).tolist()),
        _scores("50% intervals that hold the target", *(inside <= 0.5).mean(axis=1).tolist()),
        _scores("90% intervals that hold the target", *(inside <= 0.9).mean(axis=1).tolist()),
    ]
    level = np.linspace(0.0, 1.0, 41)
    kinds = list(zip(_KINDS, inside, pit, strict=True))
    edges = np.linspace(0.0, 1.0, 11)
    bars = [Series(label, kind, edges[:-1], np.histogram(p, edges)[0] * 10 / len(y)) for (label, kind), _, p in kinds]
    charts = [
        unit_chart(
            [Series(label, kind, level, (held[:, None] <= level).mean(axis=0)) for (label, kind), held, _ in kinds],
            "Coverage of intervals", "nominal", "observed", "perfect",
        ),
        histogram(bars, "Where targets fall in their predictions (PIT)", "predicted probability below", "density", 2.0),
    ]  # fmt: skip
    note = (
        "A plain forest predicts a mean only; its distribution here is normal, with the spread of its out-of-bag "
        "residuals."
    )
    return Quality(rows, charts, [_difference("CRPS", *crps), note])


def _pit(family: str, dist: Any, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Predicted probability below the target; of counts, some point of the step there."""
    above = dist.cdf(y)
    if family not in ("poisson", "geometric"):
        return np.asarray(above)
    below = dist.cdf(y - 1.0)
    return np.asarray(below + rng.random(len(y)) * (above - below))


def _normal_crps(z: FloatArray) -> FloatArray:
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.asarray(z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))


# ---- words ----------------------------------------------------------------------------------------------------------


def _scores(name: str, ours: float, plain: float) -> tuple[str, str, str]:
    return name, f"{ours:.4g}", f"{plain:.4g}"


def _difference(what: str, ours: FloatArray, plain: FloatArray) -> str:
    """The mean of the paired difference and its standard error."""
    apart = plain - ours
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    which = "lower" if apart.mean() >= 0.0 else "higher"
    size = f"{abs(apart.mean()):.3g} {which} than the plain forest's, ± {error:.2g} (standard error)"
    return f"This model's {what} is {size}."
