"""Quality of an online forest: on rows that are new to it, and of the same forest as it learns the table.

A model does not store which rows it has learned. So a forest with the same parameters starts empty and learns the table
in its order, piece by piece; each piece is predicted before it is learned. That is valid for any rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of
from everytree.fitting.scores import ClassScores, NumberScores, Scores
from everytree.report.contenders import THIS_MODEL, ClassPredictions, NumberPredictions
from everytree.report.judged import why_not_judged, why_not_told_apart
from everytree.report.quality import MIN_PROB, Quality, Scored, at_most, class_scores, known_quality, number_scores
from everytree.report.streams import ClassStream, NumberStream, StreamRows, parameters_of, stream_of

PIECES = 50

LEARNING = ("the same forest, as it learns", THIS_MODEL[1])

Answers = dict[str, FloatArray]
"""Predictions of rows: `probs` of classes; or of numbers `mean`, `pit`, `crps` and `log_prob`."""


def why_not_scored(rows: StreamRows | None, is_new: bool) -> str:
    """The reason why a forest cannot be judged by some rows, as a sentence; empty where it can."""
    reason = why_not_judged(rows)
    if reason or rows is None:
        return reason
    some, _ = _at_most(rows)
    return why_not_told_apart(some) if is_new else _why_no_learning(some)


def judged_stream(stream: NumberStream, rows: StreamRows, is_new: bool) -> tuple[Scores, list[Quality]]:
    """Scores for the first lines, of the model itself if the rows are new to it; and all of them."""
    some, drawn = _at_most(rows)
    if not is_new:
        scores, learning = _learning(stream, some, drawn, is_new)
        return scores, [learning]
    answers = _asked(stream, some)
    own = known_quality(_scored(stream, some, answers, THIS_MODEL), len(some), drawn)
    reason = _why_no_learning(some)
    if reason:
        return _scores(stream, some, answers), [replace(own, notes=[*own.notes, reason])]
    return _scores(stream, some, answers), [own, _learning(stream, some, drawn, is_new)[1]]


def _at_most(rows: StreamRows) -> tuple[StreamRows, str]:
    some, drawn = at_most(rows)
    assert isinstance(some, StreamRows)
    return some, drawn


# ---- a forest that learns the table ---------------------------------------------------------------------------------


def _pieces(rows: StreamRows) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(len(rows)), min(PIECES, len(rows)))


def _why_no_learning(rows: StreamRows) -> str:
    """A sentence where all targets after the first piece, those that are predicted, are the same."""
    first, *pieces = _pieces(rows)
    which = f"after the first {number_of(len(first), 'row')}, from which a forest that starts empty learns,"
    return why_not_told_apart(rows.at(np.concatenate(pieces)), which)


def _learning(stream: NumberStream, rows: StreamRows, drawn: str, is_new: bool) -> tuple[Scores, Quality]:
    """A forest that starts empty; all pieces but the first are predicted before they are learned."""
    forest = type(stream.forest)(**parameters_of(stream.forest))
    fresh = stream_of(forest, rows)
    first, *pieces = _pieces(rows)
    forest.learn_many(rows.table[first], rows.y[first])
    found = []
    for piece in pieces:
        found.append(_asked(fresh, rows.at(piece)))
        forest.learn_many(rows.table[piece], rows.y[piece])
    scored = rows.at(np.concatenate(pieces))
    answers = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    why = "" if is_new else " The model that this page shows was not asked, since it may have learned these rows."
    how = (
        f"A forest with the same parameters started empty and learned the table{drawn} in its order, in "
        f"{number_of(len(pieces) + 1, 'piece')}. Each piece but the first was predicted before it was learned: "
        f"{number_of(len(scored), 'row')}.{why}"
    )
    title = "The same forest, started empty, as it learns the table"
    return _scores(fresh, scored, answers), Quality(title, how, *_scored(fresh, scored, answers, LEARNING))


# ---- what was predicted ---------------------------------------------------------------------------------------------


def _asked(stream: NumberStream, rows: StreamRows) -> Answers:
    if isinstance(stream, ClassStream):
        return {"probs": stream.predict_proba(rows.inputs)}
    dist, y = stream.predictive(rows.inputs), rows.y
    return {"mean": dist.mean(), "pit": dist.cdf(y), "crps": dist.crps(y), "log_prob": dist.log_prob(y)}


def _scored(stream: NumberStream, rows: StreamRows, answers: Answers, called: tuple[str, str]) -> Scored:
    """Scores and charts; `called` is the forest's name there, and its class in the style sheet."""
    if isinstance(stream, ClassStream):
        return class_scores(stream.classes_, rows, [ClassPredictions(*called, answers["probs"])])
    numbers = NumberPredictions(*called, *(answers[name] for name in ("mean", "pit", "crps")))
    return number_scores(rows, [numbers])


def _scores(stream: NumberStream, rows: StreamRows, answers: Answers) -> Scores:
    """The scores that other models have after fit; the baseline knows the frequencies or the spread of these rows."""
    if isinstance(stream, ClassStream):
        return _class_scores(stream, rows, answers["probs"])
    centre, spread = float(np.mean(rows.y)), float(np.std(rows.y))
    r2 = 1.0 - float(np.mean((rows.y - answers["mean"]) ** 2)) / spread**2
    held = float(np.mean(np.abs(2.0 * answers["pit"] - 1.0) <= 0.9))
    baseline = float(norm.logpdf(rows.y, centre, spread).mean())
    return NumberScores(len(rows), float(answers["log_prob"].mean()), baseline, r2, held)


def _class_scores(stream: ClassStream, rows: StreamRows, probs: FloatArray) -> ClassScores:
    place = np.array([stream.places[label] for label in rows.y])
    share = np.bincount(place, minlength=probs.shape[1]) / len(place)
    own = np.maximum(probs[np.arange(len(place)), place], MIN_PROB)
    hits = float(np.mean(probs.argmax(axis=1) == place))
    return ClassScores(
        len(rows), -float(np.log(own).mean()), hits, -float(np.log(share[place]).mean()), float(share.max())
    )
