"""Sampled and summed trees beside the Bayesian trees of other libraries: a planted root, and log-loss on small tables.

`python benchmarks/bayesian_trees.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import bayesian_peers as others
import everytree as et
import markdown
from bayesian_peers import TREE_DEPTH, Chains, Table
from markdown import number, section, table, times
from sampling import FAMILY, kernel, planted

Probs = Callable[[Table, Table, Table], Table]
Found = tuple[Chains | None, int]  # a run, and the column that was planted at the root
LIBRARIES = ("bayesml", "stochtree", "bartz")
OURS = "everytree SampledTree"
DEPTH = 6  # of the planted tree


def versions() -> str:
    """Name the other libraries with their versions."""
    return ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def with_blocks(X: NDArray[np.int64], y: NDArray[np.int64], n_chains: int, n_draws: int) -> Chains:
    """Run the sampler to the end of its burn-in and a little further; proposals of blocks are not counted."""
    sampler = et.StructureSampler([2] * X.shape[1], FAMILY, n_chains=n_chains, n_jobs=1, random_state=0)
    begun = time.perf_counter()
    sampler.fit(X, y, n_draws=2, burn_in=n_draws)
    return Chains(sampler.draws.root_column[:, 0].tolist(), 0, time.perf_counter() - begun)


def with_single_nodes(X: NDArray[np.int64], y: NDArray[np.int64], n_chains: int, seconds: float) -> Chains:
    """Run the same kernel with moves of single nodes at one temperature, as long."""
    engine, n_proposals = kernel(X, y, n_chains), 0
    engine.begin(False, 1)
    begun = time.perf_counter()
    while n_proposals == 0 or time.perf_counter() - begun < seconds:
        last = engine.run(n_draws=20, thin=0, n_single=500, n_blocks=0, n_jobs=1)
        n_proposals += 20 * 500 * n_chains
    return Chains([int(each["root_column"][-1]) for each in last], n_proposals, time.perf_counter() - begun)


def roots(n: int, n_columns: int, n_draws: int, n_chains: Sequence[int]) -> str:
    """How many chains have the planted root when the time is over, on as many tables as there are numbers of chains."""
    found: dict[str, list[Found]] = {}
    for seed, n_of_table in enumerate(n_chains):
        X, y, root = planted(seed, n, n_columns, DEPTH)
        for name, run in _runs(X, y, n_of_table, n_draws):
            found.setdefault(name, []).append((run, root))
    remark = (
        f"Trees of depth {DEPTH}, {n:,} rows, {n_columns} binary columns: {n_chains[0]} chains on the first table, "
        f"{n_chains[1]} on each of {len(n_chains) - 1} others. One thread; all samplers have about the time of the "
        "first. A node is split with probability 0.5 in all of them; BayesML and stochtree are told the depth, "
        "everytree is not. stochtree grows and prunes, with normal leaves and a probit link; the leaves of the others "
        f"are Bernoulli. Blocks sum over many structures at once and are not counted as proposals. {versions()}."
    )
    header = ["sampler", "root found, first table", "others", "seconds", "proposals a second", "proposals a chain"]
    rows = [_root_row(name, runs) for name, runs in found.items()]
    return section("Planted deep trees beside other libraries", remark, table(header, rows))


def _runs(X: Table, y: Table, n_chains: int, n_draws: int) -> Iterator[tuple[str, Chains | None]]:
    """Run each sampler on one table; nothing where a library is not installed."""
    ours = with_blocks(X, y, n_chains, n_draws)
    yield "everytree StructureSampler", ours
    yield "everytree, single nodes", with_single_nodes(X, y, n_chains, ours.seconds)
    for name in others.ROOTS:
        try:
            run = others.chains(name, X, y, DEPTH, n_chains, ours.seconds)
        except ImportError:
            run = None
        yield name, run


def _root_row(name: str, found: list[Found]) -> list[str]:
    """One line of the table of roots."""
    runs = [(run, root) for run, root in found if run is not None]
    if not runs:
        return [name, "not installed", "", "", "", ""]
    n_proposals, seconds = (sum(getattr(run, what) for run, _ in runs) for what in ("n_proposals", "seconds"))
    n_chains = sum(len(run.roots) for run, _ in runs)
    known = [number(n_proposals / seconds), f"{n_proposals // n_chains:,}"] if n_proposals else ["", ""]
    return [name, _hits(runs[:1]), _hits(runs[1:]), number(seconds), *known]


def _hits(runs: list[tuple[Chains, int]]) -> str:
    """Count the chains that have the planted root."""
    hits = [each == root for run, root in runs for each in run.roots]
    return f"{sum(hits)} of {len(hits)}"


def _estimator(make: Callable[[], object]) -> Probs:
    """Ask a classifier of the scikit-learn kind for the probability of class 1."""

    def probs(X: Table, y: Table, X_test: Table) -> Table:
        return make().fit(X, y).predict_proba(X_test)[:, 1]  # type: ignore[attr-defined]

    return probs


def _pruned_cart() -> GridSearchCV:
    """Make a tree whose pruning is chosen by cross-validated log-loss."""
    penalties = {"ccp_alpha": [0.0, *np.geomspace(1e-4, 0.1, 16)]}
    return GridSearchCV(DecisionTreeClassifier(random_state=0), penalties, scoring="neg_log_loss", cv=5)


MODELS: dict[str, Probs] = {
    OURS: _estimator(lambda: et.SampledTreeClassifier(TREE_DEPTH, n_draws=30, random_state=0, n_jobs=1)),
    "everytree ExactTree": _estimator(lambda: et.ExactTreeClassifier(random_state=0, n_jobs=1)),
    "everytree MetaForest": _estimator(lambda: et.MetaForestClassifier(random_state=0, n_jobs=1)),
    "everytree MetaBoost": _estimator(lambda: et.MetaBoostClassifier(random_state=0, n_jobs=1)),
    "stochtree BART": others.stochtree_probs,
    "bartz BART": others.bartz_probs,
    "BayesML MTMCMC": others.bayesml_probs,
    "CART, pruned by CV": _estimator(_pruned_cart),
}


def small_tables() -> dict[str, tuple[Table, Table]]:
    """Load tables of scikit-learn, those with more classes or a number as two classes."""
    cancer, diabetes, wine = (
        load(return_X_y=True) for load in (datasets.load_breast_cancer, datasets.load_diabetes, datasets.load_wine)
    )
    return {
        "wine, class 1": (wine[0], (wine[1] == 1).astype(int)),
        "breast_cancer": cancer,
        "diabetes, above median": (diabetes[0], (diabetes[1] > np.median(diabetes[1])).astype(int)),
    }


def accuracy(wanted: int, n_folds: int) -> str:
    """Log-loss and seconds on the same folds."""
    chosen = dict(list(small_tables().items())[:wanted])
    found = {model: [_validated(probs, *each, n_folds) for each in chosen.values()] for model, probs in MODELS.items()}
    base = sum(seconds for _, seconds in found[OURS])  # type: ignore[misc]
    rows = []
    for model, scores in found.items():
        known = [each for each in scores if each is not None]
        seconds = sum(each[1] for each in known)
        losses = [f"{each[0]:.3f}" for each in known] or ["not installed"] * len(chosen)
        rows.append([model, *losses, number(seconds) if known else "", times(seconds, base) if known else ""])
    remark = (
        f"{n_folds}-fold cross-validation, the same folds for all; seconds to fit and predict all folds of all "
        f"tables, and their ratio to {OURS}. One thread each; bartz chooses for itself, and its compilation for "
        "every new shape of a table is counted. Defaults, except to save time: bartz has one chain of 100 + 200 draws "
        f"instead of four of 1,000 + 1,000; SampledTree trees of depth {TREE_DEPTH} and 30 draws instead of any "
        f"depth and 200, and BayesML trees of depth {TREE_DEPTH} instead of 2."
    )
    header = ["model", *(f"log-loss, {name}" for name in chosen), "seconds", "ratio"]
    return section("Small tables beside other libraries", remark, table(header, rows))


def _validated(probs: Probs, X: Table, y: Table, n_folds: int) -> tuple[float, float] | None:
    """Return the log-loss over all folds and the seconds, or nothing where the library is not installed."""
    predicted, begun = np.empty(len(y)), time.perf_counter()
    try:
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
            predicted[test] = probs(X[train], y[train], X[test])
    except ImportError:
        return None
    return float(log_loss(y, predicted)), time.perf_counter() - begun


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few draws")
    parser.add_argument("--out", type=Path, help="results file whose section 'bayesian-trees' is replaced")
    options = parser.parse_args()
    if options.quick:
        found = [roots(100, 8, 5, (2, 1)), accuracy(1, 2)]
    else:
        found = [roots(1000, 50, 100, (10, 2, 2, 2, 2)), accuracy(3, 5)]
    text = "\n\n".join(found)
    print(text)
    if options.out:
        markdown.write_section(options.out, "bayesian-trees", text)


if __name__ == "__main__":
    main()
