"""Quality of an online forest: on rows that are new to it, and of the same forest as it learns the table.

A model does not store which rows it has learned. So a forest with the same parameters starts empty and learns the table
in its order, piece by piece; each piece is predicted before it is learned. That is valid for any rows.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of
from everytree.fitting.scores import ClassScores, NumberScores, Scores
from everytree.report.contenders import THIS_MODEL, ClassPredictions, NumberPredictions
from everytree.report.quality import MIN_PROB, Quality, Scored, at_most, class_scores, known, number_scores
from everytree.report.streams import ClassStream, NumberStream, StreamRows, parameters_of, stream_of

PIECES = 50

LEARNING = ("the same forest, as it learns", THIS_MODEL[1])

Answers = dict[str, FloatArray]
"""Predictions of rows: `probs` of classes; or of numbers `mean`, `pit`, `crps` and `log_prob`."""


def judged_stream(stream: NumberStream, rows: StreamRows, is_new: bool) -> tuple[Scores, list[Quality]]:
    """Scores for the first lines, of the model itself if the rows are new to it; and all of them."""
    some, drawn = at_most(rows)
    assert isinstance(some, StreamRows)
    scores, learning = _learning(stream, some, drawn)
    if not is_new:
        return scores, [learning]
    return _scores(stream, some, _asked(stream, some)), [known(stream, some, drawn), learning]


def _learning(stream: NumberStream, rows: StreamRows, drawn: str) -> tuple[Scores, Quality]:
    """A forest that starts empty; all pieces but the first are predicted before they are learned."""
    forest = type(stream.forest)(**parameters_of(stream.forest))
    fresh = stream_of(forest, rows)
    first, *pieces = np.array_split(np.arange(len(rows)), min(PIECES, len(rows)))
    forest.learn_many(rows.table[first], rows.y[first])
    found = []
    for piece in pieces:
        found.append(_asked(fresh, rows.at(piece)))
        forest.learn_many(rows.table[piece], rows.y[piece])
    scored = rows.at(np.concatenate(pieces))
    answers = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    how = (
        f"A forest with the same parameters started empty and learned the table{drawn} in its order, in "
        f"{number_of(len(pieces) + 1, 'piece')}. Each piece but the first was predicted before it was learned: "
        f"{number_of(len(scored), 'row')}. The model that this page shows was not asked, since it may have learned "
        "these rows."
    )
    title = "The same forest, started empty, as it learns the table"
    return _scores(fresh, scored, answers), Quality(title, how, *_scored(fresh, scored, answers))


# ---- what was predicted ---------------------------------------------------------------------------------------------


def _asked(stream: NumberStream, rows: StreamRows) -> Answers:
    if isinstance(stream, ClassStream):
        return {"probs": stream.predict_proba(rows.inputs)}
    dist, y = stream.predictive(rows.inputs), rows.y
    return {"mean": dist.mean(), "pit": dist.cdf(y), "crps": dist.crps(y), "log_prob": dist.log_prob(y)}


def _scored(stream: NumberStream, rows: StreamRows, answers: Answers) -> Scored:
    if isinstance(stream, ClassStream):
        return class_scores(stream.classes_, rows, [ClassPredictions(*LEARNING, answers["probs"])])
    numbers = NumberPredictions(*LEARNING, *(answers[name] for name in ("mean", "pit", "crps")))
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
