"""What distributions of a regression forest cost: quantiles beside quantile-forest, densities, scores and intervals.

`python benchmarks/distributions.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. Everything
in one process; the peer takes part where it is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1

import everytree as et
import markdown
from markdown import number, section, table, times
from timing import medians, started

LEVELS = [0.05, 0.5, 0.95]
COLUMNS = 10


def peer(X: np.ndarray, y: np.ndarray) -> Any:
    """Fit quantile-forest on one thread, or return None where it is not installed."""
    if find_spec("quantile_forest") is None:
        return None
    return import_module("quantile_forest").RandomForestQuantileRegressor(random_state=0, n_jobs=1).fit(X, y)


def per_row(model: et.MetaForestRegressor, X: np.ndarray, y: np.ndarray, other: Any, repeats: int) -> str:
    """Microseconds a row on one thread and on two."""
    answers: dict[str, Callable[[Any], object]] = {
        f"quantiles {LEVELS}": lambda model: model.predict_quantiles(X, LEVELS),
        "interval": lambda model: model.predict_interval(X),
        "shortest interval": lambda model: model.predictive(X).interval(kind="hdi"),
        "log_prob": lambda model: model.predictive(X).log_prob(y),
        "cdf": lambda model: model.predictive(X).cdf(y),
        "crps": lambda model: model.predictive(X).crps(y),
    }
    rows = []
    for name, ask in answers.items():
        asked = {str(jobs): started(lambda jobs=jobs: model.set_params(n_jobs=jobs), ask) for jobs in (1, 2)}
        if other is not None and name.startswith("quantiles"):
            asked["peer"] = started(lambda: other, lambda other: other.predict(X, quantiles=LEVELS))
        ms = medians(asked, repeats)
        one, two, theirs = (1e3 * ms[key] / len(X) if key in ms else np.nan for key in ("1", "2", "peer"))
        beside = "" if np.isnan(theirs) else times(one, theirs)
        rows.append([name, number(one), number(two), times(one, two), "" if not beside else number(theirs), beside])
    head = [
        "answer",
        "one thread, us a row",
        "two threads",
        "one / two",
        "quantile-forest, one thread",
        "ours / theirs",
    ]
    return table(head, rows)


def cost(n_rows: int, n_asked: int, repeats: int) -> str:
    """Fit both forests at their defaults and ask them about new rows."""
    X, y = make_friedman1(n_rows + n_asked, COLUMNS, noise=1.0, random_state=0)
    model = et.MetaForestRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
    answers = per_row(model, X[n_rows:], y[n_rows:], peer(X[:n_rows], y[:n_rows]), repeats)
    return section(
        "Distributions of a forest",
        f"Forests of {len(model.forest_)} trees at their defaults, {n_rows:,} rows of {COLUMNS} columns, asked about "
        f"{n_asked:,} others; medians of {repeats} calls after a first one, which makes the tables. A row of ours is a "
        "mixture of all nodes on its paths, quantile-forest's of the training rows that share a leaf with it.",
        answers,
    )


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--out", type=Path, help="results file whose section 'distributions' is replaced")
    options = parser.parse_args()
    text = cost(500, 100, 2) if options.quick else cost(4_000, 2_000, 5)
    print(text)
    if options.out:
        markdown.write_section(options.out, "distributions", text)


if __name__ == "__main__":
    main()
