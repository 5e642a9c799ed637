"""The shape: constructors, invariants, routing, identity, and the pruned trees a meta-tree stands for."""

from __future__ import annotations

import copy
import pickle
from itertools import chain as concatenate
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive
import naive_families
from cases import KINDS, assert_same, examples, random_codes, random_tree, rng_for, seeds

NAMES = ("feature", "first_child", "n_children", "threshold", "missing_child")
DERIVED = ("parent", "depth", "is_terminal", "n_codes", "has_missing")


def small_tree() -> et.MetaTree:
    """Root and left child ask, five nodes."""
    return et.MetaTree.from_arrays([0, 1, -1, -1, -1], [1, 3, -1, -1, -1], [2, 2, 0, 0, 0])


def split_of(n_children: int, **first_entry: int) -> et.MetaTree:
    """A root with terminals below it; `threshold` and `missing_child` are the root's."""
    rest = [-1] * n_children
    arrays = {name: [value, *rest] for name, value in first_entry.items()}
    return et.MetaTree.from_arrays([0, *rest], [1, *rest], [n_children, *[0] * n_children], **arrays)


def chain_tree(turns: list[int], feature: list[int], threshold: list[int] | None = None) -> et.MetaTree:
    """Two children a level, of which child `turns[d]` goes on."""
    depth, n_nodes = len(turns), 2 * len(turns) + 1
    inner = [0] + [2 * d - 1 + turns[d - 1] for d in range(1, depth)]
    arrays = {name: np.full(n_nodes, -1) for name in ("feature", "first_child", "threshold")}
    arrays["feature"][inner] = feature
    arrays["first_child"][inner] = 2 * np.arange(depth) + 1
    arrays["threshold"][inner] = -1 if threshold is None else threshold
    arrays["n_children"] = np.where(arrays["feature"] >= 0, 2, 0)
    return et.MetaTree.from_arrays(**arrays, n_features=max(feature) + 1)


# ---- complete ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "n_children", "counts"),
    [
        ([], 2, [1]),
        ([0], 2, [1, 2]),
        ([0, 1, 2], 2, [1, 2, 4]),
        ([2, 0, 0, 0], 3, [1, 3, 9]),
        ([1, 0, 0, 0], [2, 3], [1, 3, 6]),
        ([0, 1, 1, 0, 0, 0, 2, 2, 2], [2, 3, 4], [1, 2, 6, 18]),
        ([0, 1, 2, 0], 1, [1, 1, 1, 1, 1]),
        (np.array([0, 1, 1], dtype=np.uint8), np.array([2, 2]), [1, 2, 4]),
    ],
)
def test_a_complete_tree_has_full_levels(features, n_children, counts):
    tree = et.MetaTree.complete(features, n_children)
    assert np.bincount(tree.depth).tolist() == counts
    assert tree.depth[tree.is_terminal].tolist() == [len(counts) - 1] * counts[-1]
    assert tree.feature[~tree.is_terminal].tolist() == list(features)
    assert tree.n_terminals == counts[-1]
    if np.ndim(n_children):
        assert tree.n_children[~tree.is_terminal].tolist() == [n_children[k] for k in features]
        assert tree.n_features == len(n_children)


def test_a_tree_of_one_node_reads_any_table():
    tree = et.MetaTree.complete([])
    assert (tree.n_nodes, tree.n_features, tree.n_terminals, tree.depth.tolist()) == (1, 0, 1, [0])
    for width in (0, 1, 5):
        assert tree.route(np.full((3, width), 200, dtype=np.uint8)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0, 1],), {}, ["features", "2"]),
        (([0, 1, 1, 1],), {}, ["features", "4"]),
        (([1, 0, 0],), {"n_children": [2, 3]}, ["features", "3"]),
        (([0, 1, 2],), {"n_features": 2}, ["features[2]", "2", "0..1"]),
        (([0, 1, 2],), {"n_children": [2, 2]}, ["features[2]", "2", "0..1"]),
        (([0, -1, 1],), {}, ["features[1]", "-1"]),
        (([0],), {"n_children": 0}, ["n_children", "0"]),
        (([0],), {"n_children": -2}, ["n_children", "-2"]),
        (([0],), {"n_children": [2, 2], "n_features": 3}, ["n_children", "2", "3"]),
        (([0],), {"n_children": 70_000}, ["n_children", "70000"]),
        (([0],), {"n_children": [2**32 + 2]}, ["n_children", str(2**32 + 2)]),
        (([0],), {"n_children": 2.5}, ["n_children", "2.5"]),
        (([0],), {"n_children": "2"}, ["n_children", "2"]),
        (([0],), {"n_children": None}, ["n_children", "None"]),
        (([0.5],), {}, ["features", "0.5"]),
        (([[0]],), {}, ["features"]),
        (([2**32],), {}, ["features", str(2**32)]),
        (([],), {"n_features": -1}, ["n_features", "-1"]),
        (([0],), {"n_features": 1.5}, ["n_features", "1.5"]),
        (([0],), {"n_features": "2"}, ["n_features", "2"]),
    ],
    ids=str,
)
def test_complete_refuses(arguments, options, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        et.MetaTree.complete(*arguments, **options)
    assert all(word in str(caught.value) for word in words), caught.value


# ---- from_arrays -------------------------------------------------------------------------------------------------

FIVE = {"feature": [0, 1, -1, -1, -1], "first_child": [1, 3, -1, -1, -1], "n_children": [2, 2, 0, 0, 0]}
SEVEN = {
    "feature": [0, 1, 1, -1, -1, -1, -1],
    "first_child": [1, 3, 5, -1, -1, -1, -1],
    "n_children": [2, 2, 2, 0, 0, 0, 0],
}
EIGHT = {
    "feature": [0, 1, 1, -1, -1, -1, -1, -1],
    "first_child": [1, 3, 5, -1, -1, -1, -1, -1],
    "n_children": [2, 2, 3, 0, 0, 0, 0, 0],
}


def none_but(n_nodes: int, **at: int) -> list[int]:
    """-1 everywhere but at the given nodes, written n0, n1, ..."""
    values = [-1] * n_nodes
    for node, value in at.items():
        values[int(node[1:])] = value
    return values


BROKEN = {
    "child is the root": (FIVE | {"first_child": [1, 0, -1, -1, -1]}, 1, "ancestor"),
    "child is the node itself": (FIVE | {"first_child": [1, 1, -1, -1, -1]}, 1, "ancestor"),
    "root is its own child": (FIVE | {"first_child": [0, 3, -1, -1, -1]}, 0, "ancestor"),
    "child beyond the arrays": (FIVE | {"first_child": [1, 4, -1, -1, -1]}, 1, "0..4"),
    "child far beyond the arrays": (FIVE | {"first_child": [1, 2**31 - 1, -1, -1, -1]}, 1, "0..4"),
    "child below zero": (FIVE | {"first_child": [1, -1, -1, -1, -1]}, 1, "0..4"),
    "child before its parent": (
        {
            "feature": [0, -1, -1, 1, -1, -1],
            "first_child": [1, -1, -1, 1, -1, -1],
            "n_children": [3, 0, 0, 2, 0, 0],
        },
        3,
        "before",
    ),
    "two parents": (SEVEN | {"first_child": [1, 3, 3, -1, -1, -1, -1]}, 2, "first_child"),
    "children out of order": (SEVEN | {"first_child": [1, 5, 3, -1, -1, -1, -1]}, 1, "level order"),
    "nobody's child at the end": ({name: [*values, values[-1]] for name, values in FIVE.items()}, 5, "nobody"),
    "nobody's child at the start": (FIVE | {"first_child": [2, 3, -1, -1, -1]}, 0, "first_child"),
    "children of a terminal": (FIVE | {"first_child": [1, 3, -1, -1, 2]}, 4, "first_child"),
    "negative number of children": (FIVE | {"n_children": [2, 2, 0, -1, 0]}, 3, "n_children"),
    "no feature": (FIVE | {"feature": [0, -1, -1, -1, -1]}, 1, "feature"),
    "feature beyond n_features": (FIVE | {"n_features": 1}, 1, "0..0"),
    "feature at a terminal": (FIVE | {"feature": [0, 1, -1, 2, -1]}, 3, "feature"),
    "binary split with three children": (EIGHT | {"threshold": none_but(8, n1=0, n2=0)}, 2, "binary"),
    "binary split with one child": (
        {
            "feature": [0, 1, -1, -1],
            "first_child": [1, 3, -1, -1],
            "n_children": [2, 1, 0, 0],
            "threshold": [0, 0, -1, -1],
        },
        1,
        "binary",
    ),
    "threshold too large": (FIVE | {"threshold": none_but(5, n1=65535)}, 1, "65535"),
    "threshold too small": (FIVE | {"threshold": none_but(5, n1=-2)}, 1, "-2"),
    "threshold at a terminal": (FIVE | {"threshold": none_but(5, n4=0)}, 4, "threshold"),
    "missing_child at a terminal": (FIVE | {"missing_child": none_but(5, n2=0)}, 2, "missing_child"),
    "missing_child below -1": (FIVE | {"missing_child": none_but(5, n1=-2)}, 1, "-2"),
    "missing_child of a multiway split not the last": (
        EIGHT | {"missing_child": none_but(8, n2=1)},
        2,
        "missing_child",
    ),
    "missing_child of a multiway split beyond the last": (
        EIGHT | {"missing_child": none_but(8, n2=3)},
        2,
        "missing_child",
    ),
    "third missing_child without a third child": (
        FIVE | {"threshold": none_but(5, n1=0), "missing_child": none_but(5, n1=2)},
        1,
        "binary",
    ),
    "missing_child of a binary split beyond the last": (
        FIVE | {"threshold": none_but(5, n1=0), "missing_child": none_but(5, n1=3)},
        1,
        "missing_child",
    ),
    "multiway split with no branch but the missing one": (
        {"feature": [0, -1], "first_child": [1, -1], "n_children": [1, 0], "missing_child": [0, -1]},
        0,
        "missing_child",
    ),
    "nodes disagree about the codes of a feature": (EIGHT, 2, "feature 1"),
    "nodes disagree about the missing branch of a feature": (
        EIGHT | {"missing_child": none_but(8, n2=2)},
        2,
        "feature 1",
    ),
    "too many children": (
        {
            "feature": none_but(65536, n0=0),
            "first_child": none_but(65536, n0=1),
            "n_children": [65535] + [0] * 65535,
        },
        0,
        "65535",
    ),
}


@pytest.mark.parametrize(("arrays", "node", "word"), BROKEN.values(), ids=BROKEN)
def test_a_broken_invariant_is_named_with_its_node(arrays, node, word):
    with pytest.raises(ValueError, match=rf"\bnode {node}\b") as caught:
        et.MetaTree.from_arrays(**arrays)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        (FIVE | {"feature": []}, "feature"),
        (FIVE | {"first_child": [1, 3]}, "first_child"),
        (FIVE | {"n_children": [2, 2, 0, 0, 0, 0]}, "n_children"),
        (FIVE | {"threshold": [-1]}, "threshold"),
        (FIVE | {"missing_child": [-1]}, "missing_child"),
        (FIVE | {"feature": [0.5, 1, -1, -1, -1]}, "feature"),
        (FIVE | {"first_child": [[1, 3, -1, -1, -1]]}, "first_child"),
        (FIVE | {"n_children": ["2", "2", "0", "0", "0"]}, "n_children"),
        (FIVE | {"feature": [2**32, 1, -1, -1, -1]}, "feature"),
        (FIVE | {"first_child": [2**32 + 1, 3, -1, -1, -1]}, "first_child"),
        (FIVE | {"n_children": [2**32 + 2, 2, 0, 0, 0]}, "n_children"),
        (FIVE | {"threshold": [2**32, -1, -1, -1, -1]}, "threshold"),
        (FIVE | {"n_features": -1}, "n_features"),
        (FIVE | {"n_features": 2.5}, "n_features"),
    ],
)
def test_arrays_that_are_no_arrays_of_nodes_are_named(arrays, word):
    with pytest.raises((ValueError, TypeError), match=word):
        et.MetaTree.from_arrays(**arrays)


def test_the_bare_constructor_says_what_to_use():
    with pytest.raises(TypeError, match="from_arrays"):
        et.MetaTree([0], [1], [2])


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


# ---- random ------------------------------------------------------------------------------------------------------


def assert_asks_nothing_twice(tree: et.MetaTree, sizes: list[int]) -> None:
    """Every answer of every question is possible, given the answers above."""
    allowed = {0: [set(range(size)) for size in sizes]}
    for s in np.flatnonzero(~tree.is_terminal):
        k, t = tree.feature[s], tree.threshold[s]
        for offset, child in enumerate(naive.children(tree, s)):
            if t >= 0 and offset < 2:
                answer = {c for c in allowed[s][k] if (c > t) == offset}
            elif t < 0 and offset != tree.missing_child[s]:
                answer = {offset} & allowed[s][k]
            else:
                answer = {-1}
            assert answer, f"node {s}: nothing goes to child {offset}"
            allowed[child] = [answer if j == k else left for j, left in enumerate(allowed[s])]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, max_depth=st.integers(0, 4), stop=st.sampled_from([0.0, 0.3, 1.0]))
@examples(15)
def test_a_random_tree_keeps_its_promises(kind, missing, seed, max_depth, stop):
    sizes = np.random.default_rng(seed).integers(1, 5, size=3).tolist()
    options = {"stop": stop, "kind": kind, "missing": missing}
    tree = et.MetaTree.random(sizes, max_depth, rng=seed, **options)
    assert tree == et.MetaTree.random(sizes, max_depth, rng=np.random.default_rng(seed), **options)
    assert tree.depth.max() <= max_depth
    assert tree.n_features == len(sizes)
    inner = ~tree.is_terminal
    if kind == "multiway":
        assert (tree.threshold == -1).all()
    if kind == "threshold":
        assert (tree.threshold[inner] >= 0).all()
    assert ((tree.missing_child[inner] >= 0) == missing).all()
    assert_asks_nothing_twice(tree, sizes)
    if stop == 1.0:
        assert tree.n_nodes == 1


def test_other_seeds_give_other_trees():
    assert len({et.MetaTree.random([3, 3, 3], 3, rng=seed, stop=0.3) for seed in range(20)}) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_without_stopping_a_random_tree_goes_on_while_there_is_something_to_ask(kind):
    tree = et.MetaTree.random([2, 2, 2], 5, rng=rng_for("go on", kind), kind=kind)
    assert (tree.depth[tree.is_terminal] == 3).all()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"kind": "binary"}, "kind"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 1.5}, "max_depth"),
        ({"stop": -0.1}, "stop"),
        ({"stop": 1.1}, "stop"),
        ({"stop": float("nan")}, "stop"),
        ({"n_children": [2, 0]}, "n_children"),
        ({"n_children": [2, -3]}, "n_children"),
        ({"n_children": [2.5]}, "n_children"),
    ],
    ids=str,
)
def test_random_refuses(options, word):
    with pytest.raises((ValueError, TypeError), match=word):
        et.MetaTree.random(**({"n_children": [2, 2, 2, 2], "max_depth": 3, "rng": 0} | options))


# ---- what follows from the arrays --------------------------------------------------------------------------------


@given(seed=seeds)
@examples(40)
def test_level_order_parent_and_depth_agree(seed):
    tree = random_tree(np.random.default_rng(seed), max_depth=4)
    assert tree.parent[0] == -1
    assert tree.depth[0] == 0
    assert (np.diff(tree.depth) >= 0).all()
    family = list(concatenate.from_iterable(naive.children(tree, s) for s in range(tree.n_nodes)))
    assert family == list(range(1, tree.n_nodes))  # level order: everybody's children, one after another
    for s in range(tree.n_nodes):
        assert tree.is_terminal[s] == naive.is_terminal(tree, s)
        for child in naive.children(tree, s):
            assert (tree.parent[child], tree.depth[child]) == (s, tree.depth[s] + 1)
    assert tree.n_nodes == len(tree.feature)
    assert tree.n_terminals == tree.is_terminal.sum()


@given(seed=seeds)
@examples(20)
def test_arrays_rebuild_the_tree_and_do_not_follow_what_they_were_made_from(seed):
    tree = random_tree(np.random.default_rng(seed))
    given_arrays = {name: getattr(tree, name).copy() for name in NAMES}
    twin = et.MetaTree.from_arrays(**given_arrays, n_features=tree.n_features)
    assert twin == tree
    assert hash(twin) == hash(tree)
    for array in given_arrays.values():
        array += 1
    assert twin == tree


@pytest.mark.parametrize("name", NAMES + DERIVED)
def test_arrays_are_read_only(name):
    for tree in (small_tree(), et.MetaTree.complete([0, 1, 1]), pickle.loads(pickle.dumps(small_tree()))):
        array = getattr(tree, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        assert array.dtype == (bool if name in ("is_terminal", "has_missing") else np.int32)


# ---- routing -----------------------------------------------------------------------------------------------------


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
    binary = et.MetaTree.random([2, 2, 2], 3, rng=rng, kind=rng.choice(KINDS))
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
    tree = et.MetaTree.random(sizes, 2, rng=rng, kind=kind, missing=True)
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
    tree = et.MetaTree.random([3, 2, 4, 2], 4, rng=rng, kind=kind)
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


# ---- identity ----------------------------------------------------------------------------------------------------


def test_equal_trees_are_equal_and_hash_alike():
    for build in (small_tree, lambda: et.MetaTree.complete([0, 1, 1]), lambda: split_of(3, missing_child=2)):
        tree = build()
        assert tree == build()
        assert hash(tree) == hash(build())
        assert len({tree, build()}) == 1
        for other in (pickle.loads(pickle.dumps(tree)), copy.copy(tree), copy.deepcopy(tree)):
            assert other == tree
            assert hash(other) == hash(tree)
            assert repr(other) == repr(tree)


def test_trees_that_differ_in_one_thing_differ():
    trees = [
        split_of(2),
        split_of(3),
        split_of(3, missing_child=2),
        split_of(2, threshold=0),
        split_of(2, threshold=1),
        split_of(2, threshold=1, missing_child=0),
        split_of(2, threshold=1, missing_child=1),
        et.MetaTree.complete([1]),
        et.MetaTree.complete([0], n_features=1),
        et.MetaTree.complete([0], n_features=2),
        et.MetaTree.complete([]),
    ]
    assert len(set(trees)) == len(trees)
    assert all(one != other for one, other in combinations(trees, 2))
    assert trees[0] != "a tree"
    assert trees[0] != None  # noqa: E711


def test_repr_tells_the_size():
    assert repr(et.MetaTree.complete([0, 1, 2])) == "MetaTree(n_nodes=7, n_terminals=4, depth=2, n_features>=3)"
    assert "n_features=9" in repr(et.MetaTree.complete([0, 1, 2], n_features=9))
    assert "n_features=0" in repr(et.MetaTree.complete([], n_features=0))


@given(seed=seeds)
@examples(15)
def test_a_pickled_tree_routes_alike(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = random_codes(rng, tree, 20)
    before = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(before.route(X), tree.route(X))
    after = pickle.loads(pickle.dumps(tree))  # once the tree has been used
    np.testing.assert_array_equal(after.route(X), tree.route(X))


# ---- pruned trees ------------------------------------------------------------------------------------------------


@given(seed=seeds)
@examples(25)
def test_every_pruned_tree_knows_itself(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=2)
    X = random_codes(rng, tree, 15)
    for inner, leaves in list(naive.all_pruned_trees(tree))[:60]:
        pruned = et.PrunedTree(tree, leaves)
        assert set(pruned.inner.tolist()) == inner
        assert pruned.leaves.tolist() == sorted(leaves)
        assert pruned.n_leaves == len(leaves)
        assert pruned.depth == max(tree.depth[s] for s in leaves)
        expected = [next(s for s in naive.path(tree, row) if s in leaves) for row in X]
        assert pruned.leaves[pruned.apply(X)].tolist() == expected


def test_leaves_must_cut_every_path_exactly_once():
    for tree in (small_tree(), et.MetaTree.complete([0, 1, 1]), et.MetaTree.complete([0, 0, 0], 1)):
        possible = {leaves for _, leaves in naive.all_pruned_trees(tree)}
        for size in range(tree.n_nodes + 1):
            for leaves in map(frozenset, combinations(range(tree.n_nodes), size)):
                if leaves in possible:
                    assert set(et.PrunedTree(tree, leaves).leaves.tolist()) == leaves
                else:
                    with pytest.raises(ValueError, match="leaves"):
                        et.PrunedTree(tree, leaves)


@pytest.mark.parametrize(
    ("leaves", "word"),
    [
        ([], "leaves"),
        ([-1], "leaves"),
        ([5], "leaves"),
        ([2**32], "leaves"),
        ([1], "cover"),
        ([2, 3], "cover"),
        ([0, 1, 2], "node 1"),
        ([1, 2, 3], "node 3"),
        ([1.5, 2], "leaves"),
        ("ab", "leaves"),
    ],
    ids=str,
)
def test_pruned_tree_refuses(leaves, word):
    with pytest.raises((ValueError, TypeError), match=word):
        et.PrunedTree(small_tree(), leaves)


def test_pruned_trees_are_equal_when_their_leaves_and_meta_trees_are():
    pruned = et.PrunedTree(small_tree(), [1, 2])
    for other in (et.PrunedTree(small_tree(), iter([2, 1])), pickle.loads(pickle.dumps(pruned)), copy.copy(pruned)):
        assert other == pruned
        assert hash(other) == hash(pruned)
        assert repr(other) == repr(pruned)
        for array in (other.leaves, other.inner):
            assert not array.flags.writeable
    assert pruned != et.PrunedTree(small_tree(), [0])
    assert pruned != et.PrunedTree(et.MetaTree.complete([0, 1, 1]), [1, 2])
    assert pruned != [1, 2]
    assert len({et.PrunedTree(small_tree(), leaves) for _, leaves in naive.all_pruned_trees(small_tree())}) == 3


# ---- deep and large ----------------------------------------------------------------------------------------------

DEPTH = 60
WAYS = {
    "thresholds on one feature": lambda: (
        chain_tree([0] * DEPTH, [0] * DEPTH, list(range(DEPTH - 1, -1, -1))),
        np.arange(DEPTH + 1)[:, None],
    ),
    "rising thresholds on one feature": lambda: (
        chain_tree([1] * DEPTH, [0] * DEPTH, list(range(DEPTH))),
        np.arange(DEPTH + 1)[:, None],
    ),
    "multiway": lambda: (
        chain_tree([0] * DEPTH, list(range(DEPTH))),
        np.concatenate([np.eye(DEPTH, dtype=int), np.zeros((1, DEPTH), dtype=int)]),
    ),
    "multiway, one code each": lambda: (
        et.MetaTree.complete(list(range(DEPTH)), 1),
        np.zeros((3, DEPTH), dtype=int),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_chains_sixty_deep(way):
    tree, X = WAYS[way]()
    rng = rng_for("chain")
    assert tree.depth.max() == DEPTH
    for dtype in (np.uint8, np.uint16, np.int64):
        assert tree.route(X.astype(dtype)).tolist() == [naive.path(tree, row)[-1] for row in X]
    y = rng.integers(0, 2, len(X))
    post = et.Posterior(tree, et.Bernoulli(0.5, 0.5), 0.9).update(X, y)
    split_prob, subtree, log_evidence = naive.theorem_1(
        tree, [0.9] * tree.n_nodes, lambda _: naive_families.Bernoulli(0.5, 0.5), X, y
    )
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10, atol=1e-10)
    one_by_one = et.Posterior(tree, et.Bernoulli(0.5, 0.5), 0.9)
    for i in rng.permutation(len(X)):
        one_by_one.update(X[i : i + 1], y[i : i + 1])
    assert_same(post, one_by_one)
    assert et.PrunedTree(tree, np.flatnonzero(tree.is_terminal)).depth == DEPTH


@pytest.mark.long
def test_one_row_of_a_tree_of_seventeen_million_nodes_touches_its_path_alone():
    depth, family = 23, et.Bernoulli(0.5, 0.5)
    large = et.MetaTree.complete(np.repeat(np.arange(depth), 2 ** np.arange(depth)))
    assert large.n_nodes == 2 ** (depth + 1) - 1
    x = rng_for("large").integers(0, 2, depth).astype(np.uint8)
    small = chain_tree(x.tolist(), list(range(depth)))
    post, twin = et.Posterior(large, family, 0.7), et.Posterior(small, family, 0.7)
    for y in (1, 0, 1, 1):
        post.update(x[None], np.array([y]))
        twin.update(x[None], np.array([y]))
    path, same = naive.path(large, x), naive.path(small, x)
    assert large.route(x[None]).tolist() == path[-1:]
    assert np.flatnonzero(post.statistics.any(axis=1)).tolist() == path
    assert np.flatnonzero(post.leaf_log_evidence).tolist() == path
    assert np.flatnonzero(post.subtree_log_evidence).tolist() == path
    changed = post.split_prob != np.where(large.is_terminal, 0.0, 0.7)
    assert set(np.flatnonzero(changed).tolist()) <= set(path[:-1])
    for name in ("split_prob", "leaf_log_evidence", "subtree_log_evidence", "statistics"):
        np.testing.assert_array_equal(getattr(post, name)[path], getattr(twin, name)[same])
    assert post.log_evidence == twin.log_evidence
    assert post.predictive(x[None]).mean() == twin.predictive(x[None]).mean()
