"""`family="auto"`: the leaf model is chosen by rows that trees were not grown on, before anything else is learnt."""

from __future__ import annotations

import warnings
from functools import reduce

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.fitting.given import Settings
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.held_out.unseen import LEAST_PROB
from everytree.fitting.structures.forest import ForestStructure
from everytree.fitting.targets.target import Target
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.tables.schema import Schema

N_TREES = 30
"""Trees of the forests by which families are compared."""

MOST_ROWS = 4000
"""Maximum number of rows that they are grown on."""

MOST_SCORED = 200
"""Maximum number of rows by which they are compared."""

SURE = 1.0
"""Standard errors by which a family must be better than the first, so that chance seldom decides."""


def with_family(target: Target, rows: Rows, schema: Schema, settings: Settings) -> Target:
    """Return the target with the best of the families it may have: that with the best score of rows left out.

    A forest is grown for each family, and forgotten. The first family, the plainest, is kept unless another is better
    by more than one standard error of the difference over the rows that both predict.
    """
    candidates = target.candidates(rows)
    if len(candidates) == 1:
        return candidates[0]
    if len(rows) > MOST_ROWS:
        rows = rows.at(np.sort(np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False)))
    structure = ForestStructure(N_TREES, 0, "uniform", True, Growth())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is forgotten needs no advice
        scores = [_scores(structure, one, rows, schema, settings) for one in candidates]
    known = reduce(np.logical_and, map(np.isfinite, scores))
    if not known.any():
        return candidates[0]
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    means = [float(np.average(each[known], weights=weight[known])) for each in scores]
    best = int(np.argmin(means))
    lead = (scores[0] - scores[best])[known]
    error = float(np.std(lead) / np.sqrt(len(lead)))
    return candidates[best] if means[0] - means[best] > SURE * error else candidates[0]


def _scores(structure: ForestStructure, target: Target, rows: Rows, schema: Schema, settings: Settings) -> FloatArray:
    """(n_rows,) scores of rows by the trees that were not grown on them, small ones are better; NaN of other rows.

    Of whole numbers minus the log probability to round to the target, of others the CRPS: both compare distributions
    with densities and those with probabilities.
    """
    scores = np.full(len(rows), np.nan)
    learnt = structure.fit(rows, target, schema, settings)
    if isinstance(learnt.unseen, NoScores):
        return scores
    unseen = learnt.unseen()
    some, dist = unseen.numbers[:MOST_SCORED], unseen.predicted[:MOST_SCORED]
    y = np.asarray(rows.y[some], dtype=np.float64)
    if (rows.y == np.floor(rows.y)).all():
        scores[some] = -np.log(np.maximum(dist.cdf(y + 0.5) - dist.cdf(y - 0.5), LEAST_PROB))
    else:
        scores[some] = dist.crps(y)
    return scores
