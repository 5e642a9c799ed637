"""One row a family: the family, its slow twin, and how to draw rows for it. Every law runs over this table."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import everytree as et
import naive_families
from random_shapes import random_shape

LONG = os.environ.get("EVERYTREE_LONG_TESTS") == "1"
"""Set by `make check-slow`: twenty times as many random examples."""


def examples(n: int) -> settings:
    """So many random examples of a law."""
    return settings(max_examples=20 * n if LONG else max(1, round(0.6 * n)), deadline=None, derandomize=not LONG)


Rows = tuple[NDArray[Any], dict[str, NDArray[Any]]]


@dataclass(frozen=True)
class Case:
    name: str
    family: et.Family
    twin: Any
    draw: Callable[[np.random.Generator, int], Rows]

    def __str__(self) -> str:
        return self.name


def _plain(
    draw: Callable[[np.random.Generator, int], NDArray[Any]],
) -> Callable[[np.random.Generator, int], Rows]:
    return lambda rng, n: (draw(rng, n), {})


def _linear(rng: np.random.Generator, n: int) -> Rows:
    inputs = np.column_stack([np.ones(n), rng.normal(size=n)])
    return inputs @ [1.0, 2.0] + rng.normal(size=n), {"inputs": inputs}


CELLS = ([-1.0, 0.0, 1.0, 1.5, 2.5], [0.5, 2.0, 3.0, 2.0, 2.0, 0.5], 1.5, (0.5, 1.0))
"""A histogram: its edges, and the shares, the strength and the tails of its prior."""

SHAPES = (1.5, 0.75, [0.5, 1.0, 3.0], [0.5, 0.25, 0.25])
"""A prior of families with a shape: mean, strength, and three shapes with their probabilities."""

CASES = [
    Case(
        "bernoulli", et.Bernoulli(0.5, 0.7), naive_families.Bernoulli(0.5, 0.7),
        _plain(lambda r, n: r.integers(0, 2, n)),
    ),
    Case(
        "categorical", et.Categorical(3, [0.5, 1.0, 0.25]), naive_families.Categorical(3, [0.5, 1.0, 0.25]),
        _plain(lambda r, n: r.integers(0, 3, n)),
    ),
    Case(
        "poisson", et.Poisson(2.0, 1.5), naive_families.Poisson(2.0, 1.5),
        lambda r, n: (r.poisson(2.0, n), {"exposure": r.uniform(0.1, 3.0, n)}),
    ),
    Case(
        "exponential", et.Exponential(3.0, 1.5), naive_families.Exponential(3.0, 1.5),
        lambda r, n: (r.exponential(2.0, n), {"censored": r.integers(0, 2, n)}),
    ),
    Case(
        "geometric", et.Geometric(3.0, 0.75), naive_families.Geometric(3.0, 0.75),
        _plain(lambda r, n: r.geometric(0.4, n) - 1),
    ),
    Case(
        "normal", et.Normal(0.5, 0.25, 2.0, 1.5), naive_families.Normal(0.5, 0.25, 2.0, 1.5),
        _plain(lambda r, n: r.normal(1.0, 2.0, n)),
    ),
    Case(
        "linear", et.LinearRegression(2, [[1.0, 0.25], [0.25, 0.5]], 2.0, 1.5, [0.5, -1.0]),
        naive_families.LinearRegression(2, [[1.0, 0.25], [0.25, 0.5]], 2.0, 1.5, [0.5, -1.0]), _linear,
    ),
    Case(
        "lognormal", et.LogNormal(0.5, 0.25, 0.7), naive_families.LogNormal(0.5, 0.25, 0.7),
        _plain(lambda r, n: np.exp(r.normal(0.3, 0.8, n))),
    ),
    Case(
        "survival", et.Survival([0.25, 0.5, 0.25, 1.0], 3.0, 0.25),
        naive_families.Survival([0.25, 0.5, 0.25, 1.0], 3.0, 0.25),
        lambda r, n: (
            r.uniform(0.0, 5.0, n), {"censored": r.integers(0, 2, n), "log_hazard": np.round(r.normal(0.0, 0.5, n), 3)}
        ),
    ),
    Case(
        "histogram", et.Histogram(*CELLS), naive_families.Histogram(*CELLS),
        _plain(lambda r, n: r.normal(0.5, 1.5, n)),
    ),
    Case(
        "negative_binomial", et.NegativeBinomial(*SHAPES), naive_families.NegativeBinomial(*SHAPES),
        lambda r, n: (r.negative_binomial(1.5, 0.4, n), {"exposure": r.uniform(0.1, 3.0, n)}),
    ),
    Case("gamma", et.Gamma(*SHAPES), naive_families.Gamma(*SHAPES), _plain(lambda r, n: r.gamma(2.0, 0.8, n))),
    Case(
        "weibull", et.Weibull(*SHAPES), naive_families.Weibull(*SHAPES),
        lambda r, n: (r.weibull(1.5, n), {"censored": r.integers(0, 2, n)}),
    ),
    Case(
        "hurdle_poisson", et.Hurdle(et.Poisson(2.0, 1.5), 3.0, 2.0),
        naive_families.Hurdle(naive_families.Poisson(2.0, 1.5), 3.0, 2.0, 1),
        _plain(lambda r, n: r.poisson(1.5, n)),
    ),
    Case(
        "hurdle_gamma", et.Hurdle(et.Gamma(*SHAPES), 3.0, 2.0),
        naive_families.Hurdle(naive_families.Gamma(*SHAPES), 3.0, 2.0, 0),
        _plain(lambda r, n: np.where(r.random(n) < 0.4, 0.0, r.gamma(2.0, 0.8, n))),
    ),
]  # fmt: skip

IN_FULL = [case for case in CASES if not getattr(case.family, "predicts_curves", False)]
"""Families whose leaves answer all questions about targets; positions in cells of a baseline only those of curves."""

CASE = {case.name: case for case in CASES}
families = pytest.mark.parametrize("case", CASES, ids=str)
in_full = pytest.mark.parametrize("case", IN_FULL, ids=str)
seeds = st.integers(0, 2**32 - 1)


def far_case(name: str, offset: float) -> Case:
    """Targets at the offset, under a prior that expects them there: what is left of the evidence is about their spread.

    Classes have no place on a line and stay as they are.
    """

    def linear(rng: np.random.Generator, n: int) -> Rows:
        y, row_data = _linear(rng, n)
        return offset + y, row_data

    def poisson(rng: np.random.Generator, n: int) -> Rows:
        exposure = rng.uniform(0.1, 3.0, n)
        return rng.poisson(offset * exposure), {"exposure": exposure}

    hyper: dict[str, tuple[Any, ...]] = {
        "poisson": (2.0, 2.0 / offset),
        "exponential": (3.0, 1.5 * offset),
        "geometric": (3.0, 0.75),
        "normal": (offset + 0.5, 0.25, 2.0, 1.5),
        "linear": (2, [[1.0, 0.25], [0.25, 0.5]], 2.0, 1.5, [offset, -1.0]),
    }
    draw: dict[str, Callable[[np.random.Generator, int], Rows]] = {
        "poisson": poisson,
        "exponential": lambda r, n: (offset + r.exponential(2.0, n), {"censored": r.integers(0, 2, n)}),
        "geometric": _plain(lambda r, n: int(offset) + r.geometric(0.4, n) - 1),
        "normal": _plain(lambda r, n: offset + r.normal(1.0, 2.0, n)),
        "linear": linear,
    }
    given = CASE[name]
    if name not in hyper:
        return given
    family, twin = type(given.family), type(given.twin)
    return Case(f"{name} at {offset:g}", family(*hyper[name]), twin(*hyper[name]), draw[name])


FAR_CASES = [far_case(name, 1e9) for name in ("bernoulli", "categorical")] + [
    far_case(name, offset)
    for name in ("poisson", "exponential", "geometric", "normal", "linear")
    for offset in (1e3, 1e6, 1e9)
]
"""Law 10: the same laws where doubles have few digits left for what matters."""

KINDS = ("multiway", "threshold", "mixed")


def rng_for(*what: object) -> np.random.Generator:
    """A generator whose seed is the name of what it is for."""
    return np.random.default_rng(zlib.crc32(" ".join(map(str, what)).encode()))


def random_tree(rng: np.random.Generator, max_depth: int = 3, **options: Any) -> et.MetaTree:
    sizes = rng.integers(2, 4, size=3).tolist()
    options.setdefault("kind", rng.choice(KINDS))
    options.setdefault("missing", bool(rng.integers(2)))
    return random_shape(sizes, max_depth, rng=rng, stop=0.2, **options)


def random_codes(rng: np.random.Generator, tree: et.MetaTree, n: int, sizes: int = 3) -> NDArray[np.uint8]:
    """Codes that this tree knows, the missing code among them where it has a branch for it."""
    columns = []
    for k in range(tree.n_features):
        limit = tree.n_codes[k] or sizes
        column = rng.integers(0, limit, n).astype(np.uint8)
        if tree.has_missing[k]:
            column[rng.random(n) < 0.2] = 255
        columns.append(column)
    return np.column_stack(columns) if columns else np.zeros((n, 0), dtype=np.uint8)


ARRAYS = ("split_prob", "leaf_log_evidence", "subtree_log_evidence", "statistics")


def collapse(family: et.Family, statistics: NDArray[Any]) -> NDArray[Any]:
    """Statistics with every (value, rest) pair replaced by its sum, so that they add as plain numbers."""
    amounts = getattr(family, "amounts", family)
    n_plain = {et.Normal: 0, et.Poisson: 0, et.LogNormal: 0, et.LinearRegression: 1}.get(
        type(amounts), statistics.shape[-1]
    )
    n_plain += 2 * (amounts is not family and n_plain < statistics.shape[-1])
    pairs = statistics[..., n_plain::2] + statistics[..., n_plain + 1 :: 2]
    return np.concatenate([statistics[..., :n_plain], pairs], axis=-1)


def assert_same(one: et.Posterior, other: et.Posterior, tolerance: float = 1e-10) -> None:
    """All arrays of two posteriors agree."""
    assert one.n_rows == other.n_rows
    for name in ARRAYS:
        values = [getattr(post, name) for post in (one, other)]
        if name == "statistics":
            values = [collapse(one.family, statistics) for statistics in values]
        np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance, err_msg=name)


def snapshot(post: et.Posterior) -> bytes:
    """Every bit of a posterior's state."""
    return b"".join(getattr(post, name).tobytes() for name in ARRAYS) + str(post.n_rows).encode()


def take(rows: dict[str, NDArray[Any]], index: Any) -> dict[str, NDArray[Any]]:
    return {name: values[index] for name, values in rows.items()}
