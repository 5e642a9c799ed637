"""Chains of boosted trees: each leaves out some rows, stops by them, and scores them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.boosting.folds import folds
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.posterior.rows import Rows
from everytree.structure.growers import Either, drawn_columns

SPLIT_PRIORS = (0.8, 0.99)
"""The usual one, and one for targets that hardly have any noise."""

SMALL_TABLE = 5_000
"""Rows up to which steps are smallest."""

ENOUGH_ROWS = 50_000
"""Of larger tables, a chain learns enough without the rows that it leaves out."""

CLEAR = 1.5
"""Number of standard errors by which the second must predict better to be chosen."""


@dataclass(frozen=True)
class BoostRule:
    """How chains are boosted.

    Attributes
    ----------
    n_chains : int
    learning_rate : float or None
        Share of a tree's values that is added to the scores.
    max_steps : int
    patience : int or None
        A chain ends when so many steps have not lowered the loss of the rows that it leaves out.
    split_prior : float or None
        Prior probability that a node is split; 1 for no averaging over prunings. None: one of `SPLIT_PRIORS`, chosen by
        the rows that the first chain leaves out.
    tau : float
        Prior precision of leaf values, in rows.
    max_leaf_nodes, max_depth : int or None
        Of each tree; depth 0 is any depth.
    min_samples_leaf : int
    subsample, max_features : float
        Share of the rows and columns by which the splits of a tree are chosen. Its leaves count all rows.
    max_rows : int
        Number of rows that are enough to choose splits by.

    What is None is set by the number of rows: see `for_rows`.
    """

    n_chains: int = 5
    learning_rate: float | None = None
    max_steps: int = 1000
    patience: int | None = None
    split_prior: float | None = None
    tau: float = 1.0
    max_leaf_nodes: int | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    subsample: float = 0.5
    max_features: float = 0.5
    max_rows: int = 20_000

    def for_rows(self, n_rows: int) -> BoostRule:
        """Set what is None: many small steps up to `SMALL_TABLE` rows, then larger and fewer ones, up to four times."""
        larger = float(np.clip((n_rows / SMALL_TABLE) ** 0.45, 1.0, 4.0))
        by_rows = {
            "learning_rate": 0.08 * larger, "patience": round(50.0 / larger), "max_leaf_nodes": round(16.0 * larger),
            "max_depth": round(6.0 + np.log2(larger)),
        }  # fmt: skip
        return replace(self, **{name: value for name, value in by_rows.items() if getattr(self, name) is None})

    def kernel_options(self, split_prior: float) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate, "tau": self.tau, "split_prior": split_prior,
            "max_steps": self.max_steps, "patience": self.patience, "max_leaf_nodes": self.max_leaf_nodes,
            "max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf, "row_share": self.subsample,
            "column_share": self.max_features, "most_rows": self.max_rows,
        }  # fmt: skip


class Likelihood(NamedTuple):
    """Targets as scores predict them.

    Attributes
    ----------
    loss : {"logit", "softmax", "squared", "rate"}
    y : (n_rows,) float64
    exposure : (n_rows,) float64 or None
    n_classes : int
    """

    loss: str
    y: FloatArray
    exposure: FloatArray | None = None
    n_classes: int = 0

    def losses(self, scores: FloatArray) -> FloatArray:
        """(n_rows,) loss of each row, without what does not depend on its scores."""
        if self.loss == "squared":
            return np.asarray(0.5 * (scores[:, 0] - self.y) ** 2)
        if self.loss == "rate":
            return np.asarray(
                (1.0 if self.exposure is None else self.exposure) * np.exp(scores[:, 0]) - self.y * scores[:, 0]
            )
        wide = class_scores(scores)
        return np.asarray(logsumexp(wide, axis=1) - wide[np.arange(len(wide)), self.y.astype(np.int64)])


def class_scores(scores: FloatArray) -> FloatArray:
    """(n_rows, n_classes): one score is the logit of the second of two classes."""
    return np.column_stack([np.zeros(len(scores)), scores[:, 0]]) if scores.shape[1] == 1 else scores


class Boosted(NamedTuple):
    """What boosting gives.

    Attributes
    ----------
    chains : list of AdditiveTrees
    left_out : (n_rows, n_outputs) float64
        Score of each row by the chain that left it out.
    n_steps : list of int
        Steps of each chain.
    split_prior : float
        That was given or chosen.
    gains : (n_features,) float64
        Expected gain in log evidence by the splits on each column, on average over the chains.
    """

    chains: list[AdditiveTrees]
    left_out: FloatArray
    n_steps: list[int]
    split_prior: float
    gains: FloatArray


def boost(
    rows: Rows,
    likelihood: Likelihood,
    rule: BoostRule,
    *,
    n_codes: NDArray[Any],
    has_missing: NDArray[np.bool_],
    rng: np.random.Generator,
    either: Either = (),
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Boosted:
    """Run the chains, the same for any `n_jobs`; every row is left out by one of them.

    What the rows left out say is then known, and a table of up to `ENOUGH_ROWS` rows is boosted again: every chain on
    all rows, for as many steps as before. A table of fewer groups than chains has as many chains as groups.
    """
    rule = rule.for_rows(len(rows))
    n_groups = len(rows) if rows.group is None else int(rows.group.max()) + 1
    n_chains = max(1, min(rule.n_chains, n_groups))
    fold = folds(likelihood.y, rows.group, n_chains, rng)
    seeds = rng.integers(2**62, size=n_chains).tolist()
    columns = [drawn_columns(len(n_codes), either, seed) for seed in seeds]
    booster = _kernels.booster(
        codes=np.ascontiguousarray(rows.codes), n_codes=n_codes.astype(np.int32), has_missing=has_missing,
        y=np.ascontiguousarray(likelihood.y, dtype=np.float64), weight=rows.weight, exposure=likelihood.exposure,
        n_classes=likelihood.n_classes, loss=likelihood.loss,
    )  # fmt: skip

    def one(chain: int, split_prior: float) -> dict[str, Any]:
        options = rule.kernel_options(split_prior)
        run: dict[str, Any] = booster.run(
            is_left_out=fold == chain, columns=columns[chain], seed=seeds[chain], **options
        )
        return run

    def again(chain: int, split_prior: float, n_steps: int) -> dict[str, Any]:
        """All rows, for as many steps."""
        options = rule.kernel_options(split_prior) | {"max_steps": n_steps}
        run: dict[str, Any] = booster.run(
            is_left_out=np.zeros(len(fold), dtype=bool), columns=columns[chain], seed=seeds[chain], **options
        )
        return run

    priors = SPLIT_PRIORS if rule.split_prior is None else (rule.split_prior,)
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            pilots = list(pool.map(partial(one, 0), priors))
            progress()
            best = _best_pilot(pilots, likelihood, rows.weight, fold == 0)
            runs = [pilots[best]]
            for run in pool.map(one, range(1, n_chains), [priors[best]] * (n_chains - 1)):
                runs.append(run)
                progress()
            n_steps = [run["n_steps"] for run in runs]
            left_out = _joined([run["left_out"] for run in runs], fold)
            if len(rows) <= ENOUGH_ROWS:
                runs = list(pool.map(again, range(n_chains), [priors[best]] * n_chains, n_steps))
        except BaseException:
            booster.stop()  # before the pool waits for chains that still run
            raise
    gains = np.zeros(len(n_codes))
    for run in runs:
        is_split = run["feature"] >= 0
        gains += np.bincount(run["feature"][is_split], run["gain"][is_split], len(n_codes)) / n_chains
    chains = [
        AdditiveTrees(run["n_nodes"], {name: run[name] for name in NODE_ARRAYS}, run["value"], run["base"], n_codes)
        for run in runs
    ]
    return Boosted(chains, left_out, n_steps, priors[best], gains)


def _joined(of_chain: Sequence[FloatArray], fold: NDArray[np.int64]) -> FloatArray:
    """(n_rows, n_outputs) the scores of each row by the chain that left it out."""
    scores = np.empty((len(fold), of_chain[0].shape[1]))
    for chain, own in enumerate(of_chain):
        scores[fold == chain] = own
    return scores


def _best_pilot(
    pilots: Sequence[dict[str, Any]],
    likelihood: Likelihood,
    weight: FloatArray | None,
    left_out: NDArray[np.bool_],
) -> int:
    """The first of two chains, unless the second clearly predicts the rows left out better."""
    if len(pilots) == 1 or left_out.sum() < 2:
        return 0
    exposure = None if likelihood.exposure is None else likelihood.exposure[left_out]
    some = likelihood._replace(y=likelihood.y[left_out], exposure=exposure)
    first, second = (some.losses(pilot["left_out"]) for pilot in pilots)
    gain = (first - second) * (1.0 if weight is None else weight[left_out])
    return int(gain.mean() > CLEAR * gain.std() / np.sqrt(len(gain)))
