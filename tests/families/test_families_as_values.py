"""A family is a value: equal, hashed, pickled and frozen."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import everytree as et
from cases import CASES, rng_for


def in_short(family: et.Family) -> str:
    return type(family).__name__ + ("" if family.has_one_prior else " per node")


VALUES = [case.family for case in CASES] + [
    et.Bernoulli([0.5, 1.0, 2.0], 0.5),
    et.Categorical(2, [[0.5], [1.0], [2.0]]),
    et.Normal([0.0, 1.0, 2.0]),
    et.LinearRegression(2, mean=[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]),
]


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_a_value(family):
    array = np.array  # as arrays are written in a repr
    written = eval(repr(family), {"array": array} | {name: getattr(et, name) for name in dir(et) if name[0].isupper()})
    for same in (written, pickle.loads(pickle.dumps(family))):
        assert same == family
        assert hash(same) == hash(family)
        assert repr(same) == repr(family)
        statistics = np.abs(rng_for("value", family).normal(size=(3, family.n_statistics)))
        np.testing.assert_array_equal(same.log_evidence(statistics), family.log_evidence(statistics))
        np.testing.assert_array_equal(same.summarise(statistics), family.summarise(statistics))
    assert family != "a family"
    assert [other == family for other in VALUES].count(True) == 1


def test_equal_families_have_equal_hashes():
    zero, minus_zero = et.Normal(0.0), et.Normal(-0.0)
    assert zero == minus_zero
    assert hash(zero) == hash(minus_zero)


DIFFERENT = [
    (et.Bernoulli(0.5, 0.7), et.Bernoulli(0.7, 0.5)),
    (et.Bernoulli(0.5, 0.5), et.Categorical(2, 0.5)),
    (et.Poisson(2.0, 1.0), et.Exponential(2.0, 1.0)),
    (et.Categorical(2, 0.5), et.Categorical(3, 0.5)),
    (et.LinearRegression(1), et.LinearRegression(2)),
    (et.Normal(0.0), et.Normal(1e-300)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_different_families_are_not_equal(one, other):
    assert one != other
    assert other != one


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_frozen(family):
    for name in [field.name for field in dataclasses.fields(family)]:
        with pytest.raises(FrozenInstanceError):
            setattr(family, name, 1.0)
        value = getattr(family, name)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_as_frozen_after_pickle(family):
    loaded = pickle.loads(pickle.dumps(family))
    public = [getattr(loaded, name) for name in family.__dataclass_fields__]
    assert not any(value.flags.writeable for value in public if isinstance(value, np.ndarray))


def test_a_family_keeps_its_own_copy_of_an_array():
    alpha = np.array([0.5, 1.0, 2.0])
    family = et.Bernoulli(alpha, 1.0)
    before = family.log_evidence(np.ones((3, 2)))
    alpha[:] = 9.0
    assert family.alpha.tolist() == [0.5, 1.0, 2.0]
    np.testing.assert_array_equal(family.log_evidence(np.ones((3, 2))), before)
