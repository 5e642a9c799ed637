"""Posteriors to draw."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import KINDS, random_codes, rng_for
from random_shapes import random_shape

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def fitted(case, kind="mixed", *, missing=True, max_depth=3, n_rows=200, split_prior=0.7):
    rng = rng_for("pictures", case, kind, missing, max_depth)
    tree = random_shape([3, 4, 2, 3], max_depth, rng=rng, kind=kind, missing=missing)
    X = random_codes(rng, tree, n_rows)
    y, rows = case.draw(rng, n_rows)
    return et.Posterior(tree, case.family, split_prior).update(X, y, **rows)


def one_row(case):
    """What the family has to know of a row to predict it."""
    return {"inputs": [1.0, 0.5]} if case.name == "linear" else {}


def small(family=None):
    """Two binary features; the root asks `x0`, and the rows say that it should."""
    post = et.Posterior(et.MetaTree.complete([0, 1, 1]), family or et.Bernoulli(1, 1), 0.5)
    return post.update(np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=np.uint8), [0, 0, 1, 1] * 3)


def one_node(family=None):
    return et.Posterior(et.MetaTree.complete([]), family or et.Bernoulli()).update(
        np.zeros((3, 0), np.uint8), [0, 1, 1]
    )
