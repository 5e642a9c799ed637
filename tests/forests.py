"""Forests for tests: random trees over the same columns, rows that some of them cannot place, and what goes with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import Case
from everytree.posterior.forest import Forest
from random_shapes import random_shape

SIZES = [2, 3, 5, 4]
"""Number of codes of each column."""

MISSING = {np.uint8: 255, np.uint16: 65535, np.int64: -1, np.int8: -1}
CLASSES = ("bernoulli", "categorical")
COUNTS = ("poisson", "geometric", "negative_binomial", "hurdle_poisson")
NOT_SHARPENED = (
    *COUNTS, "exponential", "lognormal", "gamma", "weibull", "hurdle_gamma",
)  # fmt: skip
"""Families that no forest takes with a sharpness other than 1."""

dtypes = pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64], ids=lambda dtype: dtype.__name__)


def sharpened(cases: Sequence[Case], sharpness: Sequence[float]) -> pytest.MarkDecorator:
    """Every case with every sharpness that a forest takes for it."""
    pairs = [(case, k) for k in sharpness for case in cases if k == 1.0 or case.name not in NOT_SHARPENED]
    slow = {"negative_binomial"}  # scores of its mixtures over shapes take minutes
    params = [
        pytest.param(case, k, id=f"{k}-{case}", marks=pytest.mark.slow if case.name in slow else ())
        for case, k in pairs
    ]
    return pytest.mark.parametrize(("case", "sharpness"), params)


def fates(prelude: str, snippets: Sequence[str]) -> dict[str, str]:
    """What becomes of each snippet in a process of its own: "refused" by an error, "accepted", or the end of it.

    One process takes one after another as long as it lives; the next one goes on after the snippet that ended it.
    """
    script = (
        "import sys\nprelude, *snippets = sys.argv[1:]\nnames = {}\nexec(prelude, names)\n"
        "for snippet in snippets:\n    try:\n        exec(snippet, names)\n        print('accepted', flush=True)\n"
        "    except (ValueError, TypeError):\n        print('refused', flush=True)\n"
    )
    found: list[str] = []
    while len(found) < len(snippets):
        command = [sys.executable, "-c", script, prelude, *snippets[len(found) :]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        found += done.stdout.split()
        if done.returncode != 0:
            found.append(f"ended with {done.returncode}: {done.stderr[-300:]}")
    return dict(zip(snippets, found, strict=True))


def with_some_missing_branches(tree: et.MetaTree, rng: np.random.Generator) -> et.MetaTree:
    """A branch for missing values at every node that asks certain columns; those are only asked by thresholds."""
    by_threshold = np.setdiff1d(tree.feature[tree.threshold >= 0], tree.feature[(tree.threshold < 0)])
    chosen = by_threshold[rng.random(len(by_threshold)) < 0.5]
    has = np.isin(tree.feature, chosen)
    branch = np.where(has, rng.integers(0, 2, tree.n_nodes), -1)
    return et.MetaTree.from_arrays(
        tree.feature, tree.first_child, tree.n_children, tree.threshold, missing_child=branch, n_features=len(SIZES)
    )


def random_trees(rng: np.random.Generator, n_trees: int = 4, max_depth: int = 3) -> list[et.MetaTree]:
    """Multiway, threshold and mixed; branches for missing values everywhere, here and there or nowhere; one node."""
    trees = [et.MetaTree.complete([], n_features=len(SIZES))]
    for _ in range(n_trees - 1):
        kind, missing = rng.choice(["multiway", "threshold", "mixed"]), rng.choice(["all", "some", "none"])
        tree = random_shape(SIZES, max_depth, rng=rng, stop=0.1, kind=kind, missing=missing == "all")
        trees.append(with_some_missing_branches(tree, rng) if missing == "some" else tree)
    return [trees[i] for i in rng.permutation(n_trees)]


def random_codes(
    rng: np.random.Generator, n: int, dtype: Any = np.uint8, unknown: float = 0.0, missing: float = 0.0
) -> np.ndarray:
    """Known codes, with some that are unknown or missing."""
    codes = np.column_stack([rng.integers(0, size, n) for size in SIZES])
    is_unknown = rng.random(codes.shape) < unknown
    codes[is_unknown] = (np.array(SIZES) + rng.integers(0, 4, codes.shape))[is_unknown]
    codes[rng.random(codes.shape) < missing] = MISSING[dtype]
    return codes.astype(dtype)


def random_split_prior(rng: np.random.Generator, tree: et.MetaTree) -> Any:
    if rng.random() < 0.5:
        return float(rng.uniform(0.1, 0.9))
    return np.where(tree.is_terminal, 0.0, rng.uniform(0.05, 0.95, tree.n_nodes))


def random_forest(
    case: Case, rng: np.random.Generator, n: int = 60, sharpness: float = 1.0, n_trees: int = 4
) -> Forest:
    """A forest with rows in it, and a tree of weight zero."""
    posteriors = [et.Posterior(tree, case.family, random_split_prior(rng, tree)) for tree in random_trees(rng, n_trees)]
    weights = rng.dirichlet(np.ones(n_trees))
    weights[-1] = 0.0
    forest = Forest(posteriors, weights=weights / weights.sum(), sharpness=sharpness, n_codes=SIZES)
    y, row_data = case.draw(rng, n)
    return forest.update(random_codes(rng, n), y, **row_data)


def new_rows(case: Case, rng: np.random.Generator, n: int = 25, dtype: Any = np.uint8) -> Any:
    """Codes some of which a tree may not know, and targets."""
    return random_codes(rng, n, dtype, 0.1, 0.1), *case.draw(rng, n)


class Counts(et.Family):
    """Bernoulli(alpha, alpha) in Python."""

    n_statistics = 2

    def __init__(self, alpha: float = 0.5) -> None:
        self.alpha = alpha

    def statistics(self, y, weight):
        if not np.isin(y, [0, 1]).all():
            raise ValueError("y must be 0 or 1")
        return np.stack([weight * (y == 0), weight * (y == 1)], axis=1)

    def log_evidence(self, statistics):
        return et.Bernoulli(self.alpha, self.alpha).log_evidence(statistics)

    def predictive(self, statistics):
        return et.Bernoulli(self.alpha, self.alpha).predictive(statistics)
