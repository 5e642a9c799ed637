"""Scores of rows by the trees of a forest that were not grown on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from everytree.fitting.fitted import Fitted
from everytree.fitting.held_out.baselines import n_independent, naming, r2_of_left_out
from everytree.fitting.held_out.out_of_bag import OutOfBag
from everytree.tables.repeats import consecutive


def with_out_of_bag_score(model: Any, fitted: Fitted, y: Any) -> Fitted:
    """The fitted state with the score of its own rows, each predicted by the trees that were not grown on it."""
    oob = fitted.out_of_bag
    if oob is None:
        return fitted
    known = oob.is_known
    if fitted.target.attributes().get("n_classes_") == 1:  # the leaf model has two classes
        oob = replace(oob, prediction=np.where(known, 1.0, np.nan)[:, None])
    if not known.all():
        warnings.warn(
            f"{int((~known).sum())} rows have no out-of-bag prediction, since no tree was grown without them: "
            "oob_score_ leaves them out, and their predictions are NaN. With more trees there are fewer such rows",
            UserWarning,
            stacklevel=5,
        )
    if known.any():
        target = fitted.target
        oob = replace(oob, score=_score_of(model, oob, target.numbers(target.read(y)[known]), known))
    return replace(fitted, out_of_bag=oob)


def out_of_bag_of_outputs(model: Any, outputs: Sequence[Any], columns: Sequence[NDArray[Any]]) -> OutOfBag | None:
    """The predictions of several outputs, and their score."""
    each = [one.fitted_.out_of_bag for one in outputs]
    oob = joined_outputs([one for one in each if one is not None])
    if oob is None:
        return None
    known = oob.is_known
    if not known.any():
        return oob
    targets = [one.fitted_.target for one in outputs]
    y = [target.numbers(target.read(column)[known]) for target, column in zip(targets, columns, strict=True)]
    return replace(oob, score=_score_of(model, oob, np.column_stack(y), known))


def _score_of(model: Any, oob: OutOfBag, y: Any, known: Any) -> float:
    """Return the score of the rows that some tree may predict; y are numbers of classes or targets."""
    prediction = oob.prediction[known]
    has_classes = is_classifier(model)
    if callable(model.oob_score):
        return float(model.oob_score(y, prediction.argmax(axis=1) if has_classes else prediction))
    if oob.log_scores is not None:
        return float(oob.log_scores[known].mean())
    group = None if oob.group is None else consecutive(oob.group[known])
    weight = np.ones(len(y))
    if has_classes:
        share = naming(prediction, n_independent(group, weight))
        of_true = np.take_along_axis(share, y.reshape(len(y), 1, *share.shape[2:]), axis=1)
        return float(of_true.reshape(len(y), -1).prod(axis=1).mean())
    pairs = zip(y.reshape(len(y), -1).T, prediction.reshape(len(y), -1).T, strict=True)
    each = [r2_of_left_out(own, predicted, group, weight) for own, predicted in pairs]
    scores = [one for one in each if one is not None]
    # Of targets that are all equal, R2 is that of scikit-learn.
    return float(np.mean(scores)) if len(scores) == len(each) else float(r2_score(y, prediction))


def joined_outputs(each: Sequence[OutOfBag]) -> OutOfBag | None:
    """The predictions of several outputs side by side, without a score; None if there are none."""
    if not each:
        return None
    predictions = [one.prediction for one in each]
    if predictions[0].ndim == 2:
        most = max(one.shape[1] for one in predictions)
        predictions = [np.pad(one, [(0, 0), (0, most - one.shape[1])]) for one in predictions]
    log_scores = [one.log_scores for one in each if one.log_scores is not None]
    together = np.mean(log_scores, axis=0) if log_scores else None
    return OutOfBag(np.stack(predictions, axis=-1), together, group=each[0].group)
