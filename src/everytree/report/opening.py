"""The first lines of the page: what is predicted, how well, and three numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from everytree.base.words import number_of
from everytree.fitting.scores import ClassScores, NumberScores, Scores
from everytree.report.quality import Quality
from everytree.report.subject import Subject
from everytree.tables.named_columns import series_name
from everytree.view.describe import amount

BETTER = ((0.02, "No better than guessing"), (0.1, "A little better than guessing"),
          (0.35, "Clearly better than guessing"), (0.7, "Much better than guessing"))  # fmt: skip
"""Words for the share of the uncertainty that the model removes, each up to a limit."""

BEST = "Far better than guessing"

MAX_TILES = 3


class Tile(NamedTuple):
    """A number in large print, what it is, and what to compare it with."""

    value: str
    name: str
    beside: str


def title(model: Any, target_name: str | None) -> str:
    """What is predicted, or the kind of model where the target has no name."""
    return type(model).__name__ if target_name is None else f"Predicting {target_name}"


def target_name_of(target: Any, others: Sequence[str]) -> str | None:
    """Name of the target: a column's, that of a series, or the only other column's; None where there is none."""
    if isinstance(target, str):
        return target
    if target is None:
        return others[0] if len(others) == 1 else None
    return series_name(target)


def scores_after_fit(subject: Subject) -> Scores | None:
    """Scores of rows that the trees had not seen; None where the model has none."""
    scores: Scores | None = getattr(subject.model, "unseen_", None)
    return scores


def verdict(scores: Scores | None, quality: Sequence[Quality]) -> str:
    """How well the model predicts, in one sentence."""
    if scores is not None:
        return f"{better(_skill(scores))}: {scores.sentence()}."
    if quality:
        name, score = quality[0].rows[0][:2]
        return f"{quality[0].title}: {name[0].lower()}{name[1:]} {score}."
    return "No rows were given that could tell how well it predicts."


def better(skill: float) -> str:
    """The words for a share of the uncertainty that is removed."""
    return next((words for limit, words in BETTER if skill < limit), BEST)


def _skill(scores: Scores) -> float:
    """Share of the log-loss or of the variance that the model removes."""
    if isinstance(scores, ClassScores):
        return 1.0 - scores.log_loss / scores.baseline_log_loss if scores.baseline_log_loss > 0.0 else 0.0
    assert isinstance(scores, NumberScores)
    if scores.r2 is not None:
        return scores.r2
    return 1.0 - math.exp(2.0 * (scores.baseline_log_score - scores.log_score))  # as if densities were normal


def tiles(
    n_rows: int, n_columns: int, scores: Scores | None, quality: Sequence[Quality], *, are_whole: bool = False
) -> str:
    """Three numbers in large print; `are_whole` where targets are whole numbers, whose intervals hold more."""
    found = list(_of_scores(scores, are_whole)) if scores is not None else _of_quality(quality)
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
    first = quality[0]
    others = [f"{first.columns[1]}: {row[2]}" if len(row) > 2 else "" for row in first.rows]
    return [Tile(row[1], row[0], beside) for row, beside in zip(first.rows, others, strict=True)][:2]
