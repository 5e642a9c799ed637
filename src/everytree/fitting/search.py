"""Priors chosen by what they predict for rows that had no say: re-weighting only, nothing is regrown.

Each tree is asked about rows it was not grown on, with the row itself taken out of the statistics again (in closed
form, O(depth) a row). The answers of all such trees are averaged as the forest would, and the prior with the best log
score wins. Where a tree was grown on all rows there are no such rows; the leave-one-out score over all of them is then
the best there is, though it flatters deep trees, and the average is not sharpened.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.posterior.split_prior import SplitPriorLike, log_odds, resolve_split_prior
from everytree.predictive.paths import PathPredictive, Paths
from everytree.trees.metatree import MetaTree

SCORED_ROWS = (1000, 4000)
"""Rows that are scored, at least and at most where there are as many: enough to tell priors apart, whatever the size of
the table. Where targets are numbers, whose densities cost more, it is the smaller number."""

SCORED_PAIRS = 50_000
"""Between these, as many rows as make so many questions to trees."""

SHARPENED_ROWS = 1000
"""Of these, how many decide about the sharpness of a distribution over numbers."""

SHARPNESS = (0.3, 5.0)
"""Range of the sharpness that is searched."""

REAL_LINE = ("normal", "linear")
"""Families whose targets may be anywhere; others live on a half-line or on whole numbers: not to be drawn anywhere."""

WORTH_FOLLOWING = 2.0
"""Nats that a step along a ladder must gain over all rows; its ends stand for limits, which scores approach slowly."""

STRENGTH_NAMES = ("alpha", "strength", "precision")
"""Parameters that count rows: their ladders end, where those of others come as near to certainty as matters."""

NULL_ODDS = 20.0
"""How much more probable it is beforehand that no column matters than all other priors together. On 50 rows of noise
the best of 24 priors leads by 4 nats in one case of ten; where columns matter, leads of 50 rows are mostly above 6."""

SHARPNESS_SPREAD = 0.5
"""Standard deviation of the log of the sharpness beforehand; on small tables it keeps luck from deciding."""


@dataclass(frozen=True)
class Search:
    """Which priors to try.

    Attributes
    ----------
    make : callable
        Leaf model from hyperparameters by name.
    start : mapping
        Hyperparameters and `split_prior` to start from; those that no stage names stay as they are.
    stages : sequence of mappings
        Each stage tries every combination of the values it lists, the others being the best so far.
    log_prior : callable
        What is thought of hyperparameters beforehand, in nats; it matters on small tables.
    ladders : mapping
        For some of these names, all values they may take, in ascending order. Where the best of a stage is the least or
        the largest that it lists, the search goes on along the ladder.
    """

    make: Callable[..., NativeFamily]
    start: Mapping[str, Any]
    stages: Sequence[Mapping[str, Sequence[Any]]] = ()
    log_prior: Callable[[Mapping[str, Any]], float] = lambda parameters: 0.0
    ladders: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    family : NativeFamily
    split_prior : float or callable
    parameters : dict
        The hyperparameters by name, the split prior among them.
    score : float
        Mean log probability of the scored rows, and the little that was thought beforehand; NaN where there were none.
    sharpness : float
    """

    family: NativeFamily
    split_prior: SplitPriorLike
    parameters: dict[str, Any]
    score: float
    sharpness: float = 1.0


@dataclass(frozen=True)
class HeldOut:
    """Trees with their statistics, and the rows that each may be asked about.

    Attributes
    ----------
    trees : list of MetaTree
    statistics : list of (n_nodes, n_statistics) arrays
    taken : list of (n_taken,) int arrays
        For each tree, the rows that are taken out, group after group: those it is asked about, and their companions.
    ends : list of (n_taken,) int32 arrays
        The terminals of those rows.
    y, weight, row_data
        Of the scored rows, and after them of their companions: rows of the same groups that are not scored themselves.
    group : (n_rows,) int64 or None
        The group of each of these rows; None where each stands alone.
    n_scored : int
        How many of these rows are scored.
    is_counted : bool
        Whether these rows are in the statistics.
    n_jobs : int
    is_honest : bool
        Whether these are rows the trees were not grown on.
    """

    trees: Sequence[MetaTree]
    statistics: Sequence[FloatArray]
    taken: Sequence[NDArray[np.int64]]
    ends: Sequence[NDArray[np.int32]]
    y: NDArray[Any]
    weight: FloatArray | None = None
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    group: NDArray[np.int64] | None = None
    n_scored: int = -1
    is_counted: bool = True
    n_jobs: int = 1
    is_honest: bool = True

    def __post_init__(self) -> None:
        if self.n_scored < 0:
            object.__setattr__(self, "n_scored", len(self.y))

    @property
    def rows(self) -> list[NDArray[np.int64]]:
        """For each tree, which of the scored rows it is asked about."""
        return [taken[taken < self.n_scored] for taken in self.taken]

    @property
    def scored_weight(self) -> FloatArray:
        """(n_scored,) weights of the scored rows."""
        return np.ones(self.n_scored) if self.weight is None else self.weight[: self.n_scored]

    def predict_each(
        self, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Rows and predictions of one tree after another; of those that are asked about any."""
        rows = self.rows
        asked = [tree for tree in range(len(rows)) if len(rows[tree])]
        if self.n_jobs == 1:
            for tree in asked:
                yield rows[tree], self.predict(tree, families, split_priors)
            return
        with ThreadPoolExecutor(self.n_jobs) as pool:
            values = pool.map(lambda tree: self.predict(tree, families, split_priors), asked)
            yield from zip((rows[tree] for tree in asked), values, strict=True)

    def predict(
        self, tree: int, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> FloatArray:
        """(n families, n split priors, n_held, n_values): class probabilities, or the log density of each target."""
        priors = np.concatenate([family._prior for family in families])
        values: FloatArray = _kernels.predict_held_out(*self._asked(tree, families[0], priors, split_priors))
        return values

    def components(self, tree: int, family: NativeFamily, split_prior: SplitPriorLike) -> tuple[Any, Any, Any]:
        """Where each row's path starts, the log weights of its nodes, and what the nodes know without the row."""
        parts: tuple[Any, Any, Any] = _kernels.held_out_components(
            *self._asked(tree, family, family._prior, [split_prior])
        )
        return parts

    def _asked(
        self, tree: int, family: NativeFamily, priors: FloatArray, split_priors: Sequence[SplitPriorLike]
    ) -> tuple[Any, ...]:
        """What the kernels are told: the tree, the priors to try, and the rows to take out, group after group."""
        taken = self.taken[tree]
        row_data = {name: column[taken] for name, column in self.row_data.items()}
        return (
            family.kernel, family.size, self.trees[tree]._kernel, self.statistics[tree], priors,
            *_stacked(split_priors, self.trees[tree]), self.ends[tree],
            np.full(len(taken), self.is_counted, dtype=np.uint8), self.y[taken],
            None if self.weight is None else self.weight[taken], family.pack(row_data), family.default_row_data,
            (taken < self.n_scored).astype(np.uint8), self._group_start(taken),
        )  # fmt: skip

    def _group_start(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n_groups + 1,) where each group begins among the rows that are taken out."""
        if self.group is None:
            return np.arange(len(taken) + 1)
        group = self.group[taken]
        return (
            np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [len(taken)]])
            if len(taken)
            else np.zeros(1, dtype=np.int64)
        )


def choose(search: Search, held: HeldOut, *, sharpen: bool) -> Choice:
    """The best prior of a search, and how much to sharpen the average of the trees.

    Only rows that a tree was not grown on can say how sure it should be; without such rows nothing is sharpened.
    """
    sharpen = sharpen and held.is_honest
    best = _Tried(dict(search.start), np.nan, 1.0)
    n_held = sum(map(len, held.rows))
    without_splits = -np.inf
    for stage in (search.stages or [{}]) if n_held else ():
        # That nothing is split is tried once, where split priors are first tried: beside others it costs little.
        with_null = "split_prior" in stage and "split_prior" in search.ladders and without_splits == -np.inf
        found, null_score = _try_all(search, held, stage, best.parameters, sharpen, with_null=with_null)
        without_splits = max(without_splits, null_score)
        best = best if best.score >= found.score else found
        best = _follow(search, held, stage, best, sharpen)
    if _is_no_better(search, held, best, without_splits):
        # Hardly ever splitting rather than never: with more rows, evidence may still speak for a split.
        best, _ = _try_all(
            search, held, {"split_prior": search.ladders["split_prior"][:1]}, search.start, sharpen=False
        )
        return Choice(
            _family(search, best.parameters), best.parameters["split_prior"], best.parameters, best.score
        )  # fmt: skip
    family, split_prior = _family(search, best.parameters), best.parameters["split_prior"]
    score, sharpness = best.score, best.sharpness
    if sharpen and n_held and family.kernel in REAL_LINE:
        score, sharpness = _sharpness_of(held, family, split_prior)
    return Choice(family, split_prior, best.parameters, score, sharpness)


def _is_no_better(search: Search, held: HeldOut, best: _Tried, without_splits: float) -> bool:
    """Whether the hypothesis that no column tells anything about the target is more probable than the best prior.

    Beforehand it is `NULL_ODDS` times as probable as all listed priors together. Without that, the best of many priors
    on a small table is the luckiest one, and pure noise is predicted worse than by no columns at all.
    """
    n_listed = sum(int(np.prod([len(values) for values in stage.values()])) for stage in search.stages)
    lead = (best.score - without_splits) * float(held.scored_weight.sum())
    return bool(lead < np.log(NULL_ODDS * max(n_listed, 1)))


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
    """The best combination of the values of a stage; and, if asked for, the score without any split."""
    leaf_names = [name for name in stage if name != "split_prior"]
    split_priors = [*stage.get("split_prior", [start["split_prior"]]), *([0.0] if with_null else [])]
    combinations = product(*(stage[name] for name in leaf_names))
    leaves = [dict(start) | dict(zip(leaf_names, values, strict=True)) for values in combinations]
    families = [_family(search, parameters) for parameters in leaves]
    scores, sharpnesses = _scores(held, families, split_priors, sharpen)
    total = float(held.scored_weight.sum())
    scores += np.array([[search.log_prior(one) / total] for one in leaves])
    null_score = -np.inf
    if with_null:
        null_score, scores = float(scores[:, -1].max()), scores[:, :-1]
    leaf, split = np.unravel_index(np.argmax(scores), scores.shape)
    parameters = leaves[leaf] | {"split_prior": split_priors[split]}
    return _Tried(parameters, float(scores[leaf, split]), float(sharpnesses[leaf, split])), null_score


def _follow(search: Search, held: HeldOut, stage: Mapping[str, Sequence[Any]], best: _Tried, sharpen: bool) -> _Tried:
    """Where the best of a stage is the last value it lists on one side, go on along the ladder while that helps."""
    for name in stage:
        if name not in search.ladders:
            continue
        ladder = search.ladders[name]
        tried = {ladder.index(value) for value in stage[name]}
        while steps := _next(ladder, tried, best.parameters[name]):
            further, _ = _try_all(search, held, {name: steps}, best.parameters, sharpen)
            if not (further.score - best.score) * float(held.scored_weight.sum()) > WORTH_FOLLOWING:
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
    """Those beside the value on the ladder that lie beyond all that were tried."""
    at = ladder.index(value)
    beyond = [place for place in (at - 1, at + 1) if not min(tried) <= place <= max(tried)]
    return [ladder[place] for place in beyond if 0 <= place < len(ladder)]


def start_family(search: Search) -> NativeFamily:
    """The leaf model that a search starts from."""
    return _family(search, search.start)


def _family(search: Search, parameters: Mapping[str, Any]) -> NativeFamily:
    return search.make(**{name: value for name, value in parameters.items() if name != "split_prior"})


def _is_classes(family: NativeFamily) -> bool:
    return family.kernel == "categorical"


def _stacked(split_priors: Sequence[SplitPriorLike], tree: MetaTree) -> tuple[FloatArray, FloatArray]:
    """Log odds of several split priors, (n, 1) or (n, n_nodes)."""
    resolved = np.stack(np.broadcast_arrays(*(resolve_split_prior(prior, tree) for prior in split_priors)))
    log_split, log_stop = log_odds(np.ascontiguousarray(resolved))
    return log_split, log_stop


def _scores(
    held: HeldOut, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike], sharpen: bool
) -> tuple[FloatArray, FloatArray]:
    """Mean log score and sharpness of each combination."""
    pooled, asked = _pooled(held, families, split_priors)
    scores, sharpness = np.empty(pooled.shape[:2]), np.ones(pooled.shape[:2])
    weight = held.scored_weight[asked]
    for place in np.ndindex(*scores.shape):
        values = pooled[place][asked]
        if _is_classes(families[0]):
            of_class = held.y[: held.n_scored][asked].astype(np.int64)
            scores[place], sharpness[place] = best_sharpness(values, of_class, weight, sharpen)
        else:
            scores[place] = np.average(values[:, 0], weights=weight)
    return scores, sharpness


def _pooled(
    held: HeldOut, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The average of the trees that may be asked, and which rows some tree was asked about.

    (n families, n split priors, n_rows, n_values): probabilities of classes, else the log of the average density.
    """
    n_rows, is_classes = held.n_scored, _is_classes(families[0])
    counts = np.zeros(n_rows)
    for rows in held.rows:
        counts[rows] += 1.0
    pooled: FloatArray | None = None
    for rows, values in held.predict_each(families, split_priors):
        if pooled is None:
            start = 0.0 if is_classes else -np.inf
            pooled = np.full((*values.shape[:2], n_rows, values.shape[3]), start)
        pooled[:, :, rows] = pooled[:, :, rows] + values if is_classes else np.logaddexp(pooled[:, :, rows], values)
    assert pooled is not None
    many = np.maximum(counts, 1.0)[:, None]
    return pooled / many if is_classes else pooled - np.log(many), counts > 0.0


def best_sharpness(
    probs: FloatArray, y: NDArray[np.int64], weight: FloatArray, sharpen: bool = True
) -> tuple[float, float]:
    """Mean log probability of y under probs ** sharpness, scaled to sum to 1, and the best sharpness."""
    log_probs = np.log(np.maximum(probs, 1e-300))
    of_y = log_probs[np.arange(len(y)), y]
    top = log_probs.max(axis=1, keepdims=True)

    def score(log_sharpness: float) -> float:
        power = np.exp(log_sharpness)
        total = np.log(np.exp(power * (log_probs - top)).sum(axis=1)) + power * top[:, 0]
        return float(np.average(power * of_y - total, weights=weight))

    if not sharpen:
        return score(0.0), 1.0
    return _sharpest(score, float(weight.sum()))


def _sharpest(score: Callable[[float], float], n_rows: float) -> tuple[float, float]:
    """The best mean score over the log of the sharpness, and that sharpness.

    The score is penalised by a weak prior around 1.
    """

    def penalised(log_sharpness: float) -> float:
        return score(log_sharpness) - 0.5 * (log_sharpness / SHARPNESS_SPREAD) ** 2 / n_rows

    low, high = np.log(SHARPNESS)
    found = minimize_scalar(lambda t: -penalised(t), bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return penalised(found.x), float(np.exp(found.x))


def _sharpness_of(held: HeldOut, family: NativeFamily, split_prior: SplitPriorLike) -> tuple[float, float]:
    """By how much to draw the average of the trees to its mean, for numbers, and the score that this gives."""
    pool, rows = _pool_without_own_row(held, family, split_prior)
    mean, y = pool.mean(), held.y[rows].astype(np.float64)
    weight = held.scored_weight[rows]

    def score(log_sharpness: float) -> float:
        stretched = mean + (y - mean) * np.exp(log_sharpness)
        return float(np.average(pool.log_prob(stretched) + log_sharpness, weights=weight))

    return _sharpest(score, float(weight.sum()))


def _pool_without_own_row(
    held: HeldOut, family: NativeFamily, split_prior: SplitPriorLike
) -> tuple[PathPredictive, NDArray[np.int64]]:
    """What the trees that may be asked about a row say together, for some of the scored rows, and which these are."""
    chosen = np.zeros(held.n_scored, dtype=bool)
    chosen[:SHARPENED_ROWS] = True
    row_of, log_weights, parameters = [], [], []
    for tree, rows in enumerate(held.rows):
        if len(rows) == 0:
            continue
        start, log_weight, parameter = held.components(tree, family, split_prior)
        of_entry = np.repeat(rows, np.diff(start))
        kept = chosen[of_entry] & (log_weight > np.log(1e-6))
        row_of.append(of_entry[kept])
        log_weights.append(log_weight[kept])
        parameters.append(parameter.reshape(len(log_weight), -1)[kept])
    order = np.argsort(np.concatenate(row_of), kind="stable")
    rows, start = np.unique(np.concatenate(row_of)[order], return_index=True)
    log_weight = np.concatenate(log_weights)[order]
    total = np.log(np.add.reduceat(np.exp(log_weight), start))
    ends = np.append(start, len(order))
    paths = Paths(
        ends.astype(np.int64),
        np.arange(len(order)),
        log_weight - np.repeat(total, np.diff(ends)),
        np.arange(len(rows), dtype=np.int32),
    )
    row_data = {name: values[rows] for name, values in held.row_data.items()}
    return PathPredictive(family, np.concatenate(parameters)[order], paths, row_data), rows
