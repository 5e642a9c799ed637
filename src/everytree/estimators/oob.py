"""Scores of rows by the trees of a forest that were not grown on them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
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
        return float(share[np.arange(len(y)), y].mean())
    score = r2_of_left_out(y, prediction, group, weight)
    # Of targets that are all equal, R2 is that of scikit-learn.
    return float(r2_score(y, prediction) if score is None else score)
