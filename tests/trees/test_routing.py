"""Rows find their terminal, whatever their codes are held in and however many threads there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive
from cases import KINDS, examples, random_codes, random_tree, rng_for, seeds
from random_shapes import random_shape
from tree_cases import split_of


@pytest.mark.parametrize(
    ("options", "codes", "children"),
    [
        ({"n_children": 2}, [0, 1], [0, 1]),
        ({"n_children": 3, "missing_child": 2}, [0, 1, -1], [0, 1, 2]),
        ({"n_children": 2, "threshold": 3}, [0, 3, 4, 65534], [0, 0, 1, 1]),
        ({"n_children": 2, "threshold": 0, "missing_child": 0}, [0, 1, -1], [0, 1, 0]),
        ({"n_children": 2, "threshold": 0, "missing_child": 1}, [0, 1, -1], [0, 1, 1]),
        ({"n_children": 3, "threshold": 65534, "missing_child": 2}, [0, 65534, -1], [0, 0, 2]),
        ({"n_children": 65534}, [0, 65533], [0, 65533]),
        ({"n_children": 1}, [0], [0]),
    ],
)
def test_every_kind_of_split_sends_codes_where_the_contract_says(options, codes, children):
    tree = split_of(options.pop("n_children"), **options)
    assert (tree.route(np.array(codes)[:, None]) - 1).tolist() == children


def strided(X):
    """The same table inside a larger one, every third row and every second column."""
    larger = np.full((3 * X.shape[0] + 1, 2 * X.shape[1] + 1), X.dtype.type(1), dtype=X.dtype)
    larger[1::3, 1::2] = X
    return larger[1::3, 1::2]


def unaligned(X):
    """The same table one byte off."""
    raw = np.empty(X.nbytes + 1, dtype=np.uint8)
    table = raw[1:].view(X.dtype).reshape(X.shape)
    table[...] = X
    return table


def read_only(X):
    table = X.copy()
    table.flags.writeable = False
    return table


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": unaligned,
    "read-only": read_only,
    "memoryview": lambda X: memoryview(np.ascontiguousarray(X)),
}
TYPES = (np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64)


def codes_of_type(rng: np.random.Generator, tree: et.MetaTree, n_rows: int, dtype: type) -> np.ndarray:
    """Codes that this tree knows, missing ones written as the type writes them, where it can."""
    narrow = random_codes(rng, tree, n_rows)
    codes = narrow.astype(dtype)
    missing = narrow == 255
    if np.dtype(dtype).kind != "u":
        codes[missing] = -1
    elif dtype in (np.uint8, np.uint16):
        codes[missing] = np.iinfo(dtype).max
    else:
        codes[missing] = 0
    return codes


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@given(seed=seeds, n_rows=st.integers(0, 40))
@examples(6)
def test_routing_follows_the_naive_path(dtype, layout, seed, n_rows):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = codes_of_type(rng, tree, n_rows, dtype)
    ends = tree.route(LAYOUTS[layout](X))
    assert ends.dtype == np.int32
    assert ends.tolist() == [naive.path(tree, row)[-1] for row in X]


@given(seed=seeds)
@examples(15)
def test_routing_reads_lists_and_bools(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = codes_of_type(rng, tree, 20, np.int64)
    assert tree.route(X.tolist()).tolist() == [naive.path(tree, row)[-1] for row in X]
    assert tree.route([tuple(row) for row in X]).tolist() == [naive.path(tree, row)[-1] for row in X]
    binary = random_shape([2, 2, 2], 3, rng=rng, kind=rng.choice(KINDS))
    X = rng.integers(0, 2, (20, 3)).astype(bool)
    assert binary.route(X).tolist() == [naive.path(binary, row)[-1] for row in X.astype(int)]
    assert binary.route(X.tolist()).tolist() == binary.route(X).tolist()


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("kind", ["u2", "i2", "i4", "i8", "f8"])
def test_routing_reads_both_byte_orders(kind, byte_order):
    tree = split_of(3, threshold=300, missing_child=2)
    missing = 65535 if kind[0] == "u" else -1
    X = np.array([[0], [300], [301], [missing]], dtype=byte_order + kind)
    assert (tree.route(X) - 1).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_routing_knows_more_codes_than_a_byte_holds(kind):
    rng = rng_for("many codes", kind)
    sizes = [700, 3, 300]
    tree = random_shape(sizes, 2, rng=rng, kind=kind, missing=True)
    for dtype in (np.uint16, np.int16, np.int64):
        X = np.column_stack([rng.integers(0, size, 60) for size in sizes]).astype(dtype)
        X[(rng.random(X.shape) < 0.1) & tree.has_missing] = 65535 if dtype is np.uint16 else -1
        assert tree.route(X).tolist() == [naive.path(tree, row)[-1] for row in X]


def test_the_missing_code_is_an_ordinary_one_where_there_is_no_branch_for_it():
    tree = split_of(2, threshold=10)
    assert tree.route(np.array([[255]], dtype=np.uint8)).tolist() == [2]
    assert tree.route(np.array([[255]], dtype=np.int64)).tolist() == [2]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_routing_does_not_depend_on_n_jobs(kind, dtype):
    rng = rng_for("route", kind, dtype)
    tree = random_shape([3, 2, 4, 2], 4, rng=rng, kind=kind)
    X = random_codes(rng, tree, 30_001, sizes=2).astype(dtype)
    one = tree.route(X)
    assert one[-200:].tolist() == [naive.path(tree, row)[-1] for row in X[-200:]]
    for n_jobs in (1, 2, 3, 7, -1, -2):
        np.testing.assert_array_equal(tree.route(X, n_jobs=n_jobs), one)


def test_a_tree_of_undeclared_width_reads_wider_tables_and_ignores_the_rest():
    tree = et.MetaTree.complete([0, 1, 1])
    X = rng_for("wider").integers(0, 2, (30, 2))
    ends = tree.route(X).tolist()
    for dtype in (np.uint8, np.uint16, np.int64, np.float64):
        wider = np.column_stack([X, np.full((30, 2), 99)]).astype(dtype)
        assert tree.route(wider).tolist() == ends
        assert tree.route(np.asfortranarray(wider)).tolist() == ends
    with pytest.raises(ValueError, match="columns"):
        et.MetaTree.complete([0, 1, 1], n_features=2).route(np.column_stack([X, X]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int64, list, float])
def test_a_column_that_is_never_asked_may_hold_the_missing_code(dtype):
    tree = et.MetaTree.complete([0, 2, 2], n_features=3)  # column 1 is there, but no node asks it
    X = np.array([[0, -1, 1], [1, 0, 0]])
    if dtype in (np.uint8, np.uint16):
        X[0, 1] = np.iinfo(dtype).max
    assert tree.route(X.tolist() if dtype is list else X.astype(dtype)).tolist() == [4, 5]


@pytest.mark.parametrize("rest", [-5, 70_000], ids=str)
@pytest.mark.parametrize("as_input", [np.asarray, np.ndarray.tolist, lambda X: X.astype(float)])
def test_what_lies_beyond_the_width_of_a_tree_may_be_anything(as_input, rest):
    X = np.array([[0, 1, rest], [1, 0, rest]])
    assert et.MetaTree.complete([0, 1, 1]).route(as_input(X)).tolist() == [4, 5]
