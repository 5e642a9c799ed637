"""Priors chosen by what they predict for rows that had no say: re-weighting only, nothing is regrown.

Each tree is asked about rows it was not grown on, with the row itself taken out of the statistics again (in closed
form, O(depth) a row). The answers of all such trees are averaged as the forest would, and the prior with the best log
score wins. Where a tree was grown on all rows there are no such rows; the leave-one-out score over all of them is then
the best there is, though it flatters deep trees, and the average is not sharpened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from everytree import _kernels
from everytree.families.base import FloatArray, NativeFamily
from everytree.metatree import MetaTree
from everytree.predictive import Paths, Predictive
from everytree.priors import SplitPriorLike, log_odds, resolve_split_prior

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
    """

    make: Callable[..., NativeFamily]
    start: Mapping[str, Any]
    stages: Sequence[Mapping[str, Sequence[Any]]] = ()
    log_prior: Callable[[Mapping[str, Any]], float] = lambda parameters: 0.0


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
    """Trees with statistics of all rows, and the rows that each may be asked about.

    Attributes
    ----------
    trees : list of MetaTree
    statistics : list of (n_nodes, n_statistics) arrays
    rows : list of (n_held,) int arrays
        For each tree, which of the scored rows it is asked about.
    ends : list of (n_held,) int32 arrays
        The terminals of those rows.
    y, weight, row_data
        Of the scored rows.
    n_jobs : int
    is_honest : bool
        Whether these are rows the trees were not grown on.
    """

    trees: Sequence[MetaTree]
    statistics: Sequence[FloatArray]
    rows: Sequence[NDArray[np.int64]]
    ends: Sequence[NDArray[np.int32]]
    y: NDArray[Any]
    weight: FloatArray | None = None
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    n_jobs: int = 1
    is_honest: bool = True

    def predict_each(
        self, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Rows and predictions of one tree after another; of those that are asked about any."""
        asked = [tree for tree, rows in enumerate(self.rows) if len(rows)]
        if self.n_jobs == 1:
            for tree in asked:
                yield self.rows[tree], self.predict(tree, families, split_priors)
            return
        with ThreadPoolExecutor(self.n_jobs) as pool:
            values = pool.map(lambda tree: self.predict(tree, families, split_priors), asked)
            yield from zip((self.rows[tree] for tree in asked), values, strict=True)

    def predict(
        self, tree: int, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> FloatArray:
        """(n families, n split priors, n_held, n_values): class probabilities, or the log density of each target."""
        first, rows = families[0], self.rows[tree]
        log_split, log_stop = _stacked(split_priors, self.trees[tree])
        values: FloatArray = _kernels.predict_held_out(
            first.kernel, first.size, self.trees[tree]._kernel, self.statistics[tree],
            np.concatenate([family._prior for family in families]), log_split, log_stop, self.ends[tree],
            np.ones(len(rows), dtype=np.uint8), self.y[rows], None if self.weight is None else self.weight[rows],
            first.pack({name: values[rows] for name, values in self.row_data.items()}), first.default_row_data,
        )  # fmt: skip
        return values

    def components(self, tree: int, family: NativeFamily, split_prior: SplitPriorLike) -> tuple[Any, Any, Any]:
        """Where each row's path starts, the log weights of its nodes, and what the nodes know without the row."""
        rows = self.rows[tree]
        log_split, log_stop = _stacked([split_prior], self.trees[tree])
        parts: tuple[Any, Any, Any] = _kernels.held_out_components(
            family.kernel, family.size, self.trees[tree]._kernel, self.statistics[tree], family._prior,
            log_split, log_stop, self.ends[tree], np.ones(len(rows), dtype=np.uint8), self.y[rows],
            None if self.weight is None else self.weight[rows],
            family.pack({name: values[rows] for name, values in self.row_data.items()}), family.default_row_data,
        )  # fmt: skip
        return parts


def choose(search: Search, held: HeldOut, *, sharpen: bool) -> Choice:
    """The best prior of a search, and how much to sharpen the average of the trees.

    Only rows that a tree was not grown on can say how sure it should be; without such rows nothing is sharpened.
    """
    sharpen = sharpen and held.is_honest
    best = dict(search.start)
    score, sharpness = np.nan, 1.0
    n_held = sum(map(len, held.rows))
    for stage in search.stages if n_held else ():
        leaf_names = [name for name in stage if name != "split_prior"]
        split_priors = list(stage.get("split_prior", [best["split_prior"]]))
        leaves = [best | dict(zip(leaf_names, values, strict=True)) for values in product(*map(stage.get, leaf_names))]  # type: ignore[arg-type]
        families = [_family(search, parameters) for parameters in leaves]
        scores, sharpnesses = _scores(held, families, split_priors, sharpen)
        total = float(len(held.y) if held.weight is None else held.weight.sum())
        scores += np.array([[search.log_prior(one) / total] for one in leaves])
        leaf, split = np.unravel_index(np.argmax(scores), scores.shape)
        best = leaves[leaf] | {"split_prior": split_priors[split]}
        score, sharpness = float(scores[leaf, split]), float(sharpnesses[leaf, split])
    family = _family(search, best)
    if sharpen and n_held and (family.kernel in REAL_LINE or (_is_classes(family) and not search.stages)):
        score, sharpness = _sharpness_of(held, family, best["split_prior"])
    return Choice(family, best["split_prior"], best, score, sharpness)


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
    weight = np.ones(asked.sum()) if held.weight is None else held.weight[asked]
    for place in np.ndindex(*scores.shape):
        values = pooled[place][asked]
        if _is_classes(families[0]):
            of_class = held.y[asked].astype(np.int64)
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
    n_rows, is_classes = len(held.y), _is_classes(families[0])
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
    """The same for the chosen prior alone; for numbers, by how much to draw the average of the trees to its mean."""
    if _is_classes(family):
        scores, sharpness = _scores(held, [family], [split_prior], True)
        return float(scores[0, 0]), float(sharpness[0, 0])
    pool, rows = _pool_without_own_row(held, family, split_prior)
    mean, y = pool.mean(), held.y[rows].astype(np.float64)
    weight = np.ones(len(rows)) if held.weight is None else held.weight[rows]

    def score(log_sharpness: float) -> float:
        stretched = mean + (y - mean) * np.exp(log_sharpness)
        return float(np.average(pool.log_prob(stretched) + log_sharpness, weights=weight))

    return _sharpest(score, float(weight.sum()))


def _pool_without_own_row(
    held: HeldOut, family: NativeFamily, split_prior: SplitPriorLike
) -> tuple[Predictive, NDArray[np.int64]]:
    """What the trees that may be asked about a row say together, for some of the scored rows, and which these are."""
    chosen = np.zeros(len(held.y), dtype=bool)
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
    return Predictive(family, np.concatenate(parameters)[order], paths, row_data), rows
