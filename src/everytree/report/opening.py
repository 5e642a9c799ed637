"""The first lines of the page: what is predicted, how well, and three numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from everytree.base.errors import OverlapError
from everytree.base.words import number_of
from everytree.fitting.held_out.scores import ClassScores, CurveScores, NoScores, NumberScores, Scores
from everytree.fitting.held_out.unseen import NOTHING_TO_PREDICT, UnseenRows, scores_of
from everytree.posterior.rows import Rows
from everytree.predictive.paths import predictive_of_probs
from everytree.report.quality import Quality
from everytree.report.rows import JudgedRows
from everytree.report.subject import Subject
from everytree.tables.named_columns import series_name
from everytree.view.describe import amount

BETTER = ((0.02, "No better than guessing"), (0.1, "A little better than guessing"), (0.4, "Better than guessing"))
"""Words for the share that the model saves of the log-loss, and of numbers also of the squared error; each below a
limit."""

BEST = "Much better than guessing"

NOTHING = "Nothing to predict: all targets are the same."

NEW = "new rows of the table"

MAX_TILES = 3


class Tile(NamedTuple):
    """A number in large print, what it is, and what to compare it with."""

    value: str
    name: str
    beside: str


def title(model: Any, target_name: str | None) -> str:
    """Title of the page: the target, or the class of the model where the target has no name."""
    return type(model).__name__ if target_name is None else f"Predicting {target_name}"


def target_name_of(target: Any, others: Sequence[str]) -> str | None:
    """Name of the target: a column's, that of a series, or the only other column's; None where there is none."""
    if isinstance(target, str):
        return target
    if target is None:
        return others[0] if len(others) == 1 else None
    return series_name(target)


def scores_after_fit(subject: Subject) -> Scores | NoScores | None:
    """Scores of rows that the trees had not seen; None where the model has none."""
    if subject.model.fitted_.unseen == NOTHING_TO_PREDICT:
        return NOTHING_TO_PREDICT
    scores: Scores | None = getattr(subject.model, "unseen_", None)
    return scores


def refuse_rows_of_fit(model: Any, rows: JudgedRows) -> None:
    """Raise if rows are said to be new to a model that has counted them."""
    own = _coded(model, rows)
    if model.fitted_.has_counted(replace(own, weight=rows.weight * model.fitted_.weight_factor)):
        raise OverlapError(
            "held_out=True says that the model was fitted to none of these rows, but it has counted them all; leave it "
            "out, and the estimator is fitted again to parts of the table"
        )


def scores_of_new(model: Any, rows: JudgedRows) -> Scores | NoScores:
    """Scores of the model itself on rows that are new to it."""
    if model.has_classes:
        predicted = predictive_of_probs(model.predict_proba(rows.inputs))
    else:
        predicted = model.predictive(rows.inputs, **rows.row_data)
    unseen = UnseenRows(np.arange(len(rows)), predicted, are_new=True)
    return scores_of(model.fitted_.target, _coded(model, rows), unseen)


def _coded(model: Any, rows: JudgedRows) -> Rows:
    """The rows as the model counts them."""
    target, columns = model.fitted_.target, {}
    y = np.searchsorted(model.classes_, rows.y) if model.has_classes else rows.y
    if not model.has_classes:
        columns = target.columns(model.schema_, rows.inputs, len(rows), rows.row_data)
    return Rows(model.schema_.encode(rows.inputs), y, rows.weight, columns, rows.group)


def verdict(scores: Scores | NoScores | None, quality: Sequence[Quality], *, are_new: bool = False) -> str:
    """How well the model predicts, in one sentence; `are_new` where the scores are of new rows of the table."""
    if scores == NOTHING_TO_PREDICT:
        return NOTHING
    if isinstance(scores, Scores):
        return f"{better(_skill(scores))}: {scores.sentence(NEW) if are_new else scores.sentence()}."
    if quality:
        name, score = quality[0].scored.rows[0][:2]
        return f"{quality[0].title}: {name[0].lower()}{name[1:]} {score}."
    return "No rows were given that could tell how well it predicts."


def better(skill: float) -> str:
    """The words for a share that is saved."""
    return next((words for limit, words in BETTER if skill < limit), BEST)


def _skill(scores: Scores) -> float:
    """Share of the log-loss that the model saves; of numbers, whose log-loss has no zero, by how much it is narrower.

    If densities were normal, the last is the share by which the standard deviation is smaller. R2 decides where it is
    smaller: a density that is high at a value which occurs often saves any amount, whatever is known of the others.
    """
    if isinstance(scores, ClassScores):
        return 1.0 - scores.log_loss / scores.baseline_log_loss
    if isinstance(scores, CurveScores):
        return 1.0 - scores.brier / scores.baseline_brier
    assert isinstance(scores, NumberScores)
    narrower = 1.0 - math.exp(min(scores.baseline_log_score - scores.log_score, 1.0))
    return narrower if scores.r2 is None else min(narrower, scores.r2)


def tiles(
    n_rows: int,
    n_columns: int,
    scores: Scores | NoScores | None,
    quality: Sequence[Quality],
    *,
    are_whole: bool = False,
) -> str:
    """Three numbers in large print; `are_whole` where targets are whole numbers, whose intervals hold more."""
    found = _of_scores(scores, are_whole) if isinstance(scores, Scores) else _of_quality(quality)
    learnt = f"and {number_of(n_columns, 'column')} to learn from"
    size = Tile(amount(float(n_rows)), "row" if n_rows == 1 else "rows", learnt)
    items = "".join(
        f'<div class="tile"><b>{escape(one.value)}</b><span>{escape(one.name)}</span>'
        f"<small>{escape(one.beside)}</small></div>"
        for one in [*found, size][:MAX_TILES]
    )
    return f'<div class="tiles">{items}</div>'


def _of_scores(scores: Scores, are_whole: bool) -> list[Tile]:
    if isinstance(scores, ClassScores):
        return [
            Tile(f"{scores.accuracy:.0%}", "right", f"{scores.baseline_accuracy:.0%} by naming the largest class"),
            Tile(f"{scores.log_loss:.2f}", "log-loss",
                 f"{scores.baseline_log_loss:.2f} by the class frequencies; less is better"),
        ]  # fmt: skip
    if isinstance(scores, CurveScores):
        brier = Tile(f"{scores.brier:.3f}", "integrated Brier score",
                     f"{scores.baseline_brier:.3f} by one curve for all; less is better")  # fmt: skip
        order = scores.concordance
        return [*([] if order is None else [Tile(f"{order:.2f}", "concordance", "0.5 by chance")]), brier]
    assert isinstance(scores, NumberScores)
    spread = Tile(f"{scores.log_score:.2f}", "mean log score",
                  f"{scores.baseline_log_score:.2f} by one distribution for all; more is better")  # fmt: skip
    explained = [] if scores.r2 is None else [Tile(f"{scores.r2:.0%}", "of the variance explained", "R2 of the mean")]
    right = "90% or more is right: counts are whole" if are_whole else "90% is right"
    held = [] if scores.coverage is None else [Tile(f"{scores.coverage:.0%}", "in their 90% interval", right)]
    return [*explained, *held, spread][:2]


def _of_quality(quality: Sequence[Quality]) -> list[Tile]:
    if not quality:
        return []
    first = quality[0].scored
    others = [f"{first.columns[1]}: {row[2]}" if len(row) > 2 else "" for row in first.rows]
    return [Tile(row[1], row[0], beside) for row, beside in zip(first.rows, others, strict=True)][:2]
