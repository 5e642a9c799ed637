"""Chains of boosted trees: each leaves out some rows, stops by them, and scores them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.boosting.folds import folds
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.posterior.rows import Rows


@dataclass(frozen=True)
class BoostRule:
    """How chains are boosted.

    Attributes
    ----------
    n_chains : int
    learning_rate : float
        Share of a tree's values that is added to the scores.
    max_steps : int
    patience : int
        A chain ends when so many steps have not lowered the loss of the rows that it leaves out.
    split_prior : float
        Prior probability that a node is split; 1 for no averaging over prunings.
    tau : float
        Prior precision of leaf values, in rows.
    max_leaf_nodes, max_depth, min_samples_leaf : int
        Of each tree.
    subsample, max_features : float
        Share of the rows and columns by which the splits of a tree are chosen. Its leaves count all rows.
    max_rows : int
        Number of rows that are enough to choose splits by.
    """

    n_chains: int = 5
    learning_rate: float = 0.08
    max_steps: int = 1000
    patience: int = 50
    split_prior: float = 0.8
    tau: float = 1.0
    max_leaf_nodes: int = 16
    max_depth: int = 6
    min_samples_leaf: int = 1
    subsample: float = 0.5
    max_features: float = 0.5
    max_rows: int = 20_000

    def kernel_options(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate, "tau": self.tau, "split_prior": self.split_prior,
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


class Boosted(NamedTuple):
    """What boosting gives.

    Attributes
    ----------
    chains : list of AdditiveTrees
    left_out : (n_rows, n_outputs) float64
        Score of each row by the chain that left it out.
    n_steps : list of int
        Steps of each chain.
    gains : (n_features,) float64
        Expected gain in log evidence by the splits on each column, on average over the chains.
    """

    chains: list[AdditiveTrees]
    left_out: FloatArray
    n_steps: list[int]
    gains: FloatArray


def boost(
    rows: Rows,
    likelihood: Likelihood,
    rule: BoostRule,
    *,
    n_codes: NDArray[Any],
    has_missing: NDArray[np.bool_],
    rng: np.random.Generator,
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Boosted:
    """Run the chains, the same for any `n_jobs`; every row is left out by one of them.

    A table of fewer groups than chains has as many chains as groups.
    """
    n_groups = len(rows) if rows.group is None else int(rows.group.max()) + 1
    n_chains = max(1, min(rule.n_chains, n_groups))
    fold = folds(likelihood.y, rows.group, n_chains, rng)
    seeds = rng.integers(2**62, size=n_chains).tolist()
    booster = _kernels.booster(
        codes=np.ascontiguousarray(rows.codes), n_codes=n_codes.astype(np.int32), has_missing=has_missing,
        y=np.ascontiguousarray(likelihood.y, dtype=np.float64), weight=rows.weight, exposure=likelihood.exposure,
        n_classes=likelihood.n_classes, loss=likelihood.loss,
    )  # fmt: skip

    def one(chain: int) -> dict[str, Any]:
        # With one group, nothing can be left out: the chain then takes no step.
        run = booster.run(is_left_out=fold == chain, seed=seeds[chain], **rule.kernel_options())
        progress()
        return run

    try:
        with ThreadPoolExecutor(n_jobs) as pool:
            runs = list(pool.map(one, range(n_chains)))
    except BaseException:
        booster.stop()
        raise
    left_out = np.empty((len(rows), len(runs[0]["base"])))
    for chain, run in enumerate(runs):
        left_out[fold == chain] = run["left_out"]
    gains = np.zeros(len(n_codes))
    for run in runs:
        is_split = run["feature"] >= 0
        gains += np.bincount(run["feature"][is_split], run["gain"][is_split], len(n_codes)) / n_chains
    chains = [
        AdditiveTrees(run["n_nodes"], {name: run[name] for name in NODE_ARRAYS}, run["value"], run["base"], n_codes)
        for run in runs
    ]
    return Boosted(chains, left_out, [run["n_steps"] for run in runs], gains)
