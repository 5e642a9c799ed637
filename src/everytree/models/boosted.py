"""Boosted classes, and boosted numbers with full predictive distributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of, short_number
from everytree.boosting.chains import class_scores
from everytree.boosting.lines import LinedTrees
from everytree.boosting.trees import AdditiveTrees
from everytree.explaining.contributions import Contributions, complete, exp_of, probs_of, product_of, safe_log
from everytree.explaining.tree_sums import Asked, additive_sum, forest_sum
from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical
from everytree.families.link import Link
from everytree.models.centres import Centres
from everytree.models.model import Model, Parts, Scale, scaled
from everytree.posterior.forest import Forest
from everytree.predictive.moved import ShiftedPredictive
from everytree.predictive.paths import predictive_of_probs
from everytree.predictive.predictive import Predictive
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class Chains:
    """How boosted trees were made."""

    gains: FloatArray  # (n_features,): expected gain in log evidence by the splits on each column
    split_prior: float  # that was given or chosen
    n_steps: list[int]  # of each chain

    def facts(self, trees: AdditiveTrees, lined: LinedTrees | None = None) -> Iterator[tuple[str, str]]:
        every = [trees] if lined is None else [trees, lined.trees]
        n_nodes = sum(int(some.n_nodes.sum()) for some in every)
        yield "Boosted trees", f"{sum(map(len, every)):,} in {len(self.n_steps)} chains ({n_nodes:,} nodes)"
        if lined is not None:
            yield "Of these with lines", f"{len(lined):,}, in {number_of(len(lined.columns), 'column')}"
        yield "Steps of the longest chain", f"{max(self.n_steps):,}"
        yield "Split prior", short_number(self.split_prior, 4)


@dataclass(frozen=True)
class BoostedClasses(Model):
    """Probabilities of classes from sums of trees."""

    trees: AdditiveTrees  # one output, the logit of the second class, or one for each of more classes
    # by which the average of the chains goes farther, or less far, from the frequencies of the classes
    sharpness: float
    chains: Chains
    n_seen: int  # rows that it was fitted to

    kind = "boosted classes"
    of_trees = "score"

    @property
    def family(self) -> Bernoulli | Categorical:
        n_classes = max(self.trees.n_outputs, 2)
        return Bernoulli() if n_classes == 2 else Categorical(n_classes)

    @property
    def n_rows(self) -> int:
        return self.n_seen

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        return np.asarray(softmax(class_scores(self.trees.scores(X, n_jobs=n_jobs)), axis=1))

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        return predictive_of_probs(self.probs(X, n_jobs=n_jobs))

    # ---- explanations ---------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        return scaled(self.chains.gains)

    @property
    def is_sum_of_trees(self) -> bool:
        return False

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        scores = additive_sum(asked, self.trees)
        if scale == "trees":
            return scores
        logits = of_every_class(scores)
        if asked.mean is not None:
            logits = logits.starting_at(safe_log(asked.mean), self.importances_of_inputs(asked))
        return probs_of(logits)

    # ---- parts and words ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        return Parts(additive=self.trees)

    @property
    def size(self) -> str:
        return f"{len(self.trees):,} boosted trees"

    @property
    def sentence(self) -> str:
        return sentence_of_sum(self.parts)

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.chains.facts(self.trees)
        yield "Sharpness of the average", short_number(self.sharpness, 4)


@dataclass(frozen=True)
class BoostedNumbers(Model):
    """Distributions of numbers about boosted centres.

    Boosting predicts the centre of each row: a mean, or the logarithm of one. A forest models the residuals of
    out-of-fold predictions, with the centre as one more column.
    """

    centres: Centres  # of boosted trees, or of these mixed with a forest
    link: Link
    centre_codes: Schema  # of the centre as a column
    residuals: Forest  # of targets about their centres; its last column is the centre
    chains: Chains

    kind = "boosted numbers"
    of_trees = "centre"

    @property
    def family(self) -> NativeFamily:
        family: NativeFamily = self.residuals.family
        return family

    @property
    def n_rows(self) -> int:
        return int((self.centres.forest or self.residuals).n_rows)

    # ---- predictions ----------------------------------------------------------------------------------------------

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        if self.link.in_exposure:
            dist = self.predictive(X, n_jobs=n_jobs)
            return dist.mean(), dist.variance()
        centre, codes = self._centres(X, n_jobs)
        mean, variance = self.residuals.moments(codes, n_jobs=n_jobs)
        shift, scale = self.link.shift_and_scale(centre)
        return shift + scale * mean, scale**2 * variance

    def means(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        centre, codes = self._centres(X, n_jobs)
        mean, _ = self.residuals.moments(codes, n_jobs=n_jobs)
        shift, scale = self.link.shift_and_scale(centre)  # means of counts are proportional to their exposures
        return np.asarray(shift + scale * mean)

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        centre, codes = self._centres(X, n_jobs)
        dist = self.residuals.predictive(codes, n_jobs=n_jobs, **self.link.row_data_of_leaf(row_data, centre))
        return ShiftedPredictive(dist, *self.link.shift_and_scale(centre)) if self.link.is_moved else dist

    def _centres(self, X: NDArray[Any], n_jobs: int | None) -> tuple[FloatArray, NDArray[Any]]:
        centre = self.centres.scores(X, n_jobs=n_jobs)[:, 0]
        return centre, with_centre(X, centre, self.centre_codes)

    # ---- explanations ---------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        return scaled(self.chains.gains)

    @property
    def is_sum_of_trees(self) -> bool:
        # Slopes are multiplied by columns, and of a centre that is a column alone there is no sum.
        return not self.link.sign and self.link.is_moved and self.centres.lined is None

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        centre = self.centres.contributions(asked, scale)
        if scale == "trees":
            return centre
        residual = self._of_residuals(asked, centre)
        if not self.link.is_moved and not self.link.in_exposure:
            base = residual.base if asked.mean is None else asked.mean
            means = self.means(asked.codes, n_jobs=asked.n_jobs)[:, None]
            return complete(residual.starting_at(base, self.importances_of_inputs(asked)), means)
        if not self.link.sign:
            total = residual.plus(centre)
            if asked.mean is None:
                return total
            return total.starting_at(asked.mean, self.importances_of_inputs(asked))
        if asked.mean is not None:
            start = self.link.sign * np.log(asked.mean / residual.base)
            centre = centre.starting_at(start, self.importances_of_inputs(asked))
        return product_of(exp_of(centre.times(self.link.sign)), residual)

    def _of_residuals(self, asked: Asked, centre: Contributions) -> Contributions:
        """Contributions to the mean about the centre.

        The forest of residuals reads the centre as one more column. What that adds is shared among the columns by the
        sizes of their contributions to the centre.
        """
        table = asked.table
        if table is not None:
            table = self._centres(table, asked.n_jobs)[1]
        wide = asked.with_column(self._centres(asked.codes, asked.n_jobs)[1], table)
        shares = _shares(centre.values[:, :, 0])
        return forest_sum(wide, self.residuals).without_player(asked.n_inputs, shares)

    # ---- parts and words ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        return Parts(
            self.centres.forest, self.centres.additive, self.centres.weight, 1.0, self.residuals, self.centre_codes,
            lined=self.centres.lined,
        )  # fmt: skip

    @property
    def size(self) -> str:
        return size_of_mixture(self.parts)

    @property
    def sentence(self) -> str:
        return sentence_of_sum(self.parts)

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.chains.facts(self.centres.additive, self.centres.lined)
        if self.centres.forest is not None:
            yield "Weight of boosting", short_number(self.centres.weight, 4)
        yield "Family", self.family.name


def with_centre(codes: NDArray[Any], centre: FloatArray, centre_codes: Schema) -> NDArray[Any]:
    """Codes with those of the centre as one more column."""
    own = centre_codes.encode(centre[:, None])
    return np.ascontiguousarray(np.concatenate([codes, own.astype(codes.dtype)], axis=1))


def of_every_class(scores: Contributions) -> Contributions:
    """One score is the logit of the second of two classes."""
    if len(scores.base) > 1:
        return scores
    base, values = np.append(0.0, scores.base), scores.values
    return Contributions(base, np.concatenate([np.zeros_like(values), values], axis=2))


def _shares(values: FloatArray) -> FloatArray:
    """Sizes as shares of their sum; equal ones where all are 0."""
    sizes = np.abs(values)
    total = sizes.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, sizes / np.where(total > 0.0, total, 1.0), 1.0 / values.shape[1])


def size_of_mixture(parts: Parts) -> str:
    """Number of boosted trees, and of trees of the forest that they are blended with, in words."""
    beside = "" if parts.forest is None else f" and a forest of {len(parts.forest)}"
    return f"{_n_boosted(parts):,} boosted trees{beside}"


def sentence_of_sum(parts: Parts) -> str:
    """How boosted trees predict, alone or beside a forest."""
    how = "predicts by" if parts.forest is None else "mixes a forest with"
    with_lines = "" if parts.lined is None else f"; the nodes of {len(parts.lined):,} of them are constants or lines"
    return f"It {how} the sum of {_n_boosted(parts):,} boosted trees, each averaged over all its prunings{with_lines}."


def _n_boosted(parts: Parts) -> int:
    assert parts.additive is not None
    return len(parts.additive) + (0 if parts.lined is None else len(parts.lined))
