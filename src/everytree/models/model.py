"""The interface of fitted models, which explanations, files, exports and reports use.

A model predicts rows of codes. Its users call the methods and attributes below and never check its class.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray

if TYPE_CHECKING:
    from everytree.boosting.lines import LinedTrees
    from everytree.boosting.trees import AdditiveTrees
    from everytree.exact.posterior import ExactPosterior
    from everytree.explaining.contributions import Contributions
    from everytree.explaining.tree_sums import Asked
    from everytree.posterior.forest import Forest
    from everytree.posterior.posterior import Posterior
    from everytree.posterior.rows import Rows
    from everytree.predictive.predictive import Predictive
    from everytree.tables.code_names import CodeWords
    from everytree.tables.schema import Schema
    from everytree.trees.metatree import MetaTree


Scale = Literal["prediction", "trees"]


@dataclass(frozen=True)
class Parts:
    """Components of a model; one that a model does not have is None."""

    forest: Forest | None = None  # trees whose predictions are averaged
    additive: AdditiveTrees | None = None  # trees whose values are added to scores
    weight: float = 1.0  # of the scores; the forest beside them has the rest
    sharpness: float = 1.0  # of the mixture of both
    residuals: Forest | None = None  # model of the residuals of out-of-fold predictions; its last column is the centre
    centre: Schema | None = None  # of the centre as a column
    exact: ExactPosterior | None = None  # the sum over every tree and every choice of splits
    lined: LinedTrees | None = None  # boosted trees whose nodes are lines; their scores add to those of `additive`

    @property
    def averaged(self) -> Forest:
        """The forest, of models that have one."""
        assert self.forest is not None, "this model averages no trees"
        return self.forest


class Model(ABC):
    """A fitted model, which predicts rows of codes."""

    kind: ClassVar[str]  # its name in files
    # scale of sums over trees, where it is not that of predictions: a "score" of classes, a "centre", a hazard
    of_trees: ClassVar[str | None] = None
    # rows by which the mean prediction is known well enough: of 10,000, within a hundredth of a standard deviation
    rows_of_mean: ClassVar[int] = 10_000

    @property
    @abstractmethod
    def family(self) -> Any:
        """The leaf model."""

    @property
    def baseline(self) -> Any:
        """The hazard of all rows on which leaves count positions; None where they count targets themselves."""
        return None

    @property
    def counts_out_of_fold(self) -> bool:
        """Whether rows of fit were counted by what other rows say of them, so that later rows count differently."""
        return False

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows that it has seen."""

    # ---- predictions ----------------------------------------------------------------------------------------------

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class; for families of classes."""
        raise TypeError(f"probs() is for families of classes; {type(self.family).__name__} has none")

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target; for families of numbers, in one unit of exposure."""
        raise TypeError(f"moments() is for families of numbers, not for {type(self.family).__name__}")

    @abstractmethod
    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row."""

    def means(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probabilities, or (n_rows,) means in one unit of exposure."""
        if self.family.has_classes:
            return self.probs(X, n_jobs=n_jobs)
        return self.moments(X, n_jobs=n_jobs)[0]

    def means_of(self, X: NDArray[Any], row_data: Mapping[str, Any], *, n_jobs: int | None = None) -> FloatArray:
        """`means` of rows with their row data."""
        if row_data:
            return self.predictive(X, n_jobs=n_jobs, **row_data).mean()
        return self.means(X, n_jobs=n_jobs)

    # ---- explanations ---------------------------------------------------------------------------------------------

    @abstractmethod
    def feature_importances(self) -> FloatArray:
        """(n_features,) importances of the columns of codes, scaled to sum to 1."""

    @property
    @abstractmethod
    def is_sum_of_trees(self) -> bool:
        """Whether `means` are sums of predictions of trees, so that their mean follows from the rows in each node."""

    @abstractmethod
    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        """Contributions of columns to `means`, or to the sums over trees from which they are made."""

    def importances_of_inputs(self, asked: Asked) -> FloatArray:
        """(n_inputs,) importances that sum to 1; equal ones where nothing is split on."""
        found = np.bincount(asked.inputs, self.feature_importances(), asked.n_inputs)
        total = found.sum()
        return np.asarray(found / total if total > 0.0 else np.full(asked.n_inputs, 1.0 / asked.n_inputs))

    # ---- parts and words ------------------------------------------------------------------------------------------

    def words_of_codes(self, schema: Schema) -> list[CodeWords]:
        """Labels of the codes of each column."""
        return schema.code_names

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """Components of the model: forests, boosted trees and their weights."""

    @property
    @abstractmethod
    def size(self) -> str:
        """Its trees in a few words; empty where there is one."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """How it predicts."""

    @abstractmethod
    def facts(self) -> Iterator[tuple[str, str]]:
        """Evidence, sizes and weights, each with its name."""


class UpdatableModel(Model):
    """A model that counts rows: more of them can be added at any time."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log probability of the targets that it has seen, given their columns."""

    @abstractmethod
    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Count more rows. If it fails, nothing changes."""

    @abstractmethod
    def check_mergeable(self, other: Self) -> None:
        """Raise unless the other has the same trees and priors."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Add the rows of another model. Returns itself."""

    @abstractmethod
    def without_rows(self) -> Self:
        """Return the same trees and priors without rows."""

    def forget(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Take back rows that were counted. If it fails, nothing changes."""
        return self.take_away(self.without_rows().update(X, y, sample_weight, n_jobs=n_jobs, **row_data))

    @abstractmethod
    def take_away(self, other: Self) -> Self:
        """Subtract the rows of another model with the same trees and priors. Returns itself."""

    def means_without(
        self,
        rows: Rows,
        group: NDArray[np.int64],
        X: NDArray[Any],
        row_data: Mapping[str, Any],
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """(n_groups, n_rows, n_values) `means` of the rows X without each group of the rows that were counted.

        Groups are numbers from 0 on. Here each group is taken away from a copy.
        """
        found = []
        for number in range(int(group.max(initial=-1)) + 1):
            some = rows.at(np.flatnonzero(group == number))
            rest = copy.deepcopy(self).forget(some.codes, some.y, some.weight, n_jobs=n_jobs, **dict(some.row_data))
            found.append(rest.means_of(X, row_data, n_jobs=n_jobs))
        return np.array(found).reshape(len(found), len(X), -1)

    def gains_of_rows(self, rows: Rows, orders: Iterable[NDArray[np.int64]]) -> FloatArray:
        """(n_orders, n_rows) what each row adds to the log evidence after those before it, for some orders of rows."""
        found = []
        for order in orders:
            model, evidence = self.without_rows(), np.zeros(len(rows) + 1)
            for number, row in enumerate(order):
                one = rows.at(np.array([row]))
                model.update(one.codes, one.y, one.weight, **dict[str, Any](one.row_data))
                evidence[number + 1] = model.log_evidence
            gains = np.empty(len(rows))
            gains[order] = np.diff(evidence)
            found.append(gains)
        return np.array(found)

    @abstractmethod
    def pictured(self) -> Posterior:
        """The prunings of one tree, for pictures: of many, that of the largest evidence; the most probable of all."""


def split_columns(trees: Sequence[MetaTree], n_features: int) -> NDArray[np.bool_]:
    """(n_features,) columns that trees split on."""
    asked = np.zeros(n_features, dtype=bool)
    for tree in trees:
        asked[tree.feature[~tree.is_terminal]] = True
    return asked


def scaled(gains: FloatArray) -> FloatArray:
    """Gains as shares of their sum."""
    total = gains.sum()
    return gains / total if total > 0.0 else gains.copy()
