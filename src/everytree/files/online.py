"""Online forests in a file: the state of every node, checked before a kernel follows any of its links."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.families import Categorical, Normal
from everytree.files.families import check_all, read_family, read_statistics, write_family, write_statistics
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.online import OnlineForestClassifier, OnlineForestRegressor
from everytree.online.leaves import ClassLists, ClassWeights, Leaves
from everytree.online.rows import DATE, FIXED_RANGE, NOMINAL, Features
from everytree.online.trees import FIRST_FREE, N_FREE, N_SEEN, NODE, SLOTS_USED

OnlineForest = OnlineForestClassifier | OnlineForestRegressor

KINDS: dict[str, type[OnlineForest]] = {
    "OnlineForestClassifier": OnlineForestClassifier,
    "OnlineForestRegressor": OnlineForestRegressor,
}
_COMMON = ("n_models", "split_prior", "max_nodes", "half_life", "seed")
_OWN: dict[type[OnlineForest], tuple[str, ...]] = {
    OnlineForestClassifier: ("concentration",),
    OnlineForestRegressor: ("prior",),
}


def write_online(writer: Writer, model: OnlineForest) -> None:
    """Write parameters, features, classes and all nodes."""
    parameters = writer.section("parameters")
    for name in (*_COMMON, *_OWN[type(model)]):
        write_plain(parameters, name, getattr(model, name))
    write_plain(parameters, "ranges", [(name, *ends) for name, ends in (model.ranges or {}).items()])
    with model.lock:
        trees = model.trees.__getstate__()
        if isinstance(model, OnlineForestClassifier):
            write_plain(writer, "classes", model.classes)
        family = model.trees.family
    write_family(writer.section("family"), family)
    write_plain(writer, "features", list(trees["features"].index))
    arrays = dict(trees["arrays"])
    nodes = arrays.pop("nodes")
    writer.section("nodes").put_arrays(**{name: np.ascontiguousarray(nodes[name]) for name in NODE.names or ()})
    statistics = arrays.pop("statistics")
    if "class_weights" in trees:
        writer.section("class_weights").put_arrays(**trees["class_weights"]._asdict())
    else:
        write_statistics(writer, statistics)
    writer.put_arrays(
        **arrays, kinds=trees["features"].kinds, value_ranges=trees["ranges"], roots=trees["roots"],
        counts=trees["counts"],
    )  # fmt: skip


def read_online(reader: Reader, kind: type[OnlineForest]) -> OnlineForest:
    """Read the forest."""
    parameters = reader.section("parameters")
    options = {name: read_plain(parameters, name) for name in (*_COMMON, *_OWN[kind])}
    with reader.checking("parameters"):
        ranges = {name: (low, high) for name, low, high in read_plain(parameters, "ranges")}
        model = kind(**options, ranges=ranges or None)
        trees = model.trees
    leaves = _leaves(reader, model)
    features = _features(reader)
    counts = reader.array("counts", np.int64, (4,))
    nodes = _nodes(reader)
    arrays = {
        "nodes": nodes,
        "boxes": reader.array("boxes", np.float64, (len(nodes), 2, len(features.kinds))),
        "some_missing": reader.array("some_missing", np.uint8, (len(nodes), len(features.kinds))),
        "statistics": np.zeros((len(nodes), 0)),
    }
    is_free = _free_slots(reader, nodes, counts)
    nodes["left"][is_free] = nodes["right"][is_free] = -1  # whatever the file has there, a free slot has no children
    _check_tree_links(reader, nodes, is_free, trees.n_trees, counts, len(features.index))
    _check_boxes(reader, arrays)
    state = trees.__getstate__() | {
        "leaves": leaves, "features": features, "arrays": arrays, "counts": counts,
        "ranges": _intervals(
            reader, "value_ranges", reader.array("value_ranges", np.float64, (len(features.kinds), 2))
        ),
        "roots": reader.array("roots", np.int32, (trees.n_trees, 2)),
    }  # fmt: skip
    if isinstance(leaves, ClassLists):
        state["class_weights"] = _class_weights(reader, leaves, len(nodes))
    else:
        arrays["statistics"] = read_statistics(reader, leaves, len(nodes))
    with reader.checking("nodes"):
        trees.__setstate__(state)
    return model


def _leaves(reader: Reader, model: OnlineForest) -> Leaves:
    """Return the leaf model; the classes are read with it."""
    family = read_family(reader.section("family"))
    if type(family) is not (Categorical if isinstance(model, OnlineForestClassifier) else Normal):
        raise reader.error("family", f"is {family!r}, which a {type(model).__name__} does not have")
    if not isinstance(model, OnlineForestClassifier):
        return family
    classes = _distinct(reader, "classes")
    if family.size != max(len(classes), 2):
        raise reader.error("classes", f"are {len(classes)}, but the leaves are {family!r}")
    leaves = model.leaves_for(classes)
    return leaves if isinstance(leaves, ClassLists) else family


def _distinct(reader: Reader, name: str) -> dict[Any, int]:
    values = read_plain(reader, name)
    with reader.checking(name):
        index: dict[Hashable, int] = {value: place for place, value in enumerate(values)}
    if len(index) != len(values):
        raise reader.error(name, "must be distinct, but some occur twice")
    return index


def _features(reader: Reader) -> Features:
    index = _distinct(reader, "features")
    kinds = np.array(reader.array("kinds", np.uint8, (None,)))
    if len(kinds) < len(index):
        raise reader.error("kinds", f"has {len(kinds)} entries for {len(index)} features")
    check_all(reader, "kinds", kinds, kinds <= NOMINAL + FIXED_RANGE + DATE, "must be flags below 8")
    return Features(index, kinds)


def _nodes(reader: Reader) -> NDArray[Any]:
    inner = reader.section("nodes")
    names: dict[str, Any] = dict(NODE.fields or {})
    n = len(inner.array("parent", np.int32, (None,)))
    nodes = np.zeros(n, dtype=NODE)
    for name, (dtype, _) in names.items():
        nodes[name] = inner.array(name, dtype, (n,))
        check_all(inner, name, nodes[name], nodes[name] == nodes[name], "must be a number")
    return nodes


def _class_weights(reader: Reader, leaves: ClassLists, n: int) -> ClassWeights:
    """Lists of classes, or the older form of files without lists: the weight of every class in every node."""
    if "statistics" in reader:
        return ClassWeights.listed(read_statistics(reader, leaves.family, n))
    inner = reader.section("class_weights")
    start = inner.array("start", np.int64, (n + 1,))
    number = inner.array("number", np.int32, (None,))
    weight = inner.array("weight", np.float64, (len(number),))
    check_all(inner, "weight", weight, (weight >= 0.0) & np.isfinite(weight), "must be finite and not negative")
    return ClassWeights(start, number, weight)


# ---- checks for the kernel -------------------------------------------------------------------------------------------


def _check_tree_links(
    reader: Reader, nodes: NDArray[Any], is_free: NDArray[np.bool_], n_trees: int, counts: NDArray[np.int64], width: int
) -> None:
    """Check that every slot is free, or in exactly one place of exactly one tree."""
    n = len(nodes)
    roots = reader.array("roots", np.int32, (n_trees, 2))
    if counts[N_SEEN] == 0:
        if n or (roots != -1).any():
            raise reader.error("roots", "there are nodes, but no rows")
        return
    check_all(reader, "roots", roots, (roots >= 0) & (roots < n), f"must be among the {n} nodes")
    level, seen = roots[:, 0], np.zeros(n, dtype=np.int64)
    expected_parent, tree = np.full(n_trees, -1), np.arange(n_trees)
    while len(level):  # ends also if a node is met twice: every level marks new nodes only
        if is_free[level].any() or seen[level].any() or len(np.unique(level)) < len(level):
            raise reader.error("nodes.left", "a node is free or has two parents")
        seen[level] = 1
        here = nodes[level]
        if (here["parent"] != expected_parent).any() or (here["tree"] != tree).any():
            raise reader.error("nodes.parent", "must be the node above")
        inner = here["left"] >= 0
        _check_inner(reader, here[inner], n, width)
        if (here["right"][~inner] != -1).any() or (here["left"][~inner] != -1).any():
            raise reader.error("nodes.right", "a leaf has no children, which is -1 twice")
        children = np.stack([here["left"][inner], here["right"][inner]], axis=1)
        if (nodes["time"][children] < here["time"][inner, None]).any():
            raise reader.error("nodes.time", "a node cannot be split before its parent")
        level, expected_parent = children.ravel(), np.repeat(level[inner], 2)
        tree = np.repeat(tree[inner], 2)
    if not (seen.astype(bool) | is_free).all():
        raise reader.error("nodes", f"{int((~seen.astype(bool) & ~is_free).sum())} of {n} belong to no tree")
    if is_free[roots[:, 1]].any() or (nodes["tree"][roots[:, 1]] != np.arange(n_trees)).any():
        raise reader.error("roots", "the node to refresh next must be one of the tree")
    _check_numbers(reader, nodes[~is_free], int(counts[N_SEEN]))


def _free_slots(reader: Reader, nodes: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    n = len(nodes)
    if counts[SLOTS_USED] != n or not 0 <= counts[N_FREE] <= n or counts[N_SEEN] < 0:
        raise reader.error("counts", f"are {counts.tolist()}, but there are {n} nodes")
    is_free = np.zeros(n, dtype=bool)
    slot = int(counts[FIRST_FREE])
    for _ in range(int(counts[N_FREE])):
        if not 0 <= slot < n or is_free[slot]:
            raise reader.error("counts", "free slots must be a chain that ends")
        is_free[slot] = True
        slot = int(nodes["parent"][slot])
    if slot != -1:
        raise reader.error("counts", f"there are more free slots than {counts[N_FREE]}")
    return is_free


def _check_inner(reader: Reader, inner: NDArray[Any], n: int, width: int) -> None:
    for name in ("left", "right"):
        check_all(reader, f"nodes.{name}", inner[name], (inner[name] >= 0) & (inner[name] < n), f"must be below {n}")
    asked = inner["feature"]
    check_all(reader, "nodes.feature", asked, (asked >= 0) & (asked < width), f"must be one of {width} features")
    side = inner["missing_right"]
    check_all(reader, "nodes.missing_right", side, (side == 0) | (side == 1), "must be 0 or 1")
    check_all(reader, "nodes.time", inner["time"], np.isfinite(inner["time"]), "must be finite")


def _check_numbers(reader: Reader, nodes: NDArray[Any], n_seen: int) -> None:
    for name in ("log_split", "log_stop"):
        check_all(reader, f"nodes.{name}", nodes[name], nodes[name] <= 0.0, "must be the log of a probability")
    for name in ("leaf", "subtree"):
        check_all(reader, f"nodes.{name}", nodes[name], np.isfinite(nodes[name]), "must be finite")
    check_all(reader, "nodes.time", nodes["time"], nodes["time"] >= 0.0, "must not be negative")
    stamp = nodes["stamp"]
    check_all(reader, "nodes.stamp", stamp, (stamp >= 0) & (stamp <= n_seen), f"must be among {n_seen} rows")


def _check_boxes(reader: Reader, arrays: dict[str, NDArray[Any]]) -> None:
    _intervals(reader, "boxes", np.moveaxis(arrays["boxes"], 1, -1).reshape(-1, 2))
    lacks = arrays["some_missing"]
    check_all(reader, "some_missing", lacks, lacks <= 1, "must be 0 or 1")


def _intervals(reader: Reader, name: str, pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lowest and highest values, or inf and -inf for an empty interval."""
    nothing = (pairs[:, 0] == np.inf) & (pairs[:, 1] == -np.inf)
    good = nothing | (np.isfinite(pairs).all(axis=1) & (pairs[:, 0] <= pairs[:, 1]))
    check_all(reader, name, pairs[:, 0], good, "must be intervals")
    return pairs
