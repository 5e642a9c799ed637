"""Mixtures of Student's t: tails, quantiles and scores against SciPy, 40 digits and quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given

from cases import examples, rng_for, seeds
from everytree import _kernels
from everytree.families.student import StudentComponents
from everytree.predictive.mixture import Mixture
from forests import fates
from naive_forest import StudentMixture, student_tail

FREEDOMS = [0.3, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
LEVELS = np.array([1e-12, 1e-9, 1e-7, 1e-6, 2e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9])
MANY = 20
"""Units; tables are used from 16 on."""

few_and_many = pytest.mark.parametrize("n_copies", [1, MANY], ids=["few", "many"])


def flat(units: Sequence[StudentMixture]) -> dict[str, np.ndarray]:
    """Units as the kernels take them."""
    start = np.cumsum([0, *(len(unit.weight) for unit in units)]).astype(np.int64)
    names = ("weight", "freedom", "location", "scale")
    return {"start": start} | {name: np.concatenate([getattr(unit, name) for unit in units]) for name in names}


def alone(freedom: Any, location: float = 0.0, scale: float = 1.0) -> StudentMixture:
    return StudentMixture(np.ones(1), np.array([freedom]), np.array([location]), np.array([scale]))


def random_mixture(rng: np.random.Generator, spread: float = 6.0) -> StudentMixture:
    """Up to 40 parts with scales that differ by many orders of magnitude, or not at all."""
    n = int(rng.integers(1, 40))
    weight = rng.dirichlet(np.full(n, rng.choice([0.05, 1.0])))
    freedom = np.exp(rng.uniform(np.log(0.3), np.log(1e6), n))
    location = rng.normal(size=n) * 10 ** rng.uniform(-3, spread) + rng.choice([0.0, 0.0, 1e6])
    scale = 10 ** rng.uniform(-spread, spread, n) if rng.random() < 0.5 else np.full(n, 10 ** rng.uniform(-3, spread))
    return StudentMixture(weight, np.maximum(freedom, 2.0) if rng.random() < 0.5 else freedom, location, scale)


# ---- tails -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_tails_to_many_digits(freedom):
    """The smaller tail is exact relative to itself, to 1e-100 and beyond."""
    z = np.array([1e-12, 1e-6, 0.01, 0.3, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 1e2, 1e4, 1e8, 1e30])
    z = z[: 11 if freedom >= 1e3 else None]
    exact = np.array([float(student_tail(freedom, at)) for at in z])
    for location, scale in ((0.0, 1.0), (0.0, 1e-100), (0.0, 1e100), (3.0, 0.5)):
        y = location + scale * z
        seen = z if location == 0.0 else (y - location) / scale
        expected = exact if location == 0.0 else np.array([float(student_tail(freedom, at)) for at in seen])
        units = flat([alone(freedom, location, scale)] * len(z))
        above = _kernels.student_tails(**units, y=y, n_jobs=1)
        np.testing.assert_allclose(above[:, 1], expected, rtol=1e-10)
        np.testing.assert_allclose(above[:, 0], 1.0 - expected, rtol=1e-10)
        below = _kernels.student_tails(
            **units, y=location - scale * z if location == 0.0 else 2.0 * location - y, n_jobs=1
        )
        np.testing.assert_allclose(below[:, 0], expected, rtol=1e-9)


@given(seed=seeds)
@examples(30)
def test_tails_of_mixtures(seed):
    rng = np.random.default_rng(seed)
    units = [random_mixture(rng) for _ in range(int(rng.integers(1, 25)))]
    y = np.array([rng.normal() * 10 ** rng.uniform(-3, 8) + rng.choice(unit.location) for unit in units])
    tails = _kernels.student_tails(**flat(units), y=y, n_jobs=1)
    np.testing.assert_allclose(tails[:, 0], [unit.below(at) for unit, at in zip(units, y, strict=True)], rtol=1e-9)
    np.testing.assert_allclose(tails[:, 1], [unit.above(at) for unit, at in zip(units, y, strict=True)], rtol=1e-9)
    np.testing.assert_array_equal(_kernels.student_tails(**flat(units), y=y, n_jobs=2), tails)


def test_tails_at_infinity():
    tails = _kernels.student_tails(**flat([alone(3.0)] * 2), y=np.array([-np.inf, np.inf]), n_jobs=1)
    np.testing.assert_array_equal(tails, [[0.0, 1.0], [1.0, 0.0]])


# ---- quantiles -------------------------------------------------------------------------------------------------------


@few_and_many
@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_of_one_distribution(freedom, n_copies):
    """The tail beyond a quantile is what was asked for, to 1e-10 of the smaller one."""
    p = np.tile(LEVELS, n_copies)
    found = [
        _kernels.student_quantiles(**flat([alone(freedom)] * len(part)), p=part, n_jobs=1)[:, 0]
        for part in ([p] if n_copies > 1 else np.array_split(p, 2))
    ]
    for level, at in dict(zip(p, np.concatenate(found), strict=True)).items():
        tail = student_tail(freedom, abs(float(at)))
        target = mpmath.mpf(float(level)) if level <= 0.5 else 1 - mpmath.mpf(float(level))
        assert (at > 0.0) == (level > 0.5) or abs(at) < 1e-9
        assert abs(tail - target) < 1e-10 * target


def assert_quantile(unit: StudentMixture, p: float, at: float) -> None:
    """P(Y <= at) = p as nearly as neighbouring numbers allow."""
    tail, target = (unit.below, p) if p <= 0.5 else (unit.above, 1.0 - p)
    resolution = 4.0 * abs(tail(np.nextafter(at, np.inf)) - tail(np.nextafter(at, -np.inf)))
    assert abs(tail(at) - target) <= 1e-9 * target + resolution


@given(seed=seeds)
@examples(30)
def test_quantiles_of_mixtures(seed):
    rng = np.random.default_rng(seed)
    unit = random_mixture(rng)
    few = np.concatenate([_kernels.student_quantiles(**flat([unit]), p=np.array([p]), n_jobs=1)[:, 0] for p in LEVELS])
    many = _kernels.student_quantiles(**flat([unit] * (2 * len(LEVELS))), p=np.tile(LEVELS, 2), n_jobs=1)[:, 0]
    np.testing.assert_array_equal(many[: len(LEVELS)], many[len(LEVELS) :])
    for p, one, other in zip(LEVELS, few, many, strict=False):
        assert_quantile(unit, p, one)
        assert_quantile(unit, p, other)
    for quantiles in (few, many[: len(LEVELS)]):
        assert (np.diff(quantiles) >= -1e-12 * np.abs(quantiles[1:])).all()
    again = _kernels.student_quantiles(**flat([unit] * (2 * len(LEVELS))), p=np.tile(LEVELS, 2), n_jobs=2)[:, 0]
    np.testing.assert_array_equal(again, many)


@few_and_many
@pytest.mark.parametrize("gap", [10.0, 1e4, 1e12])
def test_quantiles_between_modes(gap, n_copies):
    """Where the density is next to nothing, left and right of the median and at it."""
    unit = StudentMixture(np.array([0.3, 0.3, 0.4]), np.full(3, 5.0), np.array([0.0, gap, 3.0 * gap]), np.full(3, 0.1))
    for p in (0.29, 0.3, 0.31, 0.5, 0.59, 0.6, 0.61, 1e-9, 1.0 - 1e-9):
        found = _kernels.student_quantiles(**flat([unit] * n_copies), p=np.full(n_copies, p), n_jobs=1)[:, 0]
        assert (found == found[0]).all()
        assert_quantile(unit, p, found[0])


@few_and_many
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_quantiles_of_extreme_scales(scale, n_copies):
    """A scale is a unit of measurement."""
    one = StudentMixture(np.array([0.5, 0.5]), np.array([3.0, 30.0]), np.array([0.0, 2.0]), np.array([1.0, 0.5]))
    other = StudentMixture(one.weight, one.freedom, one.location * scale, one.scale * scale)
    for p in (1e-9, 0.2, 0.5, 0.9, 1.0 - 1e-9):
        found = [
            _kernels.student_quantiles(**flat([unit] * n_copies), p=np.full(n_copies, p), n_jobs=1)[0, 0]
            for unit in (one, other)
        ]
        assert found[1] / scale == pytest.approx(found[0], rel=1e-10)


@pytest.mark.parametrize("location", [1e6, -1e12])
def test_quantiles_far_from_zero(location):
    unit = StudentMixture(np.array([0.4, 0.6]), np.array([3.0, 9.0]), location + np.array([0.0, 1.0]), np.ones(2))
    for p in LEVELS:
        assert_quantile(unit, p, _kernels.student_quantiles(**flat([unit]), p=np.array([p]), n_jobs=1)[0, 0])


# ---- many points of each, and scores ---------------------------------------------------------------------------------


def score(unit: StudentMixture, y: float, n_copies: int) -> float:
    """The library's own, of one unit among as many copies."""
    start, weight, freedom, location, scale = flat([unit] * n_copies).values()
    lengths = np.diff(start)

    def pick(some: np.ndarray) -> Mixture:
        entries = np.concatenate([np.arange(start[u], start[u + 1]) for u in some])
        components = StudentComponents(
            freedom[entries], (location[entries], np.zeros(len(entries))), scale[entries] ** 2, weight[entries]
        )
        starts = np.cumsum(lengths[some]) - lengths[some]
        return Mixture(components, np.log(weight[entries]), starts, False, lambda again: pick(some[again]))

    found = pick(np.arange(n_copies)).crps(np.full(n_copies, y))
    assert (found == found[0]).all()
    return float(found[0])


@few_and_many
@given(seed=seeds)
@examples(10)
def test_tails_at_many_points_of_each_mixture(seed, n_copies):
    """To 1e-10, or to as much of the smaller tail: where many parts have the same freedom, by tables."""
    rng = np.random.default_rng(seed)
    unit = random_mixture(rng)
    kernel = _kernels.StudentMixtures(**flat([unit] * n_copies))
    y = np.sort(np.concatenate([rng.choice(unit.location, 50) + rng.choice(unit.scale, 50) * rng.normal(size=50)]))
    which, is_above = np.sort(rng.integers(0, n_copies, 50)), rng.random(50) < 0.5
    expected = np.where(is_above, unit.above(y), unit.below(y))
    np.testing.assert_allclose(kernel.tails(which, y, is_above, 1), expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(kernel.tails(which, y, is_above, 2), kernel.tails(which, y, is_above, 1))


@few_and_many
@pytest.mark.parametrize("freedom", [0.4, 0.75, 0.999, 1.01, 1.5, 2.0, 2.3, 3.0, 4.9, 5.0, 10.0, 1e3, 1e6])
def test_distances_beside_those_of_an_origin(freedom, n_copies):
    """The closed form holds below one degree of freedom too: what is infinite is the same for all points."""
    unit = alone(freedom, 7.0, 0.01)
    kernel = _kernels.StudentMixtures(**flat([unit] * n_copies))
    for y in (7.0, 7.001, 6.9, 7.4, -30.0, 1e6):
        for origin in (7.0, 7.003, 6.9):
            found = kernel.extra_distances(np.full(n_copies, y), np.full(n_copies, origin), 1)
            exact = unit.mean_distance(y) - unit.mean_distance(origin)
            rounding = 1e-15 * unit.mean_distance(origin) + 1e-15 * abs(y)
            np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12 + 4.0 * rounding)


@few_and_many
def test_scores_of_mixtures(n_copies):
    """As of a forest: parts of one order of magnitude."""
    rng, n = rng_for("half spread"), 10
    for apart in (0.0, 0.1, 1.0, 3.0, 10.0):
        freedom, location = rng.uniform(2.2, 200.0, n), rng.normal(size=n) * apart
        unit = StudentMixture(rng.dirichlet(np.ones(n)), freedom, location, rng.uniform(0.5, 2.0, n))
        for y in (0.1, -3.0, 40.0):
            assert score(unit, y, n_copies) == pytest.approx(unit.crps(y), rel=1e-8)


@few_and_many
@pytest.mark.parametrize("apart", [1e2, 1e4, 1e6, 1e8])
def test_scores_of_modes_far_apart(apart, n_copies):
    for weight, location, scale in (
        ([0.5, 0.5], [0.0, apart], [1.0, 1.0]),
        ([0.9, 0.1], [0.0, apart], [1.0, 1.0]),
        ([1.0 - 1e-6, 1e-6], [0.0, apart], [1.0, 1.0]),
        ([0.3, 0.3, 0.4], [0.0, apart, -apart], [1.0, 0.01, 1.0]),
        ([0.5, 0.5], [0.0, 0.0], [1.0, apart]),
    ):
        unit = StudentMixture(np.array(weight), np.full(len(weight), 5.0), np.array(location), np.array(scale))
        for y in (0.3, 0.7 * apart, apart):
            assert score(unit, y, n_copies) == pytest.approx(unit.crps(y), rel=1e-8)


@few_and_many
@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9])
def test_scores_of_narrow_modes(scale, n_copies):
    """Nearly points: E|Y - y| - E|Y - Y'| / 2 of the points themselves, and a little of the order of the scale."""
    points, weight = np.array([0.0, 1.0, 1.5]), np.array([0.5, 0.3, 0.2])
    unit = StudentMixture(weight, np.full(3, 5.0), points, np.full(3, scale))
    half_spread = 0.5 * weight @ np.abs(points[:, None] - points) @ weight
    for y in (0.0, 0.3, 1.0 + 2.0 * scale, 7.0):
        found = score(unit, y, n_copies)
        assert found == pytest.approx(weight @ np.abs(points - y) - half_spread, abs=2.0 * scale)
        assert found == pytest.approx(unit.crps(y), rel=1e-8)


@given(seed=seeds)
@examples(8)
def test_scores_of_parts_of_very_different_scales(seed):
    rng = np.random.default_rng(seed)
    unit = random_mixture(rng, spread=4.0)
    weight = np.maximum(unit.weight, 1e-300)
    unit = StudentMixture(weight, np.maximum(unit.freedom, 1.2), unit.location, unit.scale)
    for y in (rng.choice(unit.location), unit.location.mean() + unit.scale.max() * rng.normal()):
        assert score(unit, y, 1) == pytest.approx(unit.crps(y), rel=1e-8)


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arrays",
    [
        {"start": []},
        {"start": [0, 1]},
        {"start": [0, 3]},
        {"start": [1, 2]},
        {"start": [0, 0, 2]},
        {"start": [0, 5, 2]},
        {"start": [0, -1, 2]},
        {"weight": [1.0]},
        {"freedom": [1.0]},
        {"location": [1.0]},
        {"scale": [1.0, 1.0, 1.0]},
        {"y": [1.0, 1.0]},
        {"y": []},
    ],
)
def test_kernels_refuse_arrays_that_do_not_fit(arrays):
    given_arrays = {
        "start": [0, 2], "weight": [0.5, 0.5], "freedom": [3.0, 3.0], "location": [0.0, 1.0], "scale": [1.0, 1.0],
        "y": [0.5],
    } | arrays  # fmt: skip
    columns = {
        name: np.array(values, dtype=np.int64 if name == "start" else float) for name, values in given_arrays.items()
    }
    y = columns.pop("y")
    with pytest.raises(ValueError, match=r"size|unit"):
        _kernels.student_tails(**columns, y=y, n_jobs=1)
    with pytest.raises(ValueError, match=r"size|unit"):
        _kernels.student_quantiles(**columns, p=y, n_jobs=1)
    if "y" not in arrays:
        with pytest.raises(ValueError, match=r"size|unit"):
            _kernels.StudentMixtures(**columns)


@pytest.mark.parametrize(
    "points", [([0], [1.0, 2.0], [True]), ([0], [1.0], [True, False]), ([1], [1.0], [True]), ([-1], [1.0], [True])]
)
def test_kernels_refuse_points_of_no_unit(points):
    kernel = _kernels.StudentMixtures(**flat([alone(3.0)]))
    unit, y, is_above = (np.array(column) for column in points)
    with pytest.raises(ValueError, match=r"size|unit"):
        kernel.tails(unit, y, is_above, 1)
    with pytest.raises(ValueError, match="size"):
        kernel.extra_distances(np.ones(2), np.ones(1), 1)


def test_no_units():
    nothing = np.empty(0)
    units = {"start": np.zeros(1, dtype=np.int64)} | dict.fromkeys(("weight", "freedom", "location", "scale"), nothing)
    assert _kernels.student_tails(**units, y=nothing, n_jobs=1).shape == (0, 2)
    assert _kernels.student_quantiles(**units, p=nothing, n_jobs=1).shape == (0, 1)
    kernel = _kernels.StudentMixtures(**units)
    assert kernel.extra_distances(nothing, nothing, 1).shape == (0,)


NO_DISTRIBUTION = [
    "quantiles(1, weight=0.0)",
    "quantiles(1, weight=nan)",
    "tails(1, weight=0.0)",
    "tails(20, location=nan)",
    "tails(20, location=inf)",
    "tails(20, scale=0.0)",
    "quantiles(20, scale=0.0)",
]


@pytest.fixture(scope="module")
def fate_of() -> dict[str, str]:
    prelude = """
import numpy as np; from numpy import nan, inf; from everytree import _kernels as k
def units(n, **other):
    values = dict(weight=1.0, freedom=3.0, location=0.0, scale=1.0) | other
    return dict(start=np.arange(n + 1)) | {name: np.full(n, value) for name, value in values.items()}
def quantiles(n, **other): k.student_quantiles(**units(n, **other), p=np.full(n, 0.3), n_jobs=1)
def tails(n, **other): k.StudentMixtures(**units(n, **other)).tails(np.arange(n), np.ones(n), np.ones(n, bool), 1)
"""
    return fates(prelude, NO_DISTRIBUTION)


@pytest.mark.parametrize("snippet", NO_DISTRIBUTION)
def test_kernels_survive_what_is_no_distribution(snippet, fate_of):
    assert fate_of[snippet] in ("refused", "accepted")
