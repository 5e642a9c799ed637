"""Arrays, codes and leaves that meta-trees and pruned trees refuse, naming the node or the place."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from doors import BAD_X, complete
from refusals import refused
from tree_cases import small_tree

# ---- complete and random trees ---------------------------------------------------------------------------------------


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


def test_a_feature_out_of_range_is_refused():
    refused(lambda: et.MetaTree.complete([0, 1, 5], n_features=2), "features[2]", "5", "0..1")
    refused(lambda: et.MetaTree.complete([0, 1, 5], [2, 2]), "features[2]", "5", "0..1")
    arrays = ([5, -1, -1], [1, -1, -1], [2, 0, 0])
    refused(lambda: et.MetaTree.from_arrays(*arrays, n_features=2), "node 0", "feature", "5", "0..1")


# ---- trees from arrays -----------------------------------------------------------------------------------------------

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


# ---- codes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", BAD_X)
def test_bad_codes_are_refused_when_routing(what):
    X, words = BAD_X[what]
    refused(lambda: complete(2).route(X), *words)


THRESHOLD = {
    "without a missing branch": {"threshold": [0, -1, -1]},
    "with a missing branch": {"threshold": [0, -1, -1], "missing_child": [1, -1, -1]},
}


@pytest.mark.parametrize("value", [-2, -100])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float64, list])
@pytest.mark.parametrize("kind", THRESHOLD)
def test_negative_codes_are_not_large_ones(kind, dtype, value):
    """A threshold split takes any code there is, so nothing but the sign is wrong here."""
    tree = et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], **THRESHOLD[kind])
    X = [[0], [value]] if dtype is list else np.array([[0], [value]], dtype=dtype)
    refused(lambda: tree.route(X), "X", "column 0", "row 1", str(value))
    if "without" in kind:
        minus_one = [[0], [-1]] if dtype is list else np.array([[0], [-1]], dtype=dtype)
        refused(lambda: tree.route(minus_one), "X", "column 0", "row 1", "-1")


# ---- leaves ----------------------------------------------------------------------------------------------------------


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
