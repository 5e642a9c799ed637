"""Other libraries' samplers of Bayesian trees: chains of a single tree, and probabilities of a class.

Each library is imported where it is used, so that one that is not installed leaves the others to run.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[Any]
TREE_DEPTH = 4  # of sampled single trees on small tables: BayesML fills its trees, so each level costs it much


@dataclass(frozen=True)
class Chains:
    """The column at the root of each chain's last tree, and what all chains together took."""

    roots: list[int]
    n_proposals: int
    seconds: float


@contextmanager
def _silence() -> Iterator[None]:
    """Keep progress and remarks of a library out of the tables."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _bayesml_fitted(numbers: Table, flags: Table, y: Table, depth: int, **settings: int) -> Any:
    """Run BayesML's Metropolis-Hastings over meta-trees."""
    from bayesml import bernoulli, metatree

    model = metatree.LearnModel(
        c_dim_continuous=numbers.shape[1], c_dim_categorical=flags.shape[1], c_max_depth=depth, SubModel=bernoulli
    )
    with _silence():
        model.fit(numbers, flags, y, alg_type="MTMCMC", **settings)
    return model


def _bayesml_root(X: Table, y: Table, depth: int, n_proposals: int, seed: int) -> int:
    """Return the column at the root of the tree that a chain of BayesML has after so many proposals."""
    nothing = np.empty((len(X), 0))
    model = _bayesml_fitted(nothing, X, y, depth, burn_in=n_proposals, num_metatrees=1, seed=seed)
    return int(model.hn_metatree_list[-1].k)


def _stochtree_sampled(X: Table, y: Table, seed: int, forest: dict[str, Any], **lengths: int) -> Any:
    """Run stochtree's BART with a probit link."""
    from stochtree import BARTModel, OutcomeModel

    general = {"outcome_model": OutcomeModel(outcome="binary", link="probit"), "random_seed": seed}
    model = BARTModel()
    with _silence():
        model.sample(X.astype(float), y.astype(float), general_params=general, mean_forest_params=forest, **lengths)
    return model


def _stochtree_root(X: Table, y: Table, depth: int, n_proposals: int, seed: int) -> int:
    """Return the column at the root of stochtree's single tree, -1 where it has none, after so many proposals."""
    # As in the other samplers, a node is split with probability one half whatever its depth, and may have any rows.
    forest = {"num_trees": 1, "alpha": 0.5, "beta": 0.0, "min_samples_leaf": 1, "max_depth": depth}
    model = _stochtree_sampled(X, y, seed, forest, num_gfr=0, num_burnin=n_proposals, num_mcmc=1)
    trees = model.forest_container_mean
    return -1 if trees.is_leaf_node(0, 0, 0) else int(trees.node_split_index(0, 0, 0))


ROOTS = {"BayesML MTMCMC": _bayesml_root, "stochtree, one tree": _stochtree_root}


def chains(name: str, X: Table, y: Table, depth: int, n_chains: int, seconds: float) -> Chains:
    """Run chains one after the other, each as many proposals as a trial says will take its share of the time."""
    root, n_trial = ROOTS[name], 20
    root(X, y, depth, 1, 0)  # imports and compiled parts are not the chain's
    while True:
        begun = time.perf_counter()
        root(X, y, depth, n_trial, 0)
        spent = time.perf_counter() - begun
        if spent > 0.05 * seconds / n_chains:
            break
        n_trial *= 4
    n_proposals = max(1, round(n_trial * seconds / n_chains / spent))
    begun = time.perf_counter()
    roots = [root(X, y, depth, n_proposals, seed) for seed in range(n_chains)]
    return Chains(roots, n_proposals * n_chains, time.perf_counter() - begun)


def bayesml_probs(X: Table, y: Table, X_test: Table) -> Table:
    """Return the probability of class 1 by BayesML, with its own numbers of proposals (100 and 500)."""
    model = _bayesml_fitted(X, np.empty((len(X), 0), dtype=int), y, TREE_DEPTH, seed=0)
    model.calc_pred_dist(X_test, np.empty((len(X_test), 0), dtype=int))
    return model.make_prediction(loss="KL")[:, 1]


def stochtree_probs(X: Table, y: Table, X_test: Table) -> Table:
    """Return the probability of class 1 by stochtree: 200 trees, 10 sweeps grown from the root, 100 draws."""
    model = _stochtree_sampled(X, y, 1, {}, num_gfr=10, num_burnin=0, num_mcmc=100)
    with _silence():
        return model.predict(X_test, type="mean", terms="y_hat", scale="probability")


def bartz_probs(X: Table, y: Table, X_test: Table) -> Table:
    """Return the probability of class 1 by bartz: 200 trees, one chain, 100 draws of burn-in and 200 more."""
    from bartz import Bart

    with _silence():
        model = Bart(
            X.T, y.astype(np.float32), outcome_type="binary", num_chains=1, n_burn=100, n_save=200, printevery=None
        )
        return np.asarray(model.predict(X_test.T, kind="mean"), dtype=float)
