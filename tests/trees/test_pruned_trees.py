"""The pruned trees that a meta-tree stands for."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import naive
from cases import examples, random_codes, random_tree, seeds
from tree_cases import small_tree


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
