"""Predictive distributions of every family, of numbers on a line and of whole ones."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import CASES, random_codes, random_tree

CONTINUOUS = [c for c in CASES if not c.family.has_classes and not c.family.support.is_whole]
DISCRETE = [c for c in CASES if c not in CONTINUOUS]
continuous = pytest.mark.parametrize("case", CONTINUOUS, ids=str)
discrete = pytest.mark.parametrize("case", DISCRETE, ids=str)
LEVELS = [1e-9, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 1 - 1e-4, 1 - 1e-9]


def predictive(case, seed, n_rows=6, n_seen=30):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = random_codes(rng, tree, n_seen)
    y, row_data = case.draw(rng, n_seen)
    post = et.Posterior(tree, case.family, 0.6).update(X, y, **row_data)
    new_y, new_data = case.draw(rng, n_rows)
    new_data.pop("censored", None)
    return post.predictive(random_codes(rng, tree, n_rows), **new_data), new_y.astype(float), rng
