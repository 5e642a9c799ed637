"""Quality of the model on rows it has not seen.

If the rows are new to the model, the model itself predicts them. If it may have seen the table, the estimator is fitted
again to three quarters of the table, and predicts the others; of a short table four times, so that each row is
predicted by the fit that has not seen it. Rows of one group, or rows that repeat each other, are in one quarter. This
scores models like this one, not the model itself. A plain forest of scikit-learn's is fitted to the same rows; it is
compared with the refitted estimator alone, since the rows of the model itself are not available.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.metrics import roc_auc_score, roc_curve

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of
from everytree.report.charts import Series, histogram, unit_chart
from everytree.report.contenders import (
    FOLDS,
    THIS_MODEL,
    ClassPredictions,
    NumberPredictions,
    known_classes,
    known_numbers,
    refitted_classes,
    refitted_numbers,
    splits_of,
)
from everytree.report.outcomes import class_tables, predicted_chart, tenths_table
from everytree.report.rows import JudgedRows
from everytree.report.template import table_html
from everytree.tables.code_names import one_line
from everytree.view.describe import number

MIN_ROWS = 40

MIN_BIN = 10
"""Rows, at least, of a point of the calibration curve."""

MAX_ROWS = 20_000
"""Maximum number of rows; from a longer table they are drawn at random."""

MIN_PROB = 1e-4
"""Lower limit of probabilities in the log-loss: a plain forest predicts 0 where no tree has seen a class."""


@dataclass(frozen=True)
class Quality:
    """The result of one comparison."""

    title: str  # the models that are judged, and the rows they were trained on
    how: str
    scored: Scored


def judged(model: Any, rows: JudgedRows, is_new: bool) -> list[Quality]:
    """Judge the model itself if the rows are new to it; then, or else, refitted ones beside a plain forest."""
    rows, drawn = at_most(rows)
    refitted = [] if why_not_refitted(model, rows) else [_refitted(model, rows, drawn, is_new)]
    return [*([_known(model, rows, drawn)] if is_new else []), *refitted]


def why_not_refitted(model: Any, rows: JudgedRows) -> str:
    """The reason why refitted estimators cannot be judged by some rows, as a sentence; empty where they can."""
    name = model.fitted_.groups
    if rows.group is None and name is not None:
        named = f", by {name!r}" if name else ""
        return (
            f"The model was fitted with groups of rows that belong together{named}, and this page was not given those "
            "of the table (groups, or --groups on the command line). Refitted estimators would predict rows of groups "
            "that they have seen, which looks better than it is: they are left out."
        )
    if rows.group is not None and (rows.group == rows.group[0]).all():
        return "All rows of the table belong to one group, so no part of it can judge an estimator fitted to the rest."
    return ""


def why_not_judged(rows: JudgedRows | None) -> str:
    """The reason why a model cannot be judged by some rows, as a sentence; empty where it can."""
    if rows is None:
        return "This page was made without a table of rows and targets, so there was nothing to judge it by."
    if len(rows) < MIN_ROWS:
        return f"The table has {number_of(len(rows), 'row')}; fewer than {MIN_ROWS} say little about quality."
    if len(set(rows.y.tolist())) <= 1:
        return "All targets of the table are the same, so there is nothing to tell apart."
    return ""


def at_most(rows: JudgedRows) -> tuple[JudgedRows, str]:
    """Rows in their order, of a long table some at random, and words that say so."""
    n_given = len(rows)
    if n_given <= MAX_ROWS:
        return rows, ""
    rows = rows.at(np.sort(np.random.default_rng(0).choice(n_given, MAX_ROWS, replace=False)))
    return rows, f", {len(rows):,} of {n_given:,} rows drawn at random"


def _known(model: Any, rows: JudgedRows, drawn: str) -> Quality:
    """The scores of the model itself on rows that are new to it, with the words for them."""
    if model.has_classes:
        scored = class_scores(model.classes_, rows, known_classes(model, rows))
    else:
        scored = number_scores(rows, known_numbers(model, rows))
    how = (
        f"The model that this page shows predicted {len(rows):,} rows of the table{drawn}. They were given as new: "
        "it was not fitted to any of them."
    )
    return Quality("This model, on rows it has not seen", how, scored)


def _refitted(model: Any, rows: JudgedRows, drawn: str, is_new: bool) -> Quality:
    splits = splits_of(rows)
    judged = rows.at(np.concatenate([test for _, test in splits]))
    if model.has_classes:
        scored = class_scores(model.classes_, judged, refitted_classes(model, rows, splits))
    else:
        scored = number_scores(judged, refitted_numbers(model, rows, splits))
    has_plain = len(scored.columns) > 1
    plain = "; a forest of 100 trees by scikit-learn, with its defaults, to the same rows" if has_plain else ""
    why = (
        "None of them was fitted to the rows of this page's model."
        if is_new
        else "The model that this page shows was not asked, since it may have seen these rows."
    )
    most = "three quarters" if len(splits) in (1, FOLDS) else f"all but one of {len(splits)} parts"
    times = "once" if len(splits) == 1 else f"{len(splits)} times"
    unseen = "it" if rows.group is None else "any row of its group"
    whom = "the one that" if len(splits) == 1 else "those that"
    how = (
        f"The estimator, with the same parameters, was fitted again {times} to {most} of the table{drawn}"
        f"{plain}. Each of {len(judged):,} rows was predicted by {whom} had not seen {unseen}. {why}"
    )
    title = "The same estimator, refitted to parts of the table" + (", beside a plain forest" if has_plain else "")
    return Quality(title, how, scored)


class Scored(NamedTuple):
    """Scores of the contenders."""

    columns: list[str]  # the contenders
    rows: list[tuple[str, ...]]  # name of a score, and its value for each contender
    charts: list[str]
    notes: list[str]
    tables: list[str]  # HTML of what is said of the first contender alone


# ---- classes --------------------------------------------------------------------------------------------------------


def _brier(probs: FloatArray, truth: FloatArray) -> FloatArray:
    """(n_rows,) Brier scores as scikit-learn has them: of two classes, the square for one of them; of more, the sum."""
    squares = (probs - truth) ** 2
    return squares[:, -1] if probs.shape[1] <= 2 else squares.sum(axis=1)


def class_scores(classes: NDArray[Any], rows: JudgedRows, contenders: Sequence[ClassPredictions]) -> Scored:
    """Scores, calibration and ROC of probabilities in the order of `classes`."""
    place_of = {label: place for place, label in enumerate(classes.tolist())}
    place, weight = np.array([place_of[label] for label in rows.y.tolist()]), rows.weight
    truth = np.eye(len(classes))[place]
    every = [one.probs for one in contenders]
    losses = [-np.log(np.maximum(p, MIN_PROB)[np.arange(len(rows)), place]) for p in every]
    scores = [
        _score("Log-loss (less is better)", losses, weight),
        _score("Brier score (less is better)", [_brier(p, truth) for p in every], weight),
        _score("Accuracy", [p.argmax(axis=1) == place for p in every], weight),
        ("Area under ROC", *(f"{_area(p, truth, weight):.4g}" for p in every)),
    ]
    shown = slice(1, None) if len(classes) == 2 else slice(None)
    hits, weights = truth[:, shown].ravel(), np.repeat(weight, truth[:, shown].shape[1])
    curves = [(one.label, one.kind, one.probs[:, shown].ravel()) for one in contenders]
    charts = [
        unit_chart(
            [_calibration(label, kind, hits, p, weights) for label, kind, p in curves],
            "Calibration", "predicted probability", "observed share", "perfect",
        ),
        unit_chart(
            [Series(label, kind, *_roc(hits, p, weights)) for label, kind, p in curves],
            "ROC", "false positive rate", "true positive rate", "chance",
        ),
    ]  # fmt: skip
    what = "" if len(classes) == 2 else " Curves are of all classes, each against the others, together."
    note = (
        "Calibration: the band holds 90% of what the observed share may be, bars count rows. "
        f"Probabilities below {MIN_PROB:g} count as {MIN_PROB:g} in the log-loss.{what}"
    )
    notes = [*_difference("log-loss", losses, weight), note, *_weighted(rows)]
    tables = class_tables([one_line(label) for label in classes], place, every[0], weight)
    return Scored([one.label for one in contenders], scores, charts, notes, tables)


def _area(probs: FloatArray, truth: FloatArray, weight: FloatArray) -> float:
    """Area under the curve for two classes; for more, the mean over the classes that occur, each against the others."""
    there = [c for c in range(truth.shape[1]) if truth[:, c].any()]
    shown = [1] if truth.shape[1] == 2 else there
    return float(np.mean([roc_auc_score(truth[:, c], probs[:, c], sample_weight=weight) for c in shown]))


def _calibration(label: str, kind: str, truth: FloatArray, prob: FloatArray, weight: FloatArray) -> Series:
    """Mean prediction and observed share in tenths of the unit interval; of the model also how sure the share is.

    The band holds 90% of the posterior of the share, from the prior Beta(1/2, 1/2) and the effective number of rows.
    """
    groups = _by_tenth(prob)
    x, y = (np.array([np.average(values[g], weights=weight[g]) for g in groups]) for values in (prob, truth))
    count = np.array([len(g) for g in groups], dtype=np.float64)
    if kind != THIS_MODEL[1]:
        return Series(label, kind, x, y, dots=True)
    rows = np.array([weight[g].sum() ** 2 / (weight[g] ** 2).sum() for g in groups])
    low, high = (betaincinv(0.5 + rows * y, 0.5 + rows * (1.0 - y), level) for level in (0.05, 0.95))
    return Series(label, kind, x, y, True, np.asarray(low), np.asarray(high), count)


def _by_tenth(prob: FloatArray) -> list[NDArray[np.int64]]:
    """Numbers of the rows whose predictions are in each tenth of the unit interval; few rows join their neighbours."""
    tenth = np.minimum((10.0 * prob).astype(np.int64), 9)
    groups = [np.flatnonzero(tenth == k) for k in np.unique(tenth)]
    while len(groups) > 1 and min(map(len, groups)) < MIN_BIN:
        k = min(range(len(groups)), key=lambda i: len(groups[i]))
        beside = min((i for i in (k - 1, k + 1) if 0 <= i < len(groups)), key=lambda i: len(groups[i]))
        groups[min(k, beside) : max(k, beside) + 1] = [np.union1d(groups[k], groups[beside])]
    return groups


def _roc(truth: FloatArray, prob: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve in at most a hundred points: more would not be visible."""
    false, true, _ = roc_curve(truth, prob, sample_weight=weight)
    some = np.unique(np.linspace(0, len(false) - 1, 100).round().astype(int))
    return false[some], true[some]


# ---- numbers --------------------------------------------------------------------------------------------------------


def number_scores(rows: JudgedRows, contenders: Sequence[NumberPredictions]) -> Scored:
    """Scores, coverage and PIT of distributions of numbers."""
    y, weight, is_censored = rows.y, rows.weight, "censored" in rows.row_data
    losses, inside = [one.loss for one in contenders], [np.abs(2.0 * one.pit - 1.0) for one in contenders]
    name = "Minus log likelihood" if is_censored else "CRPS"
    errors = [np.average((one.mean - y) ** 2, weights=weight) ** 0.5 for one in contenders]
    scores = [
        _score(f"{name} (less is better)", losses, weight),
        *([] if is_censored else [("Root mean squared error", *(number(float(error)) for error in errors))]),
        _score("50% intervals that hold the target", [held <= 0.5 for held in inside], weight),
        _score("90% intervals that hold the target", [held <= 0.9 for held in inside], weight),
    ]
    notes = [*_difference(name, losses, weight), *_number_notes(rows, len(contenders)), *_weighted(rows)]
    charts, tables = _number_charts(contenders, inside, weight), []
    if not is_censored:
        charts.insert(0, predicted_chart(contenders[0].mean, y))
        tables.append(tenths_table(contenders[0].mean, y, inside[0] <= 0.9, weight))
    return Scored([one.label for one in contenders], scores, charts, notes, tables)


def _number_charts(
    contenders: Sequence[NumberPredictions], inside: Sequence[FloatArray], weight: FloatArray
) -> list[str]:
    level, edges = np.linspace(0.0, 1.0, 41), np.linspace(0.0, 1.0, 11)
    pairs = list(zip(contenders, inside, strict=True))
    covered = [np.average(held[:, None] <= level, axis=0, weights=weight) for held in inside]
    heights = [np.histogram(one.pit, edges, weights=weight)[0] * 10 / weight.sum() for one in contenders]
    return [
        unit_chart(
            [Series(one.label, one.kind, level, share) for (one, _), share in zip(pairs, covered, strict=True)],
            "Coverage of intervals", "nominal", "observed", "perfect",
        ),
        histogram(
            [Series(one.label, one.kind, edges[:-1], bars) for one, bars in zip(contenders, heights, strict=True)],
            "Where targets fall in their predictions (PIT)", "predicted probability below", "density", 2.0,
        ),
    ]  # fmt: skip


def _number_notes(rows: JudgedRows, n_contenders: int) -> list[str]:
    if "censored" in rows.row_data:
        share = np.average(rows.row_data["censored"], weights=rows.weight)
        return [
            f"{share:.1%} of the times were cut short: they count by the probability of a longer one, and fall "
            "somewhere beyond in intervals and PIT. A plain forest has no use for such times."
        ]
    exposed = " Counts are rates to it, weighted by exposure." if "exposure" in rows.row_data else ""
    if n_contenders == 1:
        return []
    return [
        "A plain forest predicts a mean only; its distribution here is normal, with the spread of its out-of-bag "
        f"residuals.{exposed}"
    ]


# ---- words ----------------------------------------------------------------------------------------------------------


def _score(name: str, values: Sequence[Any], weight: FloatArray) -> tuple[str, ...]:
    return name, *(number(float(np.average(one, weights=weight))) for one in values)


def _weighted(rows: JudgedRows) -> list[str]:
    return [] if (rows.weight == rows.weight[0]).all() else ["Every score counts rows by their weights."]


def _difference(what: str, losses: Sequence[FloatArray], weight: FloatArray) -> list[str]:
    """The mean of the paired difference and its standard error; weights say how much a row counts, not how often."""
    if len(losses) == 1:
        return []
    share = weight / weight.sum()
    apart = losses[1] - losses[0]
    mean = float(share @ apart)
    error = float(np.sqrt(share**2 @ (apart - mean) ** 2 * len(apart) / (len(apart) - 1)))
    which = "lower" if mean >= 0.0 else "higher"
    return [
        f"The refitted estimator's {what} is {number(abs(mean), 3)} {which} than the plain forest's, "
        f"± {number(error, 2)} (standard error)."
    ]


def quality_html(quality: Quality, more: Sequence[str] = ()) -> str:
    """Scores and charts."""
    scored = quality.scored
    table = table_html(["Rows not seen", *scored.columns], scored.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in [*scored.notes, *more])
    charts = f'<div class="charts">{"".join(scored.charts)}</div>'
    head = f"<h3>{escape(quality.title)}</h3><p>{escape(quality.how)}</p>"
    beside, below = "".join(scored.tables[:1]), "".join(scored.tables[1:])
    body = f'<div class="quality"><div class="scored">{table}{beside}</div>{charts}</div>'
    body += f'<div class="tables">{below}</div><div class="notes">{notes}</div>'
    return f'<div class="judged">{head}{body}</div>'
