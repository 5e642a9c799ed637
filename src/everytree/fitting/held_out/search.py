"""Choice of priors by predictions for rows that the trees were not grown on: nothing is grown again.

The predictions of all trees that may predict a row are averaged as in the forest, and the prior with the best log score
is chosen. If a tree was grown on all rows, the leave-one-out score over all of them is used instead, although it
favours deep trees, and the average is not sharpened.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.progress import Progress
from everytree.families.base import NativeFamily
from everytree.families.prior_search import Search
from everytree.fitting.held_out.held_out import LEAST_TREES, HeldOut
from everytree.fitting.held_out.pool import Pool
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.sharpness import best_sharpness, sharpness_of_numbers
from everytree.posterior.split_prior import SplitPriorLike

MIN_STEP_GAIN = 2.0
"""Nats that a step along a ladder must gain over all rows; at its ends scores approach a limit slowly."""

EQUAL = 1e-9
"""Scores that differ by no more are equal."""

STRENGTH_NAMES = ("alpha", "strength", "precision")
"""Parameters that count rows. Their ladders end; those of other parameters come close enough to certainty."""

FIRST_TREES = 3
"""One of so many trees says first which priors of the leaves the others are asked about."""

FAR_BEHIND, FAR_BEHIND_A_ROW = 20.0, 0.02
"""Nats of all rows, and of each, by which those are behind that are given up."""

NULL_ODDS = 20.0
"""Prior odds that no column matters, against all other priors together. On 50 rows of noise the best of 24 priors leads
by 4 nats in one case of ten; where columns matter, leads on 50 rows are mostly above 6."""


@dataclass(frozen=True, repr=False)
class Choice:
    """The chosen prior and sharpness."""

    family: NativeFamily
    split_prior: SplitPriorLike
    parameters: dict[str, Any]  # the hyperparameters by name, the split prior among them
    # mean log probability of the scored rows, plus the log prior of the parameters; NaN without scored rows
    score: float
    sharpness: float = 1.0

    def __repr__(self) -> str:
        """One line for each number that was chosen."""
        rows = [(name, _plain(value)) for name, value in self.parameters.items()]
        rows.append(("sharpness", _plain(self.sharpness)))
        if not np.isnan(self.score):
            rows.append(("mean log score of unseen rows", f"{self.score:.4f}"))
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _plain(value: Any) -> str:
    """A chosen value in a few characters."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def choose(
    search: Search, held: HeldOut, few: HeldOut | None = None, *, sharpen: bool, show: bool = False
) -> tuple[Choice, Predictions]:
    """Return the best prior of a search, how much to sharpen the average of the trees, and predictions by this prior.

    The sharpness can only be chosen on rows that a tree was not grown on; without such rows nothing is sharpened.

    Parameters
    ----------
    search : Search
    held : HeldOut
        All trees: by these the average is sharpened, scored and predicted.
    few : HeldOut, optional
        By which the prior is chosen; by default `held`.
    sharpen : bool
    show : bool
    """
    sharpen = sharpen and held.is_honest
    few = held if few is None else few
    with Progress("choosing priors", len(search.stages) + 1, show) as progress:
        best, is_null = _best(search, few, sharpen, progress)
        family, split_prior = search.family(best.parameters), best.parameters["split_prior"]
        predictions = Predictions(held, family, split_prior)
        score, sharpness = best.score, best.sharpness
        sharpen = sharpen and not is_null and any(map(len, held.rows))
        if sharpen and family.support.is_real_line:
            score, sharpness = sharpness_of_numbers(predictions)
        elif few is not held:
            scores, sharpened = _scores(held, [family], [split_prior], sharpen)
            score, sharpness = float(scores[0, 0]), float(sharpened[0, 0])
            score += search.log_prior(best.parameters) / float(held.scored_weight.sum())
    return Choice(family, split_prior, best.parameters, score, sharpness), predictions


def _best(search: Search, held: HeldOut, sharpen: bool, progress: Progress) -> tuple[_Tried, bool]:
    """Return the best prior, and whether it is that under which no column matters."""
    best = _Tried(dict(search.start), np.nan, 1.0)
    n_held = sum(map(len, held.rows))
    without_splits = -np.inf
    for stage in (search.stages or [{}]) if n_held else ():
        # A split prior of 0 is tried once, in the first stage that tries split priors: beside others it costs little.
        with_null = "split_prior" in stage and "split_prior" in search.ladders and without_splits == -np.inf
        found, null_score = _try_all(search, held, stage, best.parameters, sharpen, with_null=with_null)
        without_splits = max(without_splits, null_score)
        best = best if best.score >= found.score - EQUAL else found
        best = _follow(search, held, stage, best, sharpen)
        progress.step()
    is_null = _is_no_better(search, held, best, without_splits)
    if is_null:
        best = replace(_without_columns(search, held), sharpness=1.0)
    return best, is_null


def _is_no_better(search: Search, held: HeldOut, best: _Tried, without_splits: float) -> bool:
    """Whether the hypothesis that no column is related to the target is more probable than the best prior.

    A priori it is `NULL_ODDS` times as probable as all listed priors together. Without that, the best of many priors on
    a small table is the luckiest one, and pure noise is predicted worse than without any column. Rows of a group repeat
    each other: together they count as one.
    """
    n_listed = sum(int(np.prod([len(values) for values in stage.values()])) for stage in search.stages)
    lead = (best.score - without_splits) * float(held.scored_weight.sum()) * held.distinct_share
    return bool(lead < np.log(NULL_ODDS * max(n_listed, 1)))


def _without_columns(search: Search, held: HeldOut) -> _Tried:
    """Return the prior under which no column matters: a very small split prior, so that more rows can still favour one.

    In the one leaf that is left targets spread more than in those of trees with splits: its noise is chosen anew. Rows
    of a group repeat each other, and their evidence can favour splits even with the smallest split
    prior. Where it does, the split prior is 0.
    """
    best = _try_all(search, held, {"split_prior": [0.0]}, search.start, sharpen=False)[0]
    for stage in search.stages:
        leaf = {name: values for name, values in stage.items() if name == "noise"}
        if not leaf:
            continue
        found = _try_all(search, held, leaf, best.parameters, sharpen=False)[0]
        best = best if best.score >= found.score - EQUAL else found
        best = _follow(search, held, leaf, best, sharpen=False)
    least = {"split_prior": [search.ladders["split_prior"][0]]}
    rarely = _try_all(search, held, least, best.parameters, sharpen=False)[0]
    differ = abs(rarely.score - best.score) * float(held.scored_weight.sum()) > MIN_STEP_GAIN
    return best if differ else rarely


@dataclass(frozen=True)
class _Tried:
    """Parameters, their score and the sharpness that goes with it."""

    parameters: dict[str, Any]
    score: float
    sharpness: float


def _try_all(
    search: Search,
    held: HeldOut,
    stage: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any],
    sharpen: bool,
    *,
    with_null: bool = False,
) -> tuple[_Tried, float]:
    """Return the best combination of the values of a stage and, if `with_null`, the score without any split."""
    leaf_names = [name for name in stage if name != "split_prior"]
    split_priors = [*stage.get("split_prior", [start["split_prior"]]), *([0.0] if with_null else [])]
    combinations = product(*(stage[name] for name in leaf_names))
    leaves = [dict(start) | dict(zip(leaf_names, values, strict=True)) for values in combinations]
    families = [search.family(parameters) for parameters in leaves]
    total = float(held.scored_weight.sum())
    log_priors = np.array([[search.log_prior(one) / total] for one in leaves])
    scores, sharpnesses = _scores(held, families, split_priors, sharpen, log_priors)
    scores += log_priors
    null_score = -np.inf
    if with_null:
        null_score, scores = float(scores[:, -1].max()), scores[:, :-1]
    # Of scores that differ by rounding the first is taken, so that the choice is the same in any unit of the target.
    leaf, split = np.unravel_index(np.argmax(scores >= scores.max() - EQUAL), scores.shape)
    parameters = leaves[leaf] | {"split_prior": split_priors[split]}
    return _Tried(parameters, float(scores[leaf, split]), float(sharpnesses[leaf, split])), null_score


def _follow(search: Search, held: HeldOut, stage: Mapping[str, Sequence[Any]], best: _Tried, sharpen: bool) -> _Tried:
    """If the best of a stage is the first or last value it lists, go on along the ladder while that helps."""
    for name in stage:
        if name not in search.ladders:
            continue
        ladder = search.ladders[name]
        tried = {ladder.index(value) for value in stage[name]}
        while steps := _next(ladder, tried, best.parameters[name]):
            further, _ = _try_all(search, held, {name: steps}, best.parameters, sharpen)
            if not (further.score - best.score) * float(held.scored_weight.sum()) > MIN_STEP_GAIN:
                break
            best = further
            tried |= {ladder.index(value) for value in steps}
        if best.parameters[name] == ladder[-1] and name in STRENGTH_NAMES:
            warnings.warn(
                f"the best {name} that was tried is {best.parameters[name]}, the last value of the search; a value "
                f"beyond it may predict better. Set {name} by hand to try one",
                UserWarning,
                stacklevel=2,
            )
    return best


def _next(ladder: Sequence[Any], tried: set[int], value: Any) -> list[Any]:
    """Return the neighbours of the value on the ladder that lie outside the range tried so far."""
    at = ladder.index(value)
    beyond = [place for place in (at - 1, at + 1) if not min(tried) <= place <= max(tried)]
    return [ladder[place] for place in beyond if 0 <= place < len(ladder)]


def _scores(
    held: HeldOut,
    families: Sequence[NativeFamily],
    split_priors: Sequence[SplitPriorLike],
    sharpen: bool,
    log_priors: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Mean log score and sharpness of each combination; minus infinity for families that the first trees give up.

    `log_priors` are added to the scores by which they do.
    """
    asked = [tree for tree, rows in enumerate(held.rows) if len(rows)]
    pool, kept = Pool(held, families, split_priors), np.arange(len(families))
    n_first = len(asked) // FIRST_TREES if len(families) > 1 and len(asked) >= LEAST_TREES else 0
    if n_first:
        pool.ask(asked[:n_first])
        best = (_scores_of(held, pool, sharpen=False)[0] + log_priors).max(axis=1)
        kept = np.flatnonzero(best >= best.max() - max(FAR_BEHIND / float(held.scored_weight.sum()), FAR_BEHIND_A_ROW))
        pool.keep(kept)
    pool.ask(asked[n_first:])
    shape = len(families), len(split_priors)
    scores, sharpness = np.full(shape, -np.inf), np.ones(shape)
    scores[kept], sharpness[kept] = _scores_of(held, pool, sharpen)
    return scores, sharpness


def _scores_of(held: HeldOut, pool: Pool, sharpen: bool) -> tuple[FloatArray, FloatArray]:
    """Mean log score and sharpness of each combination of a pool."""
    asked, pooled = pool.is_predicted, pool.average()
    weight, y = held.scored_weight[asked], held.y[: held.n_scored][asked]
    scores, sharpness = np.empty(pooled.shape[:2]), np.ones(pooled.shape[:2])
    for place in np.ndindex(*scores.shape):
        values = pooled[place][asked]
        if pool.is_classes:
            scores[place], sharpness[place] = best_sharpness(values, y.astype(np.int64), weight, sharpen)
        else:
            scores[place] = np.average(values[:, 0], weights=weight)
    return scores, sharpness
