"""The sum over every tree and every split: what it costs beside the search for the one best tree, and what it is worth.

`python benchmarks/exact.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers; `--data DIR` adds
log-losses on the tables of that folder and of scikit-learn. One thread unless it says two, all in one process but the
peak memory, which is that of a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import everytree as et
import markdown
from accuracy import folds
from markdown import number, section, table, times
from peers import medians_filled, one_hot, peers, zeros_and_ones
from tables import Table, tables
from timing import medians, started

SIZES = ((958, 27), (1000, 100), (3200, 73))
QUICK = ((200, 12),)
HEADER = (
    "table", "all trees / STreeD's one", "one thread / two", "all trees, ms", "STreeD, ms", "regions a second",
    "regions", "peak MB",
)  # fmt: skip


def noisy(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Binary columns, four of which make the class; 15% of the labels are wrong."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n_rows, n_columns)).astype(np.uint8)
    y = ((X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3])) ^ (rng.random(n_rows) < 0.15)
    return X, y.astype(np.int64)


def exact(n_codes: Sequence[int], n_jobs: int = 1, max_depth: int = 4) -> et.ExactPosterior:
    return et.ExactPosterior(n_codes, et.Bernoulli(0.5, 0.5), max_depth, n_jobs=n_jobs)


def fit(X: np.ndarray, y: np.ndarray, **options: Any) -> Callable[[], Callable[[], object]]:
    """A fresh sum over all trees of these codes."""
    n_codes = (X.max(axis=0) + 1).tolist()
    return started(lambda: exact(n_codes, **options), lambda model: model.fit(X, y))


def best_tree(X: np.ndarray, y: np.ndarray) -> Callable[[], Callable[[], object]]:
    """STreeD's search for the tree with the fewest errors."""
    make = partial(import_module("pystreed").STreeDClassifier, "accuracy", max_depth=4, max_num_nodes=15)
    return started(make, lambda model: model.fit(X.astype(np.int32), y))


def peak_memory(n_rows: int, n_columns: int) -> float:
    """Megabytes of a process that does nothing but this sum and one prediction."""
    work = f"import exact; exact.report_memory({n_rows}, {n_columns})"
    done = subprocess.run([sys.executable, "-c", work], cwd=Path(__file__).parent, capture_output=True, check=True)
    return float(done.stdout) / 1024


def report_memory(n_rows: int, n_columns: int) -> None:
    """The work of `peak_memory`; writes kilobytes."""
    X, y = noisy(n_rows, n_columns)
    exact([2] * n_columns).fit(X, y).probs(X)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def beside_one_tree(sizes: Sequence[tuple[int, int]], repeats: int) -> str:
    """All trees against the one best tree of the same depth on the same table."""
    rows = []
    for n, k in sizes:
        X, y = noisy(n, k)
        ms = medians({"all": fit(X, y), "two": fit(X, y, n_jobs=2), "one": best_tree(X, y)}, repeats)
        model = exact([2] * k).fit(X, y)
        per_second = sum(model.n_regions) / ms["all"] * 1e3
        rows.append([
            f"{n} x {k}", times(ms["all"], ms["one"]), times(ms["all"], ms["two"]), number(ms["all"]),
            number(ms["one"]), f"{per_second:,.0f}", f"{sum(model.n_regions):,}", f"{peak_memory(n, k):,.0f}",
        ])  # fmt: skip
    return section(
        "Every tree beside the one best tree",
        "The exact sum over all trees of depth 4 and all their splits, beside STreeD's search for the tree of depth 4 "
        f"with the fewest errors; binary columns, 15% wrong labels, one thread, medians of {repeats}. Memory: the "
        "whole process, prediction included.",
        table(HEADER, rows),
    )


def predictions(sizes: Sequence[tuple[int, int]], n_new: int, repeats: int) -> str:
    """Averages over all trees for new rows beside a forest's."""
    rows = []
    for n, k in sizes:
        X, y = noisy(n, k)
        model, forest = exact([2] * k).fit(X, y), RandomForestClassifier(100, random_state=0).fit(X, y)
        new = np.random.default_rng(1).integers(0, 2, (n_new, k)).astype(np.uint8)
        model.probs(new[:1])  # tables are made once
        ms = medians({
            "ours": started(lambda model=model: model, lambda model, new=new: model.probs(new)),
            "forest": started(lambda forest=forest: forest, lambda forest, new=new: forest.predict_proba(new)),
        }, repeats)  # fmt: skip
        rows.append([f"{n} x {k}", times(ms["ours"], ms["forest"]), number(ms["ours"]), number(ms["forest"]),
                     f"{model.truncation:.1g}"])  # fmt: skip
    return section(
        "Predictions of the exact average",
        f"{n_new:,} new rows, one thread, medians of {repeats}, beside scikit-learn's forest of 100 trees fitted to "
        "the same rows. Left out: posterior mass, at most.",
        table(["table", "all trees / forest", "all trees, ms", "forest, ms", "left out"], rows),
    )


def growth(repeats: int, scale: int) -> str:
    """How the cost grows with columns, rows and depth."""
    rows = []
    for what, settings in {
        "columns": [(1000, 20, 4), (1000, 40, 4), (1000, 80, 4)],
        "rows": [(1000, 30, 4), (4000, 30, 4), (16000, 30, 4)],
        "depth": [(1000, 30, 3), (1000, 30, 4), (1000, 30, 5)],
    }.items():
        first = 0.0
        for n, k, depth in settings:
            X, y = noisy(n // scale, k // scale)
            ms = medians({"all": fit(X, y, max_depth=depth)}, repeats)["all"]
            first = first or ms
            n_regions = sum(exact([2] * X.shape[1], max_depth=depth).fit(X, y).n_regions)
            rows.append(
                [f"{what}: {len(X)} x {X.shape[1]}, depth {depth}", times(ms, first), number(ms), f"{n_regions:,}"]
            )
    return section("How the exact sum grows", "Binary columns as above; each beside the first of its kind.",
                   table(["size", "to the first", "ms", "regions"], rows))  # fmt: skip


def numeric(data: Path, repeats: int) -> str:
    """Numbers in eight bins: every cut of every column."""
    found = list(tables(data, ["pima-indians-diabetes"]))
    if not found:
        return ""
    X, y = found[0].X, found[0].y
    codes = et.Schema.fit(X, max_bins=8).encode(X)
    rows = []
    for depth in (4, 5):
        ms = medians({"all": fit(codes, y, max_depth=depth)}, repeats)["all"]
        model = exact((codes.max(axis=0) + 1).tolist(), max_depth=depth).fit(codes, y)
        rows.append([f"depth {depth}", number(ms), f"{sum(model.n_regions):,}", f"{model.map_tree().n_leaves}",
                     f"{model.log_evidence:.2f}"])  # fmt: skip
    return section("Numbers in eight bins", f"pima: {len(X)} rows, {X.shape[1]} numeric columns, 8 quantile bins each.",
                   table(["", "ms", "regions", "leaves of the best tree", "log evidence"], rows))  # fmt: skip


# ---- what it is worth ------------------------------------------------------------------------------------------------

GRID = {"ccp_alpha": [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1], "min_samples_leaf": [1, 5, 20]}


def cart(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame) -> tuple[np.ndarray, int]:
    """CART, pruned as five-fold cross-validation of the log-loss says."""
    X, X_test = one_hot(train, test)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), GRID, scoring="neg_log_loss", cv=5).fit(X, y)
    return search.predict_proba(X_test), search.best_estimator_.get_n_leaves()


def every_tree(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame) -> tuple[np.ndarray, int]:
    model = et.ExactTreeClassifier().fit(train, y)
    return model.predict_proba(test), model.map_tree_.n_leaves


def mcmc(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame) -> tuple[np.ndarray, None]:
    """BayesML's sampling of splits, for two classes, at its defaults."""
    numbers, flags = medians_filled(train, test), zeros_and_ones(train, test)
    model = import_module("bayesml.metatree").LearnModel(
        c_dim_continuous=numbers[0].shape[1], c_dim_categorical=flags[0].shape[1], c_max_depth=4,
        SubModel=import_module("bayesml.bernoulli"),
    )  # fmt: skip
    model.fit(numbers[0].to_numpy(), flags[0].to_numpy(int), y, alg_type="MTMCMC", seed=0)
    model.calc_pred_dist(numbers[1].to_numpy(), flags[1].to_numpy(int))
    return model.make_prediction(loss="KL"), None


def log_loss(model: Callable[..., tuple[np.ndarray, int | None]], data: Table) -> tuple[float, float | None]:
    """Mean log-loss of the held-out rows of five folds, and the mean number of leaves."""
    losses, leaves = [], []
    for train, test in folds(data):
        probs, n_leaves = model(data.X.iloc[train], data.y[train], data.X.iloc[test])
        losses.append(-np.log(np.clip(probs[np.arange(len(test)), data.y[test]], 1e-15, 1.0)))
        leaves.append(n_leaves)
    return float(np.concatenate(losses).mean()), None if None in leaves else float(np.mean(leaves))


def worth(data: Path, with_mcmc: int) -> str:
    """Log-losses and sizes of trees."""
    known = {peer.name: peer.classify for peer in peers()}
    models: dict[str, Callable[..., tuple[np.ndarray, int | None]]] = {
        "every tree": every_tree,
        "CART (CV)": cart,
        **{
            name: lambda train, y, test, name=name: (known[name](train, y, test), None)
            for name in ("HSTree (CV)", "RandomForest")
        },
        "BayesML MCMC": mcmc,
    }
    rows = []
    for one in tables(data):
        if one.kind != "classes":
            continue
        cells: list[str] = []
        for name, model in models.items():
            if name == "BayesML MCMC" and (one.y.max() > 1 or len(one.y) > with_mcmc):
                cells.append("-")
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    loss, leaves = log_loss(model, one)
                except Exception as error:  # whatever a library may raise: its cell says so, the run goes on
                    print(f"{one.name}, {name}: {type(error).__name__}: {error}", file=sys.stderr)
                    cells.append("failed")
                    continue
            cells.append(f"{loss:.4f}" + (f" ({leaves:.1f})" if leaves else ""))
            print(f"{one.name}, {name}: {cells[-1]}", file=sys.stderr)
        rows.append([one.name, *cells])
    return section(
        "What the average over every tree is worth",
        "Log-loss of held-out rows, five folds; in parentheses the mean number of leaves, of the most probable tree "
        "and of CART's. `ExactTreeClassifier()` at its defaults; CART's pruning and leaf size chosen by "
        "cross-validated log-loss; BayesML's MCMC over splits to depth 4 where there are two classes and at most "
        f"{with_mcmc} rows.",
        table(["table", *models], rows),
    )


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--data", type=Path, help="folder of tables: adds what the average is worth on them")
    parser.add_argument("--mcmc-rows", type=int, default=1000, help="BayesML's MCMC is run on tables of at most that")
    parser.add_argument("--out", type=Path, help="results file whose sections 'exact' and 'exact-worth' are replaced")
    options = parser.parse_args()
    if options.data:
        parts = ["## Exact sums on real tables", numeric(options.data, 3), worth(options.data, options.mcmc_rows)]
        found = {"exact-worth": "\n\n".join(parts)}
    elif options.quick:
        parts = [beside_one_tree(QUICK, 1), predictions(QUICK, 1000, 1), growth(1, 4)]
        found = {"exact": "\n\n".join(["## Exact sums (quick run, not for quoting)", *parts])}
    else:
        parts = [beside_one_tree(SIZES, 3), predictions(SIZES, 100_000, 3), growth(3, 1)]
        found = {"exact": "\n\n".join(["## Exact sums", *parts])}
    for name, text in found.items():
        print(text)
        if options.out:
            markdown.write_section(options.out, name, text)


if __name__ == "__main__":
    main()
