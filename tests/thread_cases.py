"""Posteriors of every kind, and rows for them, to be used by several threads and processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from random_shapes import random_shape


class Counts(et.Family):
    """Bernoulli(1/2, 1/2) in Python, which lets other threads in between its lines."""

    n_statistics = 2

    def statistics(self, y, weight):
        return np.stack([weight * (y == 0), weight * (y == 1)], axis=1)

    def log_evidence(self, statistics):
        return et.Bernoulli().log_evidence(statistics)

    def predictive(self, statistics):
        return et.Bernoulli().predictive(statistics)


SIZES = [2, 3, 2, 2, 3]


def tree(seed: int = 0) -> et.MetaTree:
    return random_shape(SIZES, 5, rng=seed)


BUILDERS: dict[str, Callable[[], Any]] = {
    "native": lambda: et.Posterior(tree(), et.Bernoulli(), 0.6),
    "Python": lambda: et.Posterior(tree(), Counts(), 0.6),
    "growing": lambda: et.GrowingPosterior(SIZES, et.Bernoulli(), 0.6),
}
builders = pytest.mark.parametrize("kind", BUILDERS)
fixed_builders = pytest.mark.parametrize("kind", ["native", "Python"])


def table(what: object, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("threads", what)
    X = np.column_stack([rng.integers(0, size, n_rows) for size in SIZES]).astype(np.uint8)
    return X, rng.integers(0, 2, n_rows)
