"""The interface of structures: from coded rows to a whole model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.conformal.conformal import Conformal
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.out_of_bag import OutOfBag
from everytree.fitting.held_out.scores import GROWN_ON_ALL, NoScores
from everytree.fitting.held_out.search import Choice
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.fitting.structures.origin import Origin
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.models.model import Model
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema

if TYPE_CHECKING:
    from everytree.fitting.held_out.helpful_splits import HelpfulSplits


class Learnt(NamedTuple):
    """A model of coded rows; for the attributes see `Fitted`.

    What is said of unseen rows is computed when it is asked for: not every model is kept as it is. `unseen_by` computes
    it of a forest of more rows in the same trees. `left_out` makes intervals and sets by what left rows out, where
    something did.
    """

    model: Model
    choice: Choice | None = None
    out_of_bag: OutOfBag | None = None
    origin: Origin | None = None
    unseen: Callable[[], UnseenRows] | NoScores = GROWN_ON_ALL
    helpful: HelpfulSplits | None = None
    unseen_by: Callable[[Forest], UnseenRows] | None = None
    left_out: Callable[[], Conformal] | None = None


class Structure(Protocol):
    """The chooser of the splits."""

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        """Columns, cut points and categories of the first rows."""

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        """The model of coded rows."""


def fit_schema(
    given: GivenRows, target: GrowthTarget, y: NDArray[Any], weight: FloatArray | None, settings: Settings,
    **options: Any,
) -> Schema:  # fmt: skip
    """Columns, cut points and categories of the first rows."""
    return Schema.fit(
        given.X, target.order_by(y), sample_weight=weight, categorical_features=settings.categorical_features,
        n_jobs=settings.n_jobs, owner=settings.owner, **options,
    )  # fmt: skip
