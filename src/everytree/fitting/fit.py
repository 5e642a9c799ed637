"""From a table and its target to a model, top to bottom.

table, target -> codes -> structures -> counts -> priors -> model
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from everytree.base.errors import ArgumentError
from everytree.conformal.conformal import Conformal
from everytree.fitting.coding import code_first_rows, first_weights
from everytree.fitting.fitted import Fitted
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores, Scores
from everytree.fitting.held_out.unseen import scores_of
from everytree.fitting.structures.forest import with_family
from everytree.fitting.structures.structure import Learnt, Structure
from everytree.fitting.targets.target import Target
from everytree.fitting.targets.weights import TotalWeight
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema


def fit(given: GivenRows, target: Target, structure: Structure, settings: Settings) -> Fitted:
    """The model of a table.

    Parameters
    ----------
    given : GivenRows
    target : Target
    structure : Structure
    settings : Settings
    """
    return fit_sample(given, target, structure, settings)[0]


def fit_sample(
    given: GivenRows,
    target: Target,
    structure: Structure,
    settings: Settings,
    *,
    schema: Schema | None = None,
    of_all: TotalWeight | None = None,
) -> tuple[Fitted, Callable[[Forest], Scores | NoScores]]:
    """The model of a table, and a function that scores its unseen rows in the forest of more rows.

    Parameters
    ----------
    given, target, structure, settings
        As in `fit`.
    schema : Schema, optional
        Where it is known already, as from a first pass over batches.
    of_all : TotalWeight, optional
        Of all rows, where these are a sample of them.
    """
    labels = target.read(given.y)
    weight, factor = first_weights(given, len(labels), settings, of_all)
    target, y = target.learn(labels, weight)
    schema = structure.schema(given, target, y, weight, settings) if schema is None else schema
    target, rows, later_codes = code_first_rows(given, target, y, weight, schema, settings)
    target = with_family(target, rows, schema, settings)
    target.warn_about(rows)
    learnt = structure.fit(rows, target, schema, settings)
    fitted = Fitted.of(learnt, target, schema, rows, weight, factor, settings.n_jobs)
    fitted = fitted.with_batch(replace(rows, codes=later_codes))
    if settings.keeps_left_out:
        fitted = replace(fitted, conformal=_by_left_out(learnt, settings))
    groups = None if given.groups is None else given.groups_name
    is_out_of_fold = not np.array_equal(rows.codes, later_codes) or fitted.model.counts_out_of_fold
    fitted = replace(fitted, groups=groups, is_out_of_fold=is_out_of_fold, target_name=given.target_name)
    return fitted, partial(_scored_by, fitted, learnt, rows)


def _by_left_out(learnt: Learnt, settings: Settings) -> Conformal:
    """Intervals and sets by what left rows out."""
    if learnt.left_out is None:
        must = f"is 'left_out', but this {settings.owner} leaves no rows out that could be: give a share of the rows"
        raise ArgumentError("calibration_rows", must)
    return learnt.left_out()


def _scored_by(fitted: Fitted, learnt: Learnt, rows: Rows, forest: Forest) -> Scores | NoScores:
    """The scores of unseen rows of a sample by a forest with the same trees and the statistics of all rows.

    Those by the sample alone, where rows of the same groups may be counted beyond it, or trees stand in for others.
    """
    if learnt.unseen_by is None or isinstance(fitted.unseen, NoScores):
        return fitted.unseen
    return scores_of(fitted.target, rows, learnt.unseen_by(forest))
