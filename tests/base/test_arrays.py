"""Numbers in smaller types come back to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from everytree.base.arrays import narrowest

EDGES = [0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62]
WHOLE = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]


def check(values: np.ndarray) -> None:
    """Back to the bit, by a conversion that never changes a number, and no type of half the size would do."""
    narrow = narrowest(values)
    assert np.can_cast(narrow.dtype, values.dtype)
    assert narrow.shape == values.shape
    assert narrow.astype(values.dtype).tobytes() == values.tobytes()
    if values.dtype.kind != "f":
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        ranges = [(np.iinfo(kind), np.dtype(kind)) for kind in WHOLE if np.can_cast(kind, values.dtype)]
        fitting = [kind.itemsize for limits, kind in ranges if limits.min <= low and high <= limits.max]
        assert narrow.itemsize == min(fitting)


@given(
    st.lists(
        st.one_of(st.floats(), st.sampled_from(EDGES).map(float), st.sampled_from([-0.0, -1.0, 0.5, np.float32(0.1)]))
    )
)
@examples(300)
def test_numbers_keep_every_bit(values):
    """Also the sign of zero."""
    check(np.array(values, dtype=np.float64))
    check(np.array(values, dtype=np.float64)[:, None, None])


@pytest.mark.parametrize("kind", WHOLE)
@given(data=st.data())
@examples(30)
def test_whole_numbers_keep_every_bit(kind, data):
    limits = np.iinfo(kind)
    near = [n for edge in EDGES for n in (edge, -edge, -edge - 1) if limits.min <= n <= limits.max]
    values = data.draw(st.lists(st.one_of(st.sampled_from(near), st.integers(int(limits.min), int(limits.max)))))
    check(np.array(values, dtype=kind))


def test_the_last_of_many_numbers_counts():
    for last in (256.0, 0.5, -1.0, 0.1, -0.0, np.nan):
        values = np.zeros(5000)
        values[-1] = last
        check(values)
        check(values[::-1])


def test_smaller_types():
    for values, kind in (
        ([0.0, 255.0], "u1"), ([-1.0, 127.0], "i1"), ([256.0], "u2"), ([-129.0], "i2"), ([65536.0], "u4"),
        ([-(2.0**31)], "i4"), ([0.5], "f4"), ([0.1], "f8"), ([-0.0], "f4"), ([np.inf], "f4"), ([2.0**33 + 1.0], "f8"),
        ([], "u1"),
    ):  # fmt: skip
        assert narrowest(np.array(values, dtype=np.float64)).dtype == kind
    assert narrowest(np.array([True])).dtype == bool
    assert narrowest(np.array([-1, 2**24 + 1])).dtype == "i4"
    assert narrowest(np.array([65535], dtype=np.uint16)).dtype == "u2"  # not -1 in one byte
