"""Meta-trees, posteriors over their prunings, and forests in a file.

All trees of a group lie one after another in the same arrays, as they are in memory: a reader that maps the file uses
them where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import MAX_FEATURES
from everytree.files.families import check_all, read_family, read_statistics, write_family
from everytree.files.sections import Reader, Writer
from everytree.posterior.forest import Forest
from everytree.posterior.packing import joined_arrays
from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree

_SHAPE = ("feature", "first_child", "n_children", "threshold", "missing_child")


# ---- shapes ---------------------------------------------------------------------------------------------------------


def write_trees(to: Writer, trees: Sequence[MetaTree]) -> None:
    """Write the arrays of all trees; `n_codes` has an entry for each column that some tree splits on."""
    to.put_arrays(
        n_nodes=np.array([tree.n_nodes for tree in trees], dtype=np.int64),
        n_features=np.array([_declared_width(tree) for tree in trees], dtype=np.int64),
        n_codes=_n_codes(trees),
        **{name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _SHAPE},
    )


def read_trees(of: Reader) -> list[MetaTree]:
    """Read the trees, all their invariants checked; they use the file's arrays."""
    n_nodes = of.array("n_nodes", np.int64, (None,))
    n_features = of.array("n_features", np.int64, n_nodes.shape)
    n_codes = of.array("n_codes", np.int32, (None,))
    total = len(of.array("feature", np.int32, (None,)))
    arrays = {name: of.array(name, np.int32, (total,)) for name in _SHAPE}
    check_all(of, "n_nodes", n_nodes, (n_nodes >= 1) & (n_nodes <= total), f"must be from 1 to {total}")
    if len(n_nodes) == 0 or sum(n_nodes.tolist()) != total:
        raise of.error("n_nodes", f"must be some numbers that sum to {total}")
    # A tree allocates arrays as long as its table is wide, so the file must have one too.
    most = min(len(n_codes), MAX_FEATURES)
    check_all(of, "n_features", n_features, (n_features >= -1) & (n_features <= most), f"must be from -1 to {most}")
    check_all(of, "feature", arrays["feature"], arrays["feature"] < most, f"there are {most} columns")
    trees = []
    for i, nodes in enumerate(slices(n_nodes)):
        with of.checking(f"tree {i}"):
            width = None if n_features[i] < 0 else int(n_features[i])
            trees.append(MetaTree.from_checked_arrays({name: array[nodes] for name, array in arrays.items()}, width))
    if not np.array_equal(_n_codes(trees), n_codes):
        raise of.error("n_codes", "are not those of the trees")
    return trees


def slices(sizes: NDArray[np.int64]) -> list[slice]:
    """Return the position of each of several parts that follow one another."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes.tolist(), strict=True)]


def _declared_width(tree: MetaTree) -> int:
    return -1 if tree.declared_width is None else tree.declared_width


def _n_codes(trees: Sequence[MetaTree]) -> NDArray[np.int32]:
    """Number of codes of each column in multiway splits, the maximum over all trees; 0 for none."""
    n_codes = np.zeros(max(tree.n_features for tree in trees), dtype=np.int32)
    for tree in trees:
        np.maximum(n_codes[: tree.n_features], tree.n_codes, out=n_codes[: tree.n_features])
    return n_codes


# ---- posteriors -----------------------------------------------------------------------------------------------------


def write_posteriors(to: Writer, posteriors: Sequence[Posterior]) -> None:
    """Write the trees, leaf models, split priors and arrays of several posteriors, all at one moment."""
    trees, families = [post.tree for post in posteriors], [post.family for post in posteriors]
    write_trees(to.section("trees"), trees)
    distinct = families[:1] if all(family == families[0] for family in families) else families
    to.put(n_families=len(distinct))
    for i, family in enumerate(distinct):
        write_family(to.section(f"family{i}"), family)
    given = [np.asarray(post.split_prior_argument) for post in posteriors]
    one_number = all(prior.ndim == 0 for prior in given)
    to.put(split_prior_per_node=not one_number)
    priors = np.array(given) if one_number else np.concatenate([post.split_prior for post in posteriors])
    to.put_arrays(split_prior=priors, **joined_arrays(posteriors))


def read_posteriors(of: Reader) -> list[Posterior]:
    """Read the posteriors; they use the file's arrays."""
    trees = read_trees(of.section("trees"))
    n_nodes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
    n_families = of.value("n_families", int)
    if n_families not in (1, len(trees)):
        raise of.error("n_families", f"must be 1 or {len(trees)}, but is {n_families}")
    families = [read_family(of.section(f"family{i}")) for i in range(n_families)]
    per_node = of.value("split_prior_per_node", bool)
    of_tree = slices(n_nodes)
    of_prior = of_tree if per_node else slices(np.ones_like(n_nodes))
    priors = of.array("split_prior", np.float64, (of_prior[-1].stop,))
    state = _read_state(of, families, of_tree[-1].stop, len(trees))
    posteriors = []
    for i, tree in enumerate(trees):
        arrays = {name: array[i : i + 1] if name == "n_rows" else array[of_tree[i]] for name, array in state.items()}
        prior = priors[of_prior[i]] if per_node else priors[i]
        with of.checking(f"posterior {i}"):
            posteriors.append(Posterior.holding(tree, families[i % n_families], prior, arrays))
    return posteriors


def _read_state(of: Reader, families: list[Any], n_nodes: int, n_trees: int) -> dict[str, NDArray[Any]]:
    """Read the arrays of all posteriors, in the order of the kernels."""
    state = {"statistics": read_statistics(of, families[0], n_nodes)}
    if any(family.n_statistics != families[0].n_statistics for family in families):
        raise of.error("n_families", "have leaves of different kinds")
    for name in ("leaf", "subtree", "split_prob"):
        state[name] = of.array(name, np.float64, (n_nodes,))
        check_all(of, name, state[name], np.isfinite(state[name]), "must be finite")
    prob = state["split_prob"]
    check_all(of, "split_prob", prob, (prob >= 0.0) & (prob <= 1.0), "must be from 0 to 1")
    state["n_rows"] = of.array("n_rows", np.int64, (n_trees,))
    check_all(of, "n_rows", state["n_rows"], state["n_rows"] >= 0, "must be 0 or more")
    return state


# ---- forests --------------------------------------------------------------------------------------------------------


def write_forest(to: Writer, forest: Forest) -> None:
    """Write posteriors, weights, sharpness, and the known codes."""
    write_posteriors(to.section("posteriors"), forest.posteriors)
    to.put(sharpness=forest.sharpness, by_evidence=forest.weighs_by_evidence)
    to.put_arrays(n_codes=forest.n_codes)
    if not forest.weighs_by_evidence:
        to.put_arrays(weights=forest.weights)


def read_forest(of: Reader) -> Forest:
    """Read the forest."""
    posteriors = read_posteriors(of.section("posteriors"))
    weights: Any = "evidence"
    if not of.value("by_evidence", bool):
        weights = of.array("weights", np.float64, (len(posteriors),))
    n_codes = of.array("n_codes", np.uint16, (None,))
    sharpness = of.value("sharpness", float)
    with of.checking("forest"):
        return Forest(posteriors, weights=weights, sharpness=sharpness, n_codes=n_codes)
