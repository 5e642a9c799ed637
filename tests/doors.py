"""The ways rows come into posteriors, and what all of them refuse."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import everytree as et
from cases import Case, rng_for, snapshot
from refusals import INF, NAN, refused, unchanged

PLACE = 2  # of the bad row among four good ones
GOOD_X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8)
GOOD_Y = np.array([0, 1, 1, 0])


def state(post: et.Posterior | et.GrowingPosterior) -> bytes:
    """Every bit of it."""
    return snapshot(post) if isinstance(post, et.Posterior) else pickle.dumps(post)


def complete(depth: int, shift: int = 0) -> et.MetaTree:
    """Level d asks column d + shift."""
    features = np.repeat((np.arange(depth) + shift) % depth, 2 ** np.arange(depth))
    return et.MetaTree.complete(features, n_features=depth)


@dataclass(frozen=True)
class Door:
    """One way rows come in, and posteriors that have seen some already."""

    name: str
    build: Callable[[et.Family, int], list[Any]]
    update: Callable[..., Any]
    has_n_jobs: bool = True

    def __str__(self) -> str:
        return self.name

    def seasoned(self, case: Case, depth: int = 2) -> list[Any]:
        """Posteriors over `depth` columns of two codes with rows in them."""
        rng = rng_for("seasoned", case, depth)
        X = rng.integers(0, 2, (50, depth)).astype(np.uint8)
        y, row_data = case.draw(rng, len(X))
        posts = self.build(case.family, depth)
        self.update(posts, X, y, rng.uniform(0.1, 2.0, len(y)), **row_data)
        return posts


DOORS = [
    Door(
        "Posterior.update",
        lambda family, depth: [et.Posterior(complete(depth), family, 0.6)],
        lambda posts, *rows, **options: posts[0].update(*rows, **options),
    ),
    Door(
        "GrowingPosterior.update",
        lambda family, depth: [et.GrowingPosterior([2] * depth, family, 0.6)],
        lambda posts, *rows, **options: posts[0].update(*rows, **options),
        has_n_jobs=False,
    ),
    Door(
        "update_all",
        lambda family, depth: [
            et.Posterior(complete(depth), family, 0.6),
            et.Posterior(complete(depth, shift=1), family, 0.4),
            et.Posterior(complete(depth), family, 0.2),
        ],
        lambda posts, *rows, **options: et.update_all(posts, *rows, **options),
    ),
]
doors = pytest.mark.parametrize("door", DOORS, ids=str)


def assert_refuses(door: Door, case: Case, words: list[str], X, y, weight=None, **row_data) -> None:
    """Nothing changes, and the posteriors still work."""
    posts = door.seasoned(case)
    before = [state(post) for post in posts]
    with unchanged(state, *posts):
        refused(lambda: door.update(posts, X, y, weight, **row_data), *words)
    good_y, good_data = case.draw(rng_for("after"), 4)
    door.update(posts, GOOD_X, good_y, **good_data)
    assert [state(post) for post in posts] != before


# ---- tables that no door takes ---------------------------------------------------------------------------------------


def with_code(value: Any, dtype: Any) -> np.ndarray:
    """Good codes but for row PLACE, column 1."""
    X = GOOD_X.astype(dtype)
    X[PLACE, 1] = value
    return X


AT = ["X", "column 1", f"row {PLACE}"]
BAD_X = {
    "None": (None, ["X"]),
    "a number": (5, ["X", "()"]),
    "a string": ("codes", ["X"]),
    "one row without a table": (GOOD_X[0], ["X", "(2,)"]),
    "three axes": (GOOD_X[None], ["X", "(1, 4, 2)"]),
    "an empty list": ([], ["X", "(0,)"]),
    "rows of different lengths": ([[0, 1], [0], [1, 0], [1, 1]], ["X"]),
    "too few columns": (GOOD_X[:, :1], ["X", "1", "2"]),
    "too many columns": (np.zeros((4, 3), dtype=np.uint8), ["X", "3", "2"]),
    "too few columns, list": (GOOD_X[:, :1].tolist(), ["X", "1", "2"]),
    "no columns": (np.zeros((4, 0), dtype=np.uint8), ["X", "0", "2"]),
    "code too large, uint8": (with_code(3, np.uint8), [*AT, "3", "0..1"]),
    "code too large, uint16": (with_code(300, np.uint16), [*AT, "300", "0..1"]),
    "code too large, uint64": (with_code(2**63, np.uint64), [*AT, str(2**63), "0..1"]),
    "code too large, int64": (with_code(3, np.int64), [*AT, "3", "0..1"]),
    "code much too large, int64": (with_code(2**40, np.int64), [*AT, str(2**40), "0..1"]),
    "code that is a good one modulo 256, int64": (with_code(256, np.int64), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, list": (with_code(256, np.int64).tolist(), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, float": (with_code(256, np.float64), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, uint16": (with_code(257, np.uint16), [*AT, "257", "0..1"]),
    "code that is a good one modulo 65536, int64": (with_code(65536, np.int64), [*AT, "65536", "0..1"]),
    "code that is a good one modulo 65536, list": (with_code(65537, np.int64).tolist(), [*AT, "65537", "0..1"]),
    "missing code without a branch, uint8": (with_code(255, np.uint8), [*AT, "255", "0..1"]),
    "missing code without a branch, uint16": (with_code(65535, np.uint16), [*AT, "65535", "0..1"]),
    "negative code, int8": (with_code(-1, np.int8), [*AT, "-1", "0..1"]),
    "negative code, int16": (with_code(-1, np.int16), [*AT, "-1", "0..1"]),
    "more negative code, int16": (with_code(-300, np.int16), [*AT, "-300", "0..1"]),
    "negative code, int32": (with_code(-1, np.int32), [*AT, "-1", "0..1"]),
    "negative code, int64": (with_code(-1, np.int64), [*AT, "-1", "0..1"]),
    "negative code, list": (with_code(-1, np.int64).tolist(), [*AT, "-1", "0..1"]),
    "negative code, float": (with_code(-1, np.float64), [*AT, "-1", "0..1"]),
    "a fraction": (with_code(0.5, np.float64), [*AT, "0.5"]),
    "a fraction, float32": (with_code(0.5, np.float32), [*AT, "0.5"]),
    "NaN": (with_code(NAN, np.float64), [*AT, "nan"]),
    "infinity": (with_code(INF, np.float64), [*AT, "inf"]),
    "too large for any whole number": (with_code(1e300, np.float64), [*AT, "1e+300"]),
    "sparse": (scipy.sparse.csr_matrix(GOOD_X), ["X", "sparse"]),
    "sparse array": (scipy.sparse.coo_array(GOOD_X), ["X", "sparse"]),
    "datetimes": (GOOD_X.astype("datetime64[s]"), ["X", "datetime64[s]"]),
    "time differences": (GOOD_X.astype("timedelta64[s]"), ["X", "timedelta64[s]"]),
    "complex": (GOOD_X.astype(complex), ["X", "complex128"]),
    "strings": (GOOD_X.astype(str).tolist(), ["X"]),
    "objects": (GOOD_X.astype(object), ["X", "object"]),
    "records": (np.zeros((4, 2), dtype=[("code", "u1")]), ["X"]),
}
