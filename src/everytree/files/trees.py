"""Meta-trees, posteriors over their prunings, and forests in a file.

All trees of a group lie one after another in the same arrays. In mappable files these are as in memory: a reader that
maps the file uses them where they are. In packed files they are those of `posterior/packing.py`, and what follows from
them is derived when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import MAX_FEATURES
from everytree.families.base import NativeFamily
from everytree.files.families import check_all, read_family, read_statistics, write_family, write_statistics
from everytree.files.sections import Reader, Writer
from everytree.posterior.forest import Forest
from everytree.posterior.packing import joined_arrays, pack_shapes, slices, terminal_statistics, unpack_shapes
from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree

_SHAPE = ("feature", "first_child", "n_children", "threshold", "missing_child")


# ---- shapes ---------------------------------------------------------------------------------------------------------


def write_trees(writer: Writer, trees: Sequence[MetaTree]) -> None:
    """Write the arrays of all trees; `n_codes` has an entry for each column that some tree splits on."""
    shapes = pack_shapes(trees) if writer.is_packed else {}
    if not shapes or _is_mostly_inner(shapes["n_children"]):
        shapes = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _SHAPE}
    writer.put_arrays(
        n_nodes=np.array([tree.n_nodes for tree in trees], dtype=np.int64),
        n_features=np.array([_declared_width(tree) for tree in trees], dtype=np.int64),
        n_codes=_n_codes(trees),
        **shapes,
    )


def _is_mostly_inner(n_children: NDArray[np.int32]) -> bool:
    """Whether more nodes have children than have not: some have one child only.

    Such trees are not packed: a long chain of nodes above one terminal would take few bytes in a file and could fill
    the memory.
    """
    return 2 * int((n_children > 0).sum()) > len(n_children)


def read_trees(reader: Reader) -> list[MetaTree]:
    """Read the trees, all their invariants checked; those of mappable files use the file's arrays."""
    n_nodes = reader.array("n_nodes", np.int64, (None,))
    n_features = reader.array("n_features", np.int64, n_nodes.shape)
    n_codes = reader.array("n_codes", np.int32, (None,))
    n_children = reader.array("n_children", np.int32, (None,))
    total = len(n_children)
    check_all(reader, "n_nodes", n_nodes, (n_nodes >= 1) & (n_nodes <= total), f"must be from 1 to {total}")
    if len(n_nodes) == 0 or sum(n_nodes.tolist()) != total:
        raise reader.error("n_nodes", f"must be some numbers that sum to {total}")
    # A tree allocates arrays as long as its table is wide, so the file must have one too.
    most = min(len(n_codes), MAX_FEATURES)
    check_all(reader, "n_features", n_features, (n_features >= -1) & (n_features <= most), f"must be from -1 to {most}")
    arrays = _read_shapes(reader, n_nodes, n_children)
    check_all(reader, "feature", arrays["feature"], arrays["feature"] < most, f"there are {most} columns")
    trees = []
    for i, nodes in enumerate(slices(n_nodes)):
        with reader.checking(f"tree {i}"):
            width = None if n_features[i] < 0 else int(n_features[i])
            trees.append(MetaTree.from_checked_arrays({name: array[nodes] for name, array in arrays.items()}, width))
    if not np.array_equal(_n_codes(trees), n_codes):
        raise reader.error("n_codes", "are not those of the trees")
    return trees


def _read_shapes(
    reader: Reader, n_nodes: NDArray[np.int64], n_children: NDArray[np.int32]
) -> dict[str, NDArray[np.int32]]:
    """Read the arrays of all trees, those of inner nodes only if they are packed."""
    if "n_low_codes" not in reader:
        return {name: reader.array(name, np.int32, n_children.shape) for name in _SHAPE}
    check_all(reader, "n_children", n_children, n_children >= 0, "must be 0 or more")
    if _is_mostly_inner(n_children):
        raise reader.error("n_children", "must be 0 for half of the nodes at least")
    n_inner = int((n_children > 0).sum())
    names = ("feature", "n_low_codes", "missing_child")
    packed = {name: reader.array(name, np.int32, (n_inner,)) for name in names}
    check_all(reader, "n_low_codes", packed["n_low_codes"], packed["n_low_codes"] >= 0, "must be 0 or more")
    return unpack_shapes(n_nodes, {"n_children": n_children, **packed})


def _declared_width(tree: MetaTree) -> int:
    return -1 if tree.declared_width is None else tree.declared_width


def _n_codes(trees: Sequence[MetaTree]) -> NDArray[np.int32]:
    """Number of codes of each column in multiway splits, the maximum over all trees; 0 for none."""
    n_codes = np.zeros(max(tree.n_features for tree in trees), dtype=np.int32)
    for tree in trees:
        np.maximum(n_codes[: tree.n_features], tree.n_codes, out=n_codes[: tree.n_features])
    return n_codes


# ---- posteriors -----------------------------------------------------------------------------------------------------


def write_posteriors(writer: Writer, posteriors: Sequence[Posterior]) -> None:
    """Write the trees, leaf models, split priors and statistics of several posteriors, all at one moment."""
    trees, families = [post.tree for post in posteriors], [post.family for post in posteriors]
    write_trees(writer.section("trees"), trees)
    distinct = families[:1] if all(family == families[0] for family in families) else families
    writer.put(n_families=len(distinct))
    for i, family in enumerate(distinct):
        write_family(writer.section(f"family{i}"), family)
    given = [np.asarray(post.split_prior_argument) for post in posteriors]
    one_number = all(prior.ndim == 0 for prior in given)
    writer.put(split_prior_per_node=not one_number)
    writer.put_arrays(
        split_prior=np.array(given) if one_number else np.concatenate([post.split_prior for post in posteriors])
    )
    if writer.is_packed and not _is_mostly_inner(np.concatenate([tree.n_children for tree in trees])):
        statistics, n_rows = terminal_statistics(posteriors)
        write_statistics(writer, statistics)
        writer.put_arrays(n_rows=n_rows)
    else:
        writer.put_arrays(**joined_arrays(posteriors))


def read_posteriors(reader: Reader) -> list[Posterior]:
    """Read the posteriors; those of mappable files use the file's arrays."""
    trees = read_trees(reader.section("trees"))
    families = _read_families(reader, len(trees))
    n_nodes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
    per_node = reader.value("split_prior_per_node", bool)
    of_prior = slices(n_nodes if per_node else np.ones_like(n_nodes))
    priors = reader.array("split_prior", np.float64, (of_prior[-1].stop,))
    models = [
        (tree, families[i % len(families)], priors[of_prior[i]] if per_node else priors[i])
        for i, tree in enumerate(trees)
    ]
    n_rows = reader.array("n_rows", np.int64, (len(trees),))
    check_all(reader, "n_rows", n_rows, n_rows >= 0, "must be 0 or more")
    return (_read_mappable if "leaf" in reader else _read_packed)(reader, models, n_rows)


def _read_families(reader: Reader, n_trees: int) -> list[NativeFamily]:
    """Read the leaf model of all trees, or one for each, with statistics of one kind."""
    n_families = reader.value("n_families", int)
    if n_families not in (1, n_trees):
        raise reader.error("n_families", f"must be 1 or {n_trees}, but is {n_families}")
    families = [read_family(reader.section(f"family{i}")) for i in range(n_families)]
    if any(family.n_statistics != families[0].n_statistics for family in families):
        raise reader.error("n_families", "have leaves of different kinds")
    return families


Model = tuple[MetaTree, NativeFamily, Any]
"""A tree, its leaf model and its split prior."""


def _read_packed(reader: Reader, models: list[Model], n_rows: NDArray[np.int64]) -> list[Posterior]:
    """Read the statistics of terminals; all others, and the evidences, follow from them."""
    n_terminals = np.array([tree.n_terminals for tree, _, _ in models])
    statistics = read_statistics(reader, models[0][1], int(n_terminals.sum()))
    posteriors = []
    for i, (terminals, (tree, family, prior)) in enumerate(zip(slices(n_terminals), models, strict=True)):
        with reader.checking(f"posterior {i}"):
            posteriors.append(Posterior.from_terminals(tree, family, prior, statistics[terminals], int(n_rows[i])))
    return posteriors


def _read_mappable(reader: Reader, models: list[Model], n_rows: NDArray[np.int64]) -> list[Posterior]:
    """Read the arrays of all posteriors as they are in memory."""
    of_tree = slices(np.array([tree.n_nodes for tree, _, _ in models]))
    state = _read_state(reader, models[0][1], of_tree[-1].stop)
    posteriors = []
    for i, (nodes, (tree, family, prior)) in enumerate(zip(of_tree, models, strict=True)):
        arrays = {name: array[nodes] for name, array in state.items()} | {"n_rows": n_rows[i : i + 1]}
        with reader.checking(f"posterior {i}"):
            posteriors.append(Posterior.from_arrays(tree, family, prior, arrays))
    return posteriors


def _read_state(reader: Reader, family: NativeFamily, n_nodes: int) -> dict[str, NDArray[Any]]:
    """Read statistics and what is derived from them."""
    state: dict[str, NDArray[Any]] = {"statistics": read_statistics(reader, family, n_nodes)}
    for name in ("leaf", "subtree", "split_prob"):
        state[name] = reader.array(name, np.float64, (n_nodes,))
        check_all(reader, name, state[name], np.isfinite(state[name]), "must be finite")
    prob = state["split_prob"]
    check_all(reader, "split_prob", prob, (prob >= 0.0) & (prob <= 1.0), "must be from 0 to 1")
    return state


# ---- forests --------------------------------------------------------------------------------------------------------


def write_forest(writer: Writer, forest: Forest) -> None:
    """Write posteriors, weights, sharpness, and the known codes."""
    write_posteriors(writer.section("posteriors"), forest.posteriors)
    writer.put(sharpness=forest.sharpness, by_evidence=forest.weighs_by_evidence)
    writer.put_arrays(n_codes=forest.n_codes)
    if not forest.weighs_by_evidence:
        writer.put_arrays(weights=forest.weights)


def read_forest(reader: Reader) -> Forest:
    """Read the forest."""
    posteriors = read_posteriors(reader.section("posteriors"))
    weights: Any = "evidence"
    if not reader.value("by_evidence", bool):
        weights = reader.array("weights", np.float64, (len(posteriors),))
    n_codes = reader.array("n_codes", np.uint16, (None,))
    sharpness = reader.value("sharpness", float)
    with reader.checking("forest"):
        return Forest(posteriors, weights=weights, sharpness=sharpness, n_codes=n_codes)
