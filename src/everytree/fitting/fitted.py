"""Everything that was learnt from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.conformal.conformal import Conformal
from everytree.fitting.coding import check_same_length
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.helpful_splits import HelpfulSplits
from everytree.fitting.held_out.out_of_bag import OutOfBag
from everytree.fitting.held_out.scores import GROWN_ON_ALL, NoScores, Scores
from everytree.fitting.held_out.search import Choice
from everytree.fitting.held_out.unseen import scores_of
from everytree.fitting.mean_prediction import mean_prediction
from everytree.fitting.structures.origin import Origin
from everytree.fitting.structures.structure import Learnt
from everytree.fitting.targets.target import Target
from everytree.fitting.targets.weights import scaled_weight
from everytree.models.model import Model
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema

MIN_DIGEST_ROWS = 10
"""Batches of fewer different rows leave no digest: these could be guessed from it, or be those of another batch."""


@dataclass(frozen=True)
class Fitted:
    """The state of a fitted estimator."""

    target: Target
    schema: Schema
    model: Model
    choice: Choice | None  # None where no priors were chosen
    row_names: list[str]  # names of the row data that fit was given, such as "exposure"
    weight_factor: float  # by what weights are multiplied
    batches: list[str]  # digests of the batches that were counted
    origin: Origin | None = None  # of the trees; None where they are not known to be of one table
    out_of_bag: OutOfBag | None = None  # of the rows of `fit`, where it was asked for
    unseen: Scores | NoScores = GROWN_ON_ALL  # of rows of `fit` that the trees had not seen
    # of the tree that pictures show: whether its splits help rows on which they were not chosen
    helpful: HelpfulSplits | None = None
    # name of the groups that rows of `fit` came in, empty where they had no name; None without groups
    groups: str | None = None
    target_name: str | None = None  # name of the targets of `fit`; None where they had none
    # (n_classes or 1,): of the rows of `fit`, from which explanations start; None where it follows from the trees, or
    # is not known any more since rows were added
    mean_prediction: FloatArray | None = None
    last_time: float | None = None  # the longest time that was seen, where some were cut short
    # what makes intervals and sets of proved coverage; None where no rows were set aside for it
    conformal: Conformal | None = None
    # whether the rows of `fit` were counted by codes or hazards that the targets of other rows gave them, so that they
    # would not be counted in the same way as later rows
    is_out_of_fold: bool = False
    forgotten: Sequence[str] = ()  # digests of batches that were counted and taken back

    @classmethod
    def of(
        cls,
        learnt: Learnt,
        target: Target,
        schema: Schema,
        rows: Rows,
        weight: FloatArray | None,
        factor: float,
        n_jobs: int | None,
    ) -> Fitted:
        """The model of a table; `rows` are those of it that have a `weight` above 0."""
        oob = learnt.out_of_bag
        if oob is not None and weight is not None:
            oob = oob.on(weight > 0.0)
        unseen = learnt.unseen if isinstance(learnt.unseen, NoScores) else scores_of(target, rows, learnt.unseen())
        return cls(
            target, schema, learnt.model, learnt.choice, sorted(rows.row_data), factor, [], learnt.origin, oob, unseen,
            learnt.helpful, mean_prediction=mean_prediction(learnt.model, rows, n_jobs), last_time=last_time_of(rows),
        )  # fmt: skip

    def with_batch(self, rows: Rows) -> Fitted:
        """Add the digest of one more batch that was counted; its rows are coded as those of later batches."""
        digest = rows.batch_digest(MIN_DIGEST_ROWS)
        if digest is None:
            return self
        forgotten = [one for one in self.forgotten if one != digest]
        return replace(self, batches=[*self.batches, digest], forgotten=forgotten)

    def without_batch(self, rows: Rows) -> Fitted:
        """Note that a batch was taken back, so that it can be counted again, and not be taken back twice."""
        digest = rows.batch_digest(MIN_DIGEST_ROWS)
        if digest is None:
            return self
        batches = list(self.batches)
        if digest in batches:
            batches.remove(digest)
        return replace(self, batches=batches, forgotten=[*self.forgotten, digest])

    def has_counted(self, rows: Rows) -> bool:
        """Whether these rows are one of the batches that were counted, in any order."""
        return rows.batch_digest(MIN_DIGEST_ROWS) in self.batches

    def has_forgotten(self, rows: Rows) -> bool:
        """Whether these rows are one of the batches that were taken back, and were not counted since."""
        return rows.batch_digest(MIN_DIGEST_ROWS) in self.forgotten and not self.has_counted(rows)


def code_more_rows(given: GivenRows, fitted: Fitted, settings: Settings, only: NDArray[np.bool_] | None = None) -> Rows:
    """Rows after the first, their targets as the family takes them; `only` some columns are coded."""
    weight = scaled_weight(given.weight, len(given.y), fitted.weight_factor)
    codes = fitted.schema.encode(given.X, only=only, n_jobs=settings.n_jobs, owner=settings.owner)
    check_same_length(codes, given.y)
    columns = fitted.target.columns(fitted.schema, given.X, len(given.y), given.row_data)
    if sorted(columns) != fitted.row_names:
        raise ValueError(
            f"fit was given row data {fitted.row_names or 'of no kind'}, but this call {sorted(columns) or 'none'}"
        )
    return Rows(codes, given.y, weight, columns)


def last_time_of(rows: Rows, before: float | None = None) -> float | None:
    """The longest time of rows and of those before them; None where no time was cut short."""
    if before is None and not np.any(rows.row_data.get("censored", 0.0)):
        return None
    return max(before or 0.0, float(np.max(rows.y, initial=0.0)))
